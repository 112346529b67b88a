// SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_token_permute_with_routing_map.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status_macros.hpp"
#include "cann/objects/executor.hpp"
#include "cann/objects/messages.hpp"
#include "cann/ops/checks.hpp"
#include "cann/ops/launch.hpp"
#include "cann/ops/messages.hpp"
#include "moeperm/permute_with_routing_map.hpp"

namespace moeperm::cann {
namespace {

constexpr std::string_view kApi = "aclnnMoeTokenPermuteWithRoutingMap";
constexpr std::int64_t kLimit = 16777215;  // tokens and experts are below it

struct Call {
  TensorArg tokens;
  TensorArg map;          // routingMap
  TensorArg probs;        // probsOptional
  TensorArg tokens_out;   // permuteTokensOut
  TensorArg probs_out;    // permuteProbsOutOptional
  TensorArg indices_out;  // sortedIndicesOut
  std::int64_t num_out_tokens = 0;
  bool drop_and_pad = false;

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
  return CheckTiling(kApi, problem);
}

Status AddOutput(const TensorArg& arg, std::int64_t rows, std::int64_t cols, std::string_view why,
                 Launch* launch, Output** output) {
  View view;
  MOEPERM_TRY(Resolve(arg, &view));
  if (!Output::Fits(view, rows, cols)) {
    return op_msg::DoesNotFit(arg.name, view.dims, rows, cols, why);
  }
  *output = &launch->Add(Output(std::move(view), rows, cols));
  return {};
}

Status ZeroAll(const TensorArg& arg, Launch* launch) {
  if (!arg) return {};
  View view;
  MOEPERM_TRY(Resolve(arg, &view));
  launch->Zero(std::move(view));
  return {};
}

Status BindCall(const Call& call, Work* work) {
  auto launch = std::make_shared<Launch>();
  if (call.map.empty()) {
    for (const TensorArg* arg : {&call.tokens_out, &call.probs_out, &call.indices_out}) {
      MOEPERM_TRY(ZeroAll(*arg, launch.get()));
    }
    *work = Launch::Finish(std::move(launch));
    return {};
  }
  View tokens;
  View map;
  View probs;
  MOEPERM_TRY(launch->Input(call.tokens, &tokens));
  MOEPERM_TRY(launch->Input(call.map, &map));
  if (call.probs) MOEPERM_TRY(launch->Input(call.probs, &probs));
  if (tokens.dims[0] != call.num_tokens()) {
    return op_msg::WrongDim(call.tokens.name, 0, tokens.dims[0], call.num_tokens(),
                            "as in routingMap");
  }
  const std::int64_t rows = call.rows();
  Output* tokens_out = nullptr;
  Output* probs_out = nullptr;
  Output* indices_out = nullptr;
  MOEPERM_TRY(
      AddOutput(call.tokens_out, rows, tokens.dims[1], "rows x hidden", launch.get(), &tokens_out));
  if (call.probs) {
    MOEPERM_TRY(AddOutput(call.probs_out, rows, 1, "rows", launch.get(), &probs_out));
  }
  MOEPERM_TRY(AddOutput(call.indices_out, rows, 1, "rows", launch.get(), &indices_out));

  PermuteWithRoutingMapArgs args;
  args.tokens = AsInput(tokens);
  args.routing_map = AsInput(map);
  if (call.probs) args.probs = AsInput(probs);
  args.num_out_tokens = rows;
  args.top_k = call.drop_and_pad ? 0 : rows / call.num_tokens();
  args.drop_and_pad = call.drop_and_pad;
  PermuteWithRoutingMapSpecs specs;
  MOEPERM_TRY(InferPermuteWithRoutingMap(args, &specs));  // too many rows, for instance
  launch->compute = [args, tokens_out, probs_out, indices_out]() mutable -> Status {
    MOEPERM_TRY(tokens_out->Begin(false, &args.permuted_tokens));
    MOEPERM_TRY(indices_out->Begin(true, &args.sorted_indices));
    if (probs_out != nullptr) {
      MOEPERM_TRY(probs_out->Begin(true, &args.permuted_probs.emplace()));
    }
    return PermuteWithRoutingMap(args);
  };
  *work = Launch::Finish(std::move(launch));
  return {};
}

}  // namespace
}  // namespace moeperm::cann

aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* routingMap, const aclTensor* probsOptional,
    int64_t numOutTokens, bool dropAndPad, aclTensor* permuteTokensOut,
    aclTensor* permuteProbsOutOptional, aclTensor* sortedIndicesOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) try {
  using namespace moeperm::cann;
  Call call;
  call.num_out_tokens = numOutTokens;
  call.drop_and_pad = dropAndPad;
  const Handle in = {"tokens", tokens, &call.tokens};
  const Handle map = {"routingMap", routingMap, &call.map};
  const Handle probs = {"probsOptional", probsOptional, &call.probs};
  const Handle out = {"permuteTokensOut", permuteTokensOut, &call.tokens_out};
  const Handle probs_out = {"permuteProbsOutOptional", permuteProbsOutOptional, &call.probs_out};
  const Handle indices_out = {"sortedIndicesOut", sortedIndicesOut, &call.indices_out};

  MOEPERM_CANN_TRY(CheckGiven(kApi, {in, map, out, indices_out}));
  if (probs.tensor != nullptr && probs_out.tensor == nullptr) {
    return op_msg::MissingBecause(kApi, probs_out.name, probs.name);
  }
  MOEPERM_CANN_TRY(FindTensors(kApi, {in, map, probs, out, probs_out, indices_out}));
  MOEPERM_CANN_TRY(CheckDTypes(call));
  MOEPERM_CANN_TRY(CheckRanks(call));
  MOEPERM_CANN_TRY(CheckCounts(call));
  if (!call.map.empty()) MOEPERM_CANN_TRY(CheckCallTiling(call));
  return MakeExecutor(
      kApi, [call = std::move(call)](Work* work) { return BindCall(call, work); }, 0, workspaceSize,
      executor);
} catch (...) {
  return moeperm::cann::object_msg::OutOfMemory(moeperm::cann::kApi);
}

aclnnStatus aclnnMoeTokenPermuteWithRoutingMap(void* workspace, uint64_t workspaceSize,
                                               aclOpExecutor* executor, aclrtStream stream) {
  return moeperm::cann::RunExecutor(moeperm::cann::kApi, workspace, workspaceSize, executor,
                                    stream);
}
