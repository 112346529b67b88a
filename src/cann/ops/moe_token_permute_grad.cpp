// SPDX-License-Identifier: Apache-2.0
// The gradient of the table form; WithEp: of the rows that one process holds.
#include "aclnnop/aclnn_moe_token_permute_grad.h"

#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "cann/ops/table.hpp"
#include "moeperm/permute.hpp"

namespace moeperm::cann {
namespace {

constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"sorted_indices", "sortedIndices"}};
constexpr Api kPlain = {"aclnnMoeTokenPermuteGrad", 561002, true, kNames};
constexpr Api kEp = {"aclnnMoeTokenPermuteWithEpGrad", 561002, false, kNames};

struct Call {
  const Api* api;
  TensorArg rows;     // permutedOutputGrad, permutedTokensOutputGrad
  TensorArg indices;  // sortedIndices
  std::int64_t num_topk;
  bool padded_mode;
  TensorArg out;  // out, tokenGradOut
  bool ep = false;
  TensorArg probs = {};  // permutedProbsOutputGradOptional
  IntsArg range = {};
  TensorArg probs_out = {};  // probsGradOut

  // -1 is the original's word for 1 in the plain form.
  [[nodiscard]] std::int64_t top_k() const { return !ep && num_topk == -1 ? 1 : num_topk; }
  int Check();
  int CheckCallTiling() const;
  Status Bind(Launch* launch) const;
};

int Call::Check() {
  const std::string_view name = api->name;
  const bool own = !ep && OnAscend950();
  if (own && padded_mode) return op_msg::Unsupported(name, "paddedMode", "true", "false");
  MOEPERM_CANN_TRY(CheckGiven(name, {&rows, &indices, &out}));
  MOEPERM_CANN_TRY(CheckGivenWith(name, probs_out, probs));
  MOEPERM_CANN_TRY(FindTensors(name, {&rows, &indices, &probs, &out, &probs_out}));
  MOEPERM_CANN_TRY(FindInts(name, &range));
  MOEPERM_CANN_TRY(CheckFloat(name, rows));
  MOEPERM_CANN_TRY(CheckInt32(name, indices));
  if (probs) MOEPERM_CANN_TRY(CheckSameDType(name, probs, rows));
  MOEPERM_CANN_TRY(CheckSameDType(name, out, rows));
  if (probs) MOEPERM_CANN_TRY(CheckSameDType(name, probs_out, probs));
  MOEPERM_CANN_TRY(CheckDims(name, {&rows, &indices, &probs, &out, &probs_out}));
  return own ? 0 : CheckCallTiling();
}

int Call::CheckCallTiling() const {
  host::Problem problem;
  problem.inputs = {Describe(rows), Describe(indices)};
  problem.outputs = {Describe(out)};
  problem.attrs = {num_topk};
  if (ep) {
    problem.inputs.push_back(Describe(probs));
    problem.outputs.push_back(Describe(probs_out));
    problem.attrs.push_back(Describe(range));
  }
  problem.attrs.emplace_back(padded_mode);
  return CheckTiling(*api, problem);
}

Status Call::Bind(Launch* launch) const {
  if (top_k() <= 0) return op_msg::NotAbove("numTopk", num_topk, 0);
  if (indices.rank() != 1) return op_msg::RankNeeded(indices.name, indices.rank(), "1");
  if (rows.rank() != 2) return op_msg::RankNeeded(rows.name, rows.rank(), "2");
  const std::int64_t tokens = indices.dim(0) / top_k();
  const Window window = ep ? WindowOf(range) : WindowOf(0, rows.dim(0));
  View row_view;
  View prob_view;
  View index_view;
  Output* output = nullptr;
  Output* probs_output = nullptr;
  MOEPERM_TRY(BindRows(rows, 2, window, launch, &row_view));
  MOEPERM_TRY(BindSlots(indices, tokens * top_k(), launch, &index_view));
  MOEPERM_TRY(launch->AddOutput(out, tokens, rows.dim(1), "tokens x hidden", &output));
  if (probs) {
    MOEPERM_TRY(BindRows(probs, 1, window, launch, &prob_view));
    MOEPERM_TRY(launch->AddOutput(probs_out, tokens, top_k(), "tokens x numTopk", &probs_output));
  } else {
    MOEPERM_TRY(launch->Zero(probs_out));
  }
  PermuteGradArgs args;
  args.permuted_tokens_grad = AsInput(row_view);
  if (probs) args.permuted_probs_grad = AsInput(prob_view);
  args.sorted_indices = AsInput(index_view);
  args.num_tokens = tokens;
  args.first_row = window.first;
  launch->compute = [args, output, probs_output]() mutable -> Status {
    MOEPERM_TRY(output->Begin(false, &args.tokens_grad.emplace()));
    if (probs_output != nullptr) {
      MOEPERM_TRY(probs_output->Begin(false, &args.probs_grad.emplace()));
    }
    return PermuteGrad(args);
  };
  return {};
}

}  // namespace
}  // namespace moeperm::cann

aclnnStatus aclnnMoeTokenPermuteGradGetWorkspaceSize(const aclTensor* permutedOutputGrad,
                                                     const aclTensor* sortedIndices,
                                                     int64_t numTopk, bool paddedMode,
                                                     aclTensor* out, uint64_t* workspaceSize,
                                                     aclOpExecutor** executor) {
  using namespace moeperm::cann;
  return Prepare(kPlain,
                 Call{.api = &kPlain,
                      .rows = {"permutedOutputGrad", permutedOutputGrad},
                      .indices = {"sortedIndices", sortedIndices},
                      .num_topk = numTopk,
                      .padded_mode = paddedMode,
                      .out = {"out", out}},
                 workspaceSize, executor);
}

aclnnStatus aclnnMoeTokenPermuteGrad(void* workspace, uint64_t workspaceSize,
                                     aclOpExecutor* executor, aclrtStream stream) {
  using namespace moeperm::cann;
  return RunExecutor(kPlain.name, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
    const aclTensor* permutedTokensOutputGrad, const aclTensor* sortedIndices,
    const aclTensor* permutedProbsOutputGradOptional, int64_t numTopk,
    const aclIntArray* rangeOptional, bool paddedMode, const aclTensor* tokenGradOut,
    const aclTensor* probsGradOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  using namespace moeperm::cann;
  return Prepare(kEp,
                 Call{.api = &kEp,
                      .rows = {"permutedTokensOutputGrad", permutedTokensOutputGrad},
                      .indices = {"sortedIndices", sortedIndices},
                      .num_topk = numTopk,
                      .padded_mode = paddedMode,
                      .out = {"tokenGradOut", tokenGradOut},
                      .ep = true,
                      .probs = {"permutedProbsOutputGradOptional", permutedProbsOutputGradOptional},
                      .range = {"rangeOptional", rangeOptional},
                      .probs_out = {"probsGradOut", probsGradOut}},
                 workspaceSize, executor);
}

aclnnStatus aclnnMoeTokenPermuteWithEpGrad(void* workspace, uint64_t workspaceSize,
                                           aclOpExecutor* executor, aclrtStream stream) {
  using namespace moeperm::cann;
  return RunExecutor(kEp.name, workspace, workspaceSize, executor, stream);
}
