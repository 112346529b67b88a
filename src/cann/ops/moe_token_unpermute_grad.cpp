// SPDX-License-Identifier: Apache-2.0
// The gradients of the way back; WithEp: of the rows that one process holds.
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"

#include <algorithm>

#include "aclnnop/aclnn_moe_token_unpermute_with_ep_grad.h"
#include "cann/ops/table.hpp"
#include "moeperm/unpermute.hpp"

namespace moeperm::cann {
namespace {

constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"sorted_indices", "sortedIndices"}, {"tokens_grad", "unpermutedTokensGrad"}};
constexpr Api kPlain = {"aclnnMoeTokenUnpermuteGrad", 561002, true, kNames};
constexpr Api kEp = {"aclnnMoeTokenUnpermuteWithEpGrad", 561002, false, kNames};

struct Call {
  const Api* api;
  TensorArg rows;     // permuteTokens, permutedTokensOptional
  TensorArg tokens;   // unpermutedTokensGrad
  TensorArg indices;  // sortedIndices
  TensorArg probs;    // probsOptional
  bool padded_mode;
  IntsArg restore;      // restoreShapeOptional
  TensorArg rows_out;   // permutedTokensGradOut
  TensorArg probs_out;  // probsGradOut
  bool ep = false;
  IntsArg range = {};
  std::int64_t num_topk = 1;

  [[nodiscard]] std::int64_t top_k() const { return probs ? probs.dim(1) : num_topk; }
  int Check();
  int CheckCallTiling() const;
  Window RowsOfCall() const;
  Status Bind(Launch* launch) const;
};

int Call::Check() {
  const std::string_view name = api->name;
  const bool own = !ep && OnAscend950();
  if (own) {
    if (padded_mode) return op_msg::Unsupported(name, "paddedMode", "true", "false");
    MOEPERM_CANN_TRY(CheckGiven(name, {&rows}));
  }
  MOEPERM_CANN_TRY(CheckGiven(name, {&tokens, &indices, &rows_out}));
  if (own) MOEPERM_CANN_TRY(CheckGiven(name, {&probs_out}));
  MOEPERM_CANN_TRY(CheckGivenWith(name, rows, probs));
  MOEPERM_CANN_TRY(CheckGivenWith(name, probs_out, probs));
  MOEPERM_CANN_TRY(FindTensors(name, {&rows, &tokens, &indices, &probs, &rows_out, &probs_out}));
  MOEPERM_CANN_TRY(FindInts(name, &restore));
  MOEPERM_CANN_TRY(FindInts(name, &range));
  MOEPERM_CANN_TRY(CheckFloat(name, tokens));
  if (rows) MOEPERM_CANN_TRY(CheckSameDType(name, rows, tokens));
  MOEPERM_CANN_TRY(CheckInt32(name, indices));
  if (probs) MOEPERM_CANN_TRY(CheckFloat(name, probs));
  MOEPERM_CANN_TRY(CheckSameDType(name, rows_out, tokens));
  if (probs) MOEPERM_CANN_TRY(CheckSameDType(name, probs_out, probs));
  MOEPERM_CANN_TRY(CheckDims(name, {&rows, &tokens, &indices, &probs, &rows_out, &probs_out}));
  return own ? 0 : CheckCallTiling();
}

int Call::CheckCallTiling() const {
  host::Problem problem;
  problem.inputs = {Describe(rows), Describe(tokens), Describe(indices), Describe(probs)};
  if (ep) problem.inputs = {Describe(tokens), Describe(indices), Describe(rows), Describe(probs)};
  problem.outputs = {Describe(rows_out), Describe(probs_out)};
  problem.attrs = {padded_mode, Describe(restore)};
  if (ep) problem.attrs.insert(problem.attrs.end(), {Describe(range), num_topk});
  return CheckTiling(*api, problem);
}

// The ranks are known. Rows past the tensor of the rows, and without one past the output, are
// none: a forward that was cut has no rows for some slots.
Window Call::RowsOfCall() const {
  const std::int64_t slots = indices.dim(0);
  const std::int64_t last = std::min(slots, rows ? rows.dim(0) : rows_out.dim(0));
  if (!ep || !range.values) return WindowOf(0, last);
  if (range.values->size() != 2) return {};
  const auto bound = [slots](std::int64_t value) {
    return std::clamp<std::int64_t>(value < 0 ? value + slots : value, 0, slots);
  };
  const std::int64_t start = bound((*range.values)[0]);
  const std::int64_t end = bound((*range.values)[1]);
  return WindowOf(start, start == 0 ? std::min(end, last) : end);
}

