// SPDX-License-Identifier: Apache-2.0
// Every check of phase 1, its code, and that of two faults the one checked earlier is told. The
// faults stand in the order of the checks.
#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "door.hpp"

namespace moeperm::test {
namespace {

using testing::HasSubstr;

template <class Call>
struct Fault {
  std::string name;
  std::string touches;  // letters: faults that share one cannot be combined
  int code;
  std::string text;  // of the message
  std::function<void(Call&)> make;
};

// Phase 1 never follows these addresses.
char g_memory[64];

Spec Of(std::vector<std::int64_t> dims, int dtype) {
  Spec spec;
  spec.dims = std::move(dims);
  spec.dtype = dtype;
  spec.data = g_memory;
  return spec;
}

GradCall GoodGrad() {
  GradCall call;
  call.rows = Of({6, 2}, ACL_FLOAT);
  call.probs = Of({6}, ACL_FLOAT);
  call.indices = Of({6}, ACL_INT32);
  call.map = Of({3, 3}, ACL_INT8);
  call.num_experts = 3;
  call.num_tokens = 3;
  call.tokens_out = Of({3, 2}, ACL_FLOAT);
  call.probs_out = Of({3, 3}, ACL_FLOAT);
  return call;
}

ForwardCall GoodForward() {
  ForwardCall call;
  call.tokens = Of({3, 2}, ACL_FLOAT);
  call.map = Of({3, 4}, ACL_BOOL);
  call.probs = Of({3, 4}, ACL_FLOAT);
  call.num_out_tokens = 6;
  call.tokens_out = Of({6, 2}, ACL_FLOAT);
  call.probs_out = Of({6}, ACL_FLOAT);
  call.indices_out = Of({6}, ACL_INT32);
  return call;
}

constexpr int kNull = ACLNN_ERR_PARAM_NULLPTR;
constexpr int kInvalid = ACLNN_ERR_PARAM_INVALID;

// Letters: E T attributes, r p i m inputs, t q outputs, w x what phase 1 returns.
const std::vector<Fault<GradCall>>& GradFaults() {
  using C = GradCall;
  static const std::vector<Fault<C>> faults = {
      {"no experts", "E", kInvalid, "numExperts is 0", [](C& c) { c.num_experts = 0; }},
      {"tokens below 0", "T", kInvalid, "tokensNum is -4", [](C& c) { c.num_tokens = -4; }},
      {"rows null", "r", kNull, "permutedTokenOutputGrad is a null",
       [](C& c) { c.rows.given = false; }},
      {"indices null", "i", kNull, "sortedIndices is a null",
       [](C& c) { c.indices.given = false; }},
      {"tokens out null", "t", kNull, "tokensGradOut is a null",
       [](C& c) { c.tokens_out.given = false; }},
      {"probs without map", "m", kNull, "routingMapOptional is a null",
       [](C& c) { c.map.given = false; }},
      {"rows stale", "r", kInvalid, "permutedTokenOutputGrad = 0x",
       [](C& c) { c.rows.stale = true; }},
      {"probs out stale", "q", kInvalid, "probsGradOutOptional = 0x",
       [](C& c) { c.probs_out.stale = true; }},
      {"rows int32", "r", kInvalid, "permutedTokenOutputGrad has dtype int32",
       [](C& c) { c.rows.dtype = ACL_INT32; }},
      {"rows unknown dtype", "r", kInvalid, "permutedTokenOutputGrad has dtype undefined (-1)",
       [](C& c) { c.rows.dtype = -1; }},
      {"tokens out float16", "t", kInvalid, "tokensGradOut has dtype float16",
       [](C& c) { c.tokens_out.dtype = ACL_FLOAT16; }},
      {"probs float64", "p", kInvalid, "permutedProbsOutputGradOptional has dtype float64",
       [](C& c) { c.probs.dtype = ACL_DOUBLE; }},
      {"probs out bfloat16", "q", kInvalid, "probsGradOutOptional has dtype bfloat16",
       [](C& c) { c.probs_out.dtype = ACL_BF16; }},
      {"probs float16 beside float32", "pq", kInvalid,
       "permutedProbsOutputGradOptional has dtype float16 (1) but permutedTokenOutputGrad",
       [](C& c) { c.probs.dtype = c.probs_out.dtype = ACL_FLOAT16; }},
      {"probs float32 beside float16", "rtpq", kInvalid,
       "permutedProbsOutputGradOptional has dtype float32 (0) but permutedTokenOutputGrad",
       [](C& c) { c.rows.dtype = c.tokens_out.dtype = ACL_FLOAT16; }},
      {"map int32", "m", kInvalid, "routingMapOptional has dtype int32",
       [](C& c) { c.map.dtype = ACL_INT32; }},
      {"indices int64", "i", kInvalid, "sortedIndices has dtype int64",
       [](C& c) { c.indices.dtype = ACL_INT64; }},
      {"negative rows", "r", kInvalid, "dimension 0 of permutedTokenOutputGrad is -6",
       [](C& c) {
         c.rows.dims = {-6, 2};
       }},
      {"negative out", "q", kInvalid, "dimension 1 of probsGradOutOptional is -1",
       [](C& c) {
         c.probs_out.dims = {3, -1};
       }},
      {"rows of three dimensions", "r", kInvalid, "permutedTokenOutputGrad has 3 dim",
       [](C& c) {
         c.rows.dims = {6, 2, 1};
       }},
      {"map of one dimension", "m", kInvalid, "routingMapOptional has 1 dim",
       [](C& c) { c.map.dims = {9}; }},
      {"probs of two dimensions", "p", kInvalid, "permutedProbsOutputGradOptional has 2 dim",
       [](C& c) {
         c.probs.dims = {6, 1};
       }},
      {"513 slots a token", "rT", ACLNN_ERR_INNER_NULLPTR, "513",
       [](C& c) {
         c.rows.dims = {513, 2};
         c.num_tokens = 1;
       }},
      {"workspaceSize null", "w", kNull, "workspaceSize is a null",
       [](C& c) { c.null_size = true; }},
      {"executor null", "x", kNull, "executor is a null", [](C& c) { c.null_executor = true; }},
  };
  return faults;
}

// Letters: N the attribute, T r p inputs, t q i outputs (T also: the map; the shapes depend on it).
const std::vector<Fault<ForwardCall>>& ForwardFaults() {
  using C = ForwardCall;
  static const std::vector<Fault<C>> faults = {
      {"tokens null", "r", kNull, "tokens is a null", [](C& c) { c.tokens.given = false; }},
      {"map null", "m", kNull, "routingMap is a null", [](C& c) { c.map.given = false; }},
      {"tokens out null", "t", kNull, "permuteTokensOut is a null",
       [](C& c) { c.tokens_out.given = false; }},
      {"indices null", "i", kNull, "sortedIndicesOut is a null",
       [](C& c) { c.indices_out.given = false; }},
      {"probs out null", "q", kNull, "permuteProbsOutOptional is a null",
       [](C& c) { c.probs_out.given = false; }},
      {"map stale", "m", kInvalid, "routingMap = 0x", [](C& c) { c.map.stale = true; }},
      {"tokens int32", "r", kInvalid, "tokens has dtype int32",
       [](C& c) { c.tokens.dtype = ACL_INT32; }},
      {"tokens out int32", "t", kInvalid, "permuteTokensOut has dtype int32",
       [](C& c) { c.tokens_out.dtype = ACL_INT32; }},
      {"map uint8", "m", kInvalid, "routingMap has dtype uint8",
       [](C& c) { c.map.dtype = ACL_UINT8; }},
      {"tokens out float16", "t", kInvalid, "permuteTokensOut has dtype float16",
       [](C& c) { c.tokens_out.dtype = ACL_FLOAT16; }},
      {"indices int64", "i", kInvalid, "sortedIndicesOut has dtype int64",
       [](C& c) { c.indices_out.dtype = ACL_INT64; }},
      {"probs int32", "p", kInvalid, "probsOptional has dtype int32",
       [](C& c) { c.probs.dtype = ACL_INT32; }},
      {"probs bfloat16 beside float32", "pq", kInvalid,
       "probsOptional has dtype bfloat16 (27) but tokens",
       [](C& c) { c.probs.dtype = c.probs_out.dtype = ACL_BF16; }},
      {"probs float32 beside float16", "rtpq", kInvalid,
       "probsOptional has dtype float32 (0) but tokens",
       [](C& c) { c.tokens.dtype = c.tokens_out.dtype = ACL_FLOAT16; }},
      {"probs out int8", "q", kInvalid, "permuteProbsOutOptional has dtype int8",
       [](C& c) { c.probs_out.dtype = ACL_INT8; }},
      {"probs out without probs", "pq", kNull, "probsOptional is a null",
       [](C& c) { c.probs.given = false; }},
      {"probs out float16", "q", kInvalid, "permuteProbsOutOptional has dtype float16",
       [](C& c) { c.probs_out.dtype = ACL_FLOAT16; }},
      {"negative hidden", "r", kInvalid, "dimension 1 of tokens is -2",
       [](C& c) {
         c.tokens.dims = {3, -2};
       }},
      {"map of three dimensions", "m", kInvalid, "routingMap has 3 dim",
       [](C& c) {
         c.map.dims = {3, 1, 4};
       }},
      {"probs of three dimensions", "p", kInvalid, "probsOptional has 3 dim",
       [](C& c) {
         c.probs.dims = {3, 1, 4};
       }},
      {"probs of other experts", "p", kInvalid, "dimension 1 of probsOptional is 5",
       [](C& c) {
         c.probs.dims = {7, 5};
       }},
      {"probs of other tokens", "p", kInvalid, "dimension 0 of probsOptional is 7",
       [](C& c) {
         c.probs.dims = {7, 4};
       }},
      {"tokens of one dimension", "r", kInvalid, "tokens has 1 dim",
       [](C& c) { c.tokens.dims = {3}; }},
      {"numOutTokens negative", "N", kInvalid, "numOutTokens is -1",
       [](C& c) { c.num_out_tokens = -1; }},
      {"numOutTokens above the map", "N", kInvalid, "numOutTokens is 13",
       [](C& c) { c.num_out_tokens = 13; }},
      {"too many tokens", "mpN", kInvalid, "dimension 0 of routingMap is 16777215",
       [](C& c) {
         c.map.dims = c.probs.dims = {16777215, 4};
       }},
      {"too many experts", "mpN", kInvalid, "dimension 1 of routingMap is 16777215",
       [](C& c) {
         c.map.dims = c.probs.dims = {3, 16777215};
       }},
      {"tokens out rows", "t", kInvalid, "dimension 0 of permuteTokensOut is 7",
       [](C& c) {
         c.tokens_out.dims = {7, 2};
       }},
      {"probs out rows", "q", kInvalid, "dimension 0 of permuteProbsOutOptional is 5",
       [](C& c) { c.probs_out.dims = {5}; }},
      {"tokens of another map", "r", ACLNN_ERR_INNER_NULLPTR, "no tiling",
       [](C& c) {
         c.tokens.dims = {4, 2};
       }},
      {"another hidden", "t", ACLNN_ERR_INNER_NULLPTR, "no tiling",
       [](C& c) {
         c.tokens_out.dims = {6, 3};
       }},
      {"workspaceSize null", "w", kNull, "workspaceSize is a null",
       [](C& c) { c.null_size = true; }},
      {"executor null", "x", kNull, "executor is a null", [](C& c) { c.null_executor = true; }},
  };
  return faults;
}

template <class Call>
void CheckAll(const Call& good, const std::vector<Fault<Call>>& faults) {
  TakeError();
  ASSERT_EQ(Phase1(good), 0) << TakeError();
  int pairs = 0;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    Call call = good;
    faults[i].make(call);
    TakeError();
    EXPECT_EQ(Phase1(call), faults[i].code) << faults[i].name;
    EXPECT_THAT(TakeError(), HasSubstr(faults[i].text)) << faults[i].name;
    for (std::size_t j = i + 1; j < faults.size(); ++j) {
      if (faults[i].touches.find_first_of(faults[j].touches) != std::string::npos) continue;
      call = good;
      faults[i].make(call);
      faults[j].make(call);
      EXPECT_EQ(Phase1(call), faults[i].code) << faults[i].name << " and " << faults[j].name;
      EXPECT_THAT(TakeError(), HasSubstr(faults[i].text))
          << faults[i].name << " and " << faults[j].name;
      ++pairs;
    }
  }
  EXPECT_GT(pairs, 150);
}

TEST(CannChecks, GradientInOrder) {
  const Stream stream;
  CheckAll(GoodGrad(), GradFaults());
}

TEST(CannChecks, ForwardInOrder) {
  const Stream stream;
  CheckAll(GoodForward(), ForwardFaults());
}

TEST(CannChecks, TopK) {
  const Stream stream;
  ForwardCall forward = GoodForward();
  forward.tokens.dims = {1, 2};
  forward.probs = forward.probs_out = NotGiven();
  forward.map.dims = {1, 513};
  for (const std::int64_t top_k : {512, 513}) {
    forward.num_out_tokens = top_k;
    forward.tokens_out.dims = {top_k, 2};
    forward.indices_out.dims = {top_k};
    EXPECT_EQ(Phase1(forward), top_k == 512 ? 0 : ACLNN_ERR_INNER_NULLPTR) << top_k;
  }
  // Drop-and-pad has no such limit.
  forward.drop_and_pad = true;
  EXPECT_EQ(Phase1(forward), 0) << TakeError();

  GradCall grad = GoodGrad();
  grad.num_tokens = 1;
  for (const std::int64_t rows : {512, 513}) {
    grad.rows.dims = {rows, 2};
    EXPECT_EQ(Phase1(grad), rows == 512 ? 0 : ACLNN_ERR_INNER_NULLPTR) << rows;
  }
  grad.drop_and_pad = true;
  EXPECT_EQ(Phase1(grad), 0) << TakeError();
}

TEST(CannChecks, DTypesThatAreTaken) {
  const Stream stream;
  for (const int tokens : {ACL_FLOAT, ACL_FLOAT16, ACL_BF16}) {
    for (const int probs : {ACL_FLOAT, ACL_FLOAT16, ACL_BF16}) {
      const bool good = probs == tokens || (tokens == ACL_BF16 && probs == ACL_FLOAT);
      for (const int map : {ACL_INT8, ACL_BOOL}) {
        GradCall grad = GoodGrad();
        grad.rows.dtype = grad.tokens_out.dtype = tokens;
        grad.probs.dtype = grad.probs_out.dtype = probs;
        grad.map.dtype = map;
        EXPECT_EQ(Phase1(grad), good ? 0 : kInvalid) << tokens << ' ' << probs;
        ForwardCall forward = GoodForward();
        forward.tokens.dtype = forward.tokens_out.dtype = tokens;
        forward.probs.dtype = forward.probs_out.dtype = probs;
        forward.map.dtype = map;
        EXPECT_EQ(Phase1(forward), good ? 0 : kInvalid) << tokens << ' ' << probs;
      }
    }
  }
}

// What is optional, and what nobody compares.
TEST(CannChecks, AcceptedAsTheOriginalDoes) {
  const Stream stream;
  GradCall grad = GoodGrad();
  grad.probs_out = NotGiven();
  EXPECT_EQ(Phase1(grad), 0);
  grad.probs = NotGiven();
  EXPECT_EQ(Phase1(grad), 0);
  grad.map = NotGiven();
  EXPECT_EQ(Phase1(grad), 0);
  grad = GoodGrad();
  grad.indices.dims = {1, 2, 3};
  grad.tokens_out.dims = {};
  grad.probs_out.dims = {77};
  grad.map.dims = {1, 1};
  grad.rows.format = ACL_FORMAT_FRACTAL_NZ;
  EXPECT_EQ(Phase1(grad), 0) << TakeError();
  grad.probs = NotGiven();
  grad.probs_out.dtype = -1;
  EXPECT_EQ(Phase1(grad), 0) << TakeError();

  ForwardCall forward = GoodForward();
  forward.indices_out.dims = {1};
  forward.num_out_tokens = 8;  // two rows a token all the same
  EXPECT_EQ(Phase1(forward), 0) << TakeError();
}

// Products and sums of sizes past 63 bits are found, whichever tensor has them.
TEST(CannChecks, HostileShapes) {
  Stream stream;
  const std::int64_t huge = std::int64_t{1} << 62;
  const std::vector<std::vector<std::int64_t>> shapes = {
      {huge, huge}, {huge, 2},   {2, huge},      {INT64_MAX, 1}, {INT64_MAX, INT64_MAX},
      {huge},       {INT64_MAX}, {INT64_MIN, 2}, {3, INT64_MIN}};
  for (const auto& shape : shapes) {
    for (int tensor = 0; tensor < 6; ++tensor) {
      for (const bool pad : {false, true}) {
        GradCall grad = GoodGrad();
        Spec* const in_grad[] = {&grad.rows, &grad.probs,      &grad.indices,
                                 &grad.map,  &grad.tokens_out, &grad.probs_out};
        in_grad[tensor]->dims = shape;
        grad.drop_and_pad = pad;
        const Codes codes = RunCall(grad, stream);
        // Drop-and-pad does not read the map.
        const bool unread = pad && tensor == 3 && shape.size() == 2 && shape[0] > 0 && shape[1] > 0;
        EXPECT_EQ(codes.phase1 != 0 || codes.phase2 != 0, !unread) << codes;
        ForwardCall forward = GoodForward();
        Spec* const in_forward[] = {&forward.tokens,     &forward.map,       &forward.probs,
                                    &forward.tokens_out, &forward.probs_out, &forward.indices_out};
        in_forward[tensor]->dims = shape;
        forward.drop_and_pad = pad;
        const Codes codes_forward = RunCall(forward, stream);
        EXPECT_TRUE(codes_forward.phase1 != 0 || codes_forward.phase2 != 0) << codes_forward;
      }
    }
  }
  for (const std::int64_t attribute : {huge, INT64_MAX}) {
    GradCall grad = GoodGrad();
    grad.num_experts = attribute;
    grad.drop_and_pad = true;
    Phase1(grad);
    grad = GoodGrad();
    grad.num_tokens = attribute;
    EXPECT_EQ(Phase1(grad), 0) << TakeError();  // no slot: zeros
    ForwardCall forward = GoodForward();
    forward.num_out_tokens = attribute;
    EXPECT_EQ(Phase1(forward), kInvalid);
    forward = GoodForward();
    forward.map.dims = forward.probs.dims = {attribute, attribute};
    EXPECT_EQ(Phase1(forward), kInvalid);
  }
}

}  // namespace
}  // namespace moeperm::test
