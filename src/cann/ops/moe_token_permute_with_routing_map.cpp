// SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_token_permute_with_routing_map.h"

#include <algorithm>
#include <utility>

#include "aclnn/opdev/op_errno.h"
#include "base/status_macros.hpp"
#include "cann/ops/checks.hpp"
#include "cann/ops/launch.hpp"
#include "cann/ops/messages.hpp"
#include "moeperm/permute_with_routing_map.hpp"

namespace moeperm::cann {
namespace {

constexpr std::string_view kApi = "aclnnMoeTokenPermuteWithRoutingMap";
constexpr std::int64_t kLimit = 16777215;  // tokens and experts are below it

constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"routing_map", "routingMap"},
    {"num_out_tokens", "numOutTokens"},
    {"permuted_tokens", "permuteTokensOut"},
    {"permuted_probs", "permuteProbsOutOptional"},
    {"sorted_indices", "sortedIndicesOut"}};
constexpr Api kEntry = {kApi, ACLNN_ERR_INNER_NULLPTR, false, kNames};

struct Call {
  TensorArg tokens;
  TensorArg map;    // routingMap
  TensorArg probs;  // probsOptional
  std::int64_t num_out_tokens;
  bool drop_and_pad;
  TensorArg tokens_out;   // permuteTokensOut
  TensorArg probs_out;    // permuteProbsOutOptional
  TensorArg indices_out;  // sortedIndicesOut

  int Check();
  Status Bind(Launch* launch) const;

  [[nodiscard]] std::int64_t num_tokens() const { return map.dim(0); }
  [[nodiscard]] std::int64_t num_experts() const { return map.dim(1); }
  // numOutTokens down to as many rows a token, or an expert.
  [[nodiscard]] std::int64_t rows() const {
    const std::int64_t unit =
        std::max<std::int64_t>(1, drop_and_pad ? num_experts() : num_tokens());
    return num_out_tokens / unit * unit;
  }
};

int CheckDTypes(const Call& call) {
  MOEPERM_CANN_TRY(CheckFloat(kApi, call.tokens));
  MOEPERM_CANN_TRY(CheckFloat(kApi, call.tokens_out));
  MOEPERM_CANN_TRY(CheckRoutingMap(kApi, call.map));
  MOEPERM_CANN_TRY(CheckSameDType(kApi, call.tokens_out, call.tokens));
  MOEPERM_CANN_TRY(CheckInt32(kApi, call.indices_out));
  if (call.probs) {
    MOEPERM_CANN_TRY(CheckFloat(kApi, call.probs));
    MOEPERM_CANN_TRY(CheckProbsDType(kApi, call.probs, call.tokens));
  }
  if (call.probs_out) {
    MOEPERM_CANN_TRY(CheckFloat(kApi, call.probs_out));
    // The original follows the null pointer here.
    if (!call.probs) return op_msg::MissingBecause(kApi, call.probs.name, call.probs_out.name);
    MOEPERM_CANN_TRY(CheckSameDType(kApi, call.probs_out, call.probs));
  }
  return 0;
}

int CheckRanks(const Call& call) {
  MOEPERM_CANN_TRY(CheckDims(kApi, {&call.tokens, &call.map, &call.probs, &call.tokens_out,
                                    &call.probs_out, &call.indices_out}));
  MOEPERM_CANN_TRY(CheckRank(kApi, call.map, 2));
  if (call.probs) {
    MOEPERM_CANN_TRY(CheckRank(kApi, call.probs, 2));
    for (const std::size_t i : {1, 0}) {
      if (call.probs.dim(i) != call.map.dim(i)) {
        return op_msg::DimDiffers(kApi, call.probs.name, i, call.probs.dim(i), call.map.dim(i),
                                  "as in routingMap");
      }
    }
  }
  return CheckRank(kApi, call.tokens, 2);
}

int CheckRows(const TensorArg& arg, std::int64_t rows) {
  if (arg.rank() == 0) return op_msg::WrongRank(kApi, arg.name, 0, 1);
  if (arg.dim(0) == rows) return 0;
  return op_msg::DimDiffers(kApi, arg.name, 0, arg.dim(0), rows, "numOutTokens, rounded down");
}

int CheckCounts(const Call& call) {
  if (call.num_out_tokens < 0) return op_msg::Negative(kApi, "numOutTokens", call.num_out_tokens);
  std::int64_t most = 0;
  // A product past 63 bits is no bound; the limits below are.
  if (!__builtin_mul_overflow(call.num_tokens(), call.num_experts(), &most) &&
      call.num_out_tokens > most) {
    return op_msg::AboveLimit(kApi, "numOutTokens", call.num_out_tokens, most);
  }
  for (const std::size_t i : {0, 1}) {
    if (call.map.dim(i) >= kLimit) {
      return op_msg::AboveLimit(kApi,
                                i == 0 ? "dimension 0 of routingMap" : "dimension 1 of routingMap",
                                call.map.dim(i), kLimit - 1);
    }
  }
  MOEPERM_CANN_TRY(CheckRows(call.tokens_out, call.rows()));
  return call.probs_out ? CheckRows(call.probs_out, call.rows()) : 0;
}