Status Call::Bind(Launch* launch) const {
  for (const TensorArg* arg : {&tokens, &rows_out, rows ? &rows : &tokens}) {
    if (arg->rank() != 2) return op_msg::RankNeeded(arg->name, arg->rank(), "2");
  }
  if (probs && probs.rank() != 2) return op_msg::RankNeeded(probs.name, probs.rank(), "2");
  if (indices.rank() != 1) return op_msg::RankNeeded(indices.name, indices.rank(), "1");
  const std::int64_t count = tokens.dim(0);
  const std::int64_t hidden = tokens.dim(1);
  std::int64_t slots = 0;
  if (top_k() < 0) return op_msg::NotAbove("topkNum", num_topk, -1);
  if (__builtin_mul_overflow(count, top_k(), &slots)) {
    return op_msg::TooShort(indices.name, indices.dim(0), INT64_MAX, "tokens x topK");
  }
  const Window window = RowsOfCall();
  View token_view;
  View index_view;
  View row_view;
  View prob_view;
  Output* output = nullptr;
  Output* probs_output = nullptr;
  MOEPERM_TRY(launch->Input(tokens, &token_view));
  MOEPERM_TRY(BindSlots(indices, slots, launch, &index_view));
  MOEPERM_TRY(launch->AddOutput(rows_out, window.count, hidden, "rows x hidden", &output));
  UnpermuteGradArgs args;
  if (probs) {
    if (rows.dim(1) != hidden) {
      return op_msg::WrongDim(rows.name, 1, rows.dim(1), hidden, "as in unpermutedTokensGrad");
    }
    if (probs.dim(0) != count) {
      return op_msg::WrongDim(probs.name, 0, probs.dim(0), count, "as in unpermutedTokensGrad");
    }
    MOEPERM_TRY(BindRows(rows, 2, window, launch, &row_view));
    MOEPERM_TRY(launch->Input(probs, &prob_view));
    MOEPERM_TRY(launch->AddOutput(probs_out, count, top_k(), "tokens x topK", &probs_output));
    args.permuted_tokens = AsInput(row_view);
    args.probs = AsInput(prob_view);
  } else {
    MOEPERM_TRY(launch->Zero(probs_out));
  }
  args.tokens_grad = AsInput(token_view);
  args.sorted_indices = AsInput(index_view);
  args.first_row = window.first;
  launch->compute = [args, output, probs_output]() mutable -> Status {
    MOEPERM_TRY(output->Begin(false, &args.permuted_tokens_grad.emplace()));
    if (probs_output != nullptr) {
      MOEPERM_TRY(probs_output->Begin(false, &args.probs_grad.emplace()));
    }
    return UnpermuteGrad(args);
  };
  return {};
}

}  // namespace
}  // namespace moeperm::cann

aclnnStatus aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
    const aclTensor* permuteTokens, const aclTensor* unpermutedTokensGrad,
    const aclTensor* sortedIndices, const aclTensor* probsOptional, bool paddedMode,
    const aclIntArray* restoreShapeOptional, aclTensor* permutedTokensGradOut,
    aclTensor* probsGradOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  using namespace moeperm::cann;
  return Prepare(kPlain,
                 Call{.api = &kPlain,
                      .rows = {"permuteTokens", permuteTokens},
                      .tokens = {"unpermutedTokensGrad", unpermutedTokensGrad},
                      .indices = {"sortedIndices", sortedIndices},
                      .probs = {"probsOptional", probsOptional},
                      .padded_mode = paddedMode,
                      .restore = {"restoreShapeOptional", restoreShapeOptional},
                      .rows_out = {"permutedTokensGradOut", permutedTokensGradOut},
                      .probs_out = {"probsGradOut", probsGradOut}},
                 workspaceSize, executor);
}

aclnnStatus aclnnMoeTokenUnpermuteGrad(void* workspace, uint64_t workspaceSize,
                                       aclOpExecutor* executor, aclrtStream stream) {
  using namespace moeperm::cann;
  return RunExecutor(kPlain.name, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
    const aclTensor* unpermutedTokensGrad, const aclTensor* sortedIndices,
    const aclTensor* permutedTokensOptional, const aclTensor* probsOptional, bool paddedMode,
    const aclIntArray* restoreShapeOptional, const aclIntArray* rangeOptional, int64_t topkNum,
    const aclTensor* permutedTokensGradOut, const aclTensor* probsGradOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  using namespace moeperm::cann;
  return Prepare(kEp,
                 Call{.api = &kEp,
                      .rows = {"permutedTokensOptional", permutedTokensOptional},
                      .tokens = {"unpermutedTokensGrad", unpermutedTokensGrad},
                      .indices = {"sortedIndices", sortedIndices},
                      .probs = {"probsOptional", probsOptional},
                      .padded_mode = paddedMode,
                      .restore = {"restoreShapeOptional", restoreShapeOptional},
                      .rows_out = {"permutedTokensGradOut", permutedTokensGradOut},
                      .probs_out = {"probsGradOut", probsGradOut},
                      .ep = true,
                      .range = {"rangeOptional", rangeOptional},
                      .num_topk = topkNum},
                 workspaceSize, executor);
}

aclnnStatus aclnnMoeTokenUnpermuteWithEpGrad(void* workspace, uint64_t workspaceSize,
                                             aclOpExecutor* executor, aclrtStream stream) {
  using namespace moeperm::cann;
  return RunExecutor(kEp.name, workspace, workspaceSize, executor, stream);
}
