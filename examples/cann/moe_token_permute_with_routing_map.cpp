// SPDX-License-Identifier: Apache-2.0
// Six tokens go to four experts: one row a route, and with two rows an expert (drop-and-pad).
#include "aclnnop/aclnn_moe_token_permute_with_routing_map.h"
#include "sample.h"

namespace {

const int64_t kTokens = 6;
const int64_t kExperts = 4;
const int64_t kHidden = 3;
const int64_t kTopK = 2;

// A 1 where the token of the row goes to the expert of the column.
const int8_t kMap[kTokens * kExperts] = {1, 0, 1, 0,   // token 0
                                         1, 1, 0, 0,   // token 1
                                         0, 1, 0, 1,   // token 2
                                         1, 0, 0, 1,   // token 3
                                         0, 1, 1, 0,   // token 4
                                         1, 1, 0, 0};  // token 5

struct Result {
  std::vector<float> tokens;
  std::vector<float> probs;
  std::vector<int32_t> indices;
};

// The same in plain loops. Not padded: the rows of an expert are its tokens in ascending order, and
// indices[t * kTopK + j] is the row of token t's j-th expert. Drop-and-pad: an expert has
// `capacity` rows, its first tokens, then tokens that are not its own; indices has the token of
// each row.
Result Expected(const std::vector<float>& tokens, const std::vector<float>& probs,
                bool drop_and_pad, int64_t capacity) {
  Result want;
  std::vector<int64_t> used(kTokens, 0);
  if (!drop_and_pad) want.indices.resize(kTokens * kTopK);
  for (int64_t e = 0; e < kExperts; ++e) {
    std::vector<int64_t> of_expert;
    for (int64_t t = 0; t < kTokens; ++t) {
      if (kMap[t * kExperts + e] != 0) of_expert.push_back(t);
    }
    if (drop_and_pad) {
      for (int64_t t = 0; t < kTokens; ++t) {
        if (kMap[t * kExperts + e] == 0) of_expert.push_back(t);
      }
      of_expert.resize(capacity);
    }
    for (size_t i = 0; i < of_expert.size(); ++i) {
      const int64_t t = of_expert[i];
      if (drop_and_pad) {
        want.indices.push_back(static_cast<int32_t>(t));
      } else {
        want.indices[t * kTopK + used[t]++] = static_cast<int32_t>(want.probs.size());
      }
      want.probs.push_back(probs[t * kExperts + e]);
      for (int64_t h = 0; h < kHidden; ++h) want.tokens.push_back(tokens[t * kHidden + h]);
    }
  }
  return want;
}

bool Run(aclrtStream stream, bool drop_and_pad) {
  std::printf("\n%s\n", drop_and_pad ? "drop-and-pad" : "not padded");
  const int64_t capacity = 2;
  const int64_t rows = drop_and_pad ? kExperts * capacity : kTokens * kTopK;

  std::vector<float> tokens(kTokens * kHidden);
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<float>(i / kHidden) + 0.1f * static_cast<float>(i % kHidden);
  }
  std::vector<float> probs(kTokens * kExperts);
  for (size_t i = 0; i < probs.size(); ++i) probs[i] = static_cast<float>(i) / 32;

  DeviceTensor<float> d_tokens({kTokens, kHidden}, ACL_FLOAT, tokens);
  DeviceTensor<int8_t> d_map({kTokens, kExperts}, ACL_INT8,
                             std::vector<int8_t>(kMap, kMap + kTokens * kExperts));
  DeviceTensor<float> d_probs({kTokens, kExperts}, ACL_FLOAT, probs);
  DeviceTensor<float> permuted({rows, kHidden}, ACL_FLOAT, std::vector<float>(rows * kHidden));
  DeviceTensor<float> permuted_probs({rows}, ACL_FLOAT, std::vector<float>(rows));
  DeviceTensor<int32_t> indices({rows}, ACL_INT32, std::vector<int32_t>(rows));

  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
      d_tokens.get(), d_map.get(), d_probs.get(), rows, drop_and_pad, permuted.get(),
      permuted_probs.get(), indices.get(), &workspace_size, &executor));
  RunAndWait(aclnnMoeTokenPermuteWithRoutingMap, workspace_size, executor, stream);

  Print("permuted tokens", permuted.ToHost(), kHidden);
  Print("permuted probs", permuted_probs.ToHost(), rows);
  Print("sorted indices", indices.ToHost(), rows);
  const Result want = Expected(tokens, probs, drop_and_pad, capacity);
  const bool tokens_same = Same("permuted tokens", permuted.ToHost(), want.tokens);
  const bool probs_same = Same("permuted probs", permuted_probs.ToHost(), want.probs);
  const bool indices_same = Same("sorted indices", indices.ToHost(), want.indices);
  return tokens_same && probs_same && indices_same;
}

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));

  const bool not_padded = Run(stream, false);
  const bool drop_and_pad = Run(stream, true);

  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return not_padded && drop_and_pad ? EXIT_SUCCESS : EXIT_FAILURE;
}