// The tiling sees the map and the probs expert by expert, and outputs of its own for all but the
// tokens.
int CheckCallTiling(const Call& call) {
  const host::Shape by_expert = {call.num_experts(), call.num_tokens()};
  const host::Shape rows = {call.rows()};
  host::Problem problem;
  problem.inputs = {Describe(call.tokens), Describe(call.map, by_expert),
                    Describe(call.probs, by_expert)};
  problem.outputs = {Describe(call.tokens_out),
                     Describe(call.probs_out ? call.probs_out : call.tokens, rows),
                     Describe(call.indices_out, rows)};
  problem.attrs = {call.rows(), call.drop_and_pad};
  return CheckTiling(kEntry, problem);
}

Status Call::Bind(Launch* launch) const {
  if (map.empty()) {
    for (const TensorArg* arg : {&tokens_out, &probs_out, &indices_out}) {
      MOEPERM_TRY(launch->Zero(*arg));
    }
    return {};
  }
  View token_view;
  View map_view;
  View prob_view;
  MOEPERM_TRY(launch->Input(tokens, &token_view));
  MOEPERM_TRY(launch->Input(map, &map_view));
  if (probs) MOEPERM_TRY(launch->Input(probs, &prob_view));
  if (tokens.dim(0) != num_tokens()) {
    return op_msg::WrongDim(tokens.name, 0, tokens.dim(0), num_tokens(), "as in routingMap");
  }
  Output* out = nullptr;
  Output* prob_out = nullptr;
  Output* index_out = nullptr;
  MOEPERM_TRY(launch->AddOutput(tokens_out, rows(), tokens.dim(1), "rows x hidden", &out));
  if (probs) MOEPERM_TRY(launch->AddOutput(probs_out, rows(), 1, "rows", &prob_out));
  MOEPERM_TRY(launch->AddOutput(indices_out, rows(), 1, "rows", &index_out));

  PermuteWithRoutingMapArgs args;
  args.tokens = AsInput(token_view);
  args.routing_map = AsInput(map_view);
  if (probs) args.probs = AsInput(prob_view);
  args.num_out_tokens = rows();
  args.top_k = drop_and_pad ? 0 : rows() / num_tokens();
  args.drop_and_pad = drop_and_pad;
  PermuteWithRoutingMapSpecs specs;
  MOEPERM_TRY(InferPermuteWithRoutingMap(args, &specs));  // too many rows, for instance
  launch->compute = [args, out, prob_out, index_out]() mutable -> Status {
    MOEPERM_TRY(out->Begin(false, &args.permuted_tokens));
    MOEPERM_TRY(index_out->Begin(true, &args.sorted_indices));
    if (prob_out != nullptr) MOEPERM_TRY(prob_out->Begin(true, &args.permuted_probs.emplace()));
    return PermuteWithRoutingMap(args);
  };
  return {};
}

int Call::Check() {
  MOEPERM_CANN_TRY(CheckGiven(kApi, {&tokens, &map, &tokens_out, &indices_out}));
  MOEPERM_CANN_TRY(CheckGivenWith(kApi, probs_out, probs));
  MOEPERM_CANN_TRY(
      FindTensors(kApi, {&tokens, &map, &probs, &tokens_out, &probs_out, &indices_out}));
  MOEPERM_CANN_TRY(CheckDTypes(*this));
  MOEPERM_CANN_TRY(CheckRanks(*this));
  MOEPERM_CANN_TRY(CheckCounts(*this));
  return map.empty() ? 0 : CheckCallTiling(*this);
}

}  // namespace
}  // namespace moeperm::cann

aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* routingMap, const aclTensor* probsOptional,
    int64_t numOutTokens, bool dropAndPad, aclTensor* permuteTokensOut,
    aclTensor* permuteProbsOutOptional, aclTensor* sortedIndicesOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  using namespace moeperm::cann;
  return Prepare(kEntry,
                 Call{.tokens = {"tokens", tokens},
                      .map = {"routingMap", routingMap},
                      .probs = {"probsOptional", probsOptional},
                      .num_out_tokens = numOutTokens,
                      .drop_and_pad = dropAndPad,
                      .tokens_out = {"permuteTokensOut", permuteTokensOut},
                      .probs_out = {"permuteProbsOutOptional", permuteProbsOutOptional},
                      .indices_out = {"sortedIndicesOut", sortedIndicesOut}},
                 workspaceSize, executor);
}

aclnnStatus aclnnMoeTokenPermuteWithRoutingMap(void* workspace, uint64_t workspaceSize,
                                               aclOpExecutor* executor, aclrtStream stream) {
  return moeperm::cann::RunExecutor(moeperm::cann::kApi, workspace, workspaceSize, executor,
                                    stream);
}
