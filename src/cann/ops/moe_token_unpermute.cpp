// SPDX-License-Identifier: Apache-2.0
// The way back with weights; WithEp: of the rows that one process holds.
#include "moeperm/unpermute.hpp"

#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep.h"
#include "cann/ops/table.hpp"

namespace moeperm::cann {
namespace {

constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"permuted_tokens", "permutedTokens"}, {"sorted_indices", "sortedIndices"}};
constexpr Api kPlain = {"aclnnMoeTokenUnpermute", 561002, true, kNames};
constexpr Api kEp = {"aclnnMoeTokenUnpermuteWithEp", 561002, false, kNames};

struct Call {
  const Api* api;
  TensorArg rows;     // permutedTokens
  TensorArg indices;  // sortedIndices
  TensorArg probs;    // probsOptional
  bool padded_mode;
  IntsArg restore;  // restoreShapeOptional
  TensorArg out;
  bool ep = false;
  std::int64_t num_topk = 1;
  IntsArg range = {};

  [[nodiscard]] std::int64_t top_k() const { return probs ? probs.dim(1) : num_topk; }
  int Check();
  int CheckCallTiling() const;
  Status Bind(Launch* launch) const;
};

int Call::Check() {
  const std::string_view name = api->name;
  const bool own = !ep && OnAscend950();
  if (own && padded_mode) return op_msg::Unsupported(name, "paddedMode", "true", "false");
  MOEPERM_CANN_TRY(CheckGiven(name, {&rows, &indices, &out}));
  MOEPERM_CANN_TRY(FindTensors(name, {&rows, &indices, &probs, &out}));
  MOEPERM_CANN_TRY(FindInts(name, &restore));
  MOEPERM_CANN_TRY(FindInts(name, &range));
  MOEPERM_CANN_TRY(CheckFloat(name, rows));
  MOEPERM_CANN_TRY(CheckInt32(name, indices));
  if (probs) MOEPERM_CANN_TRY(CheckFloat(name, probs));
  MOEPERM_CANN_TRY(CheckSameDType(name, out, rows));
  MOEPERM_CANN_TRY(CheckDims(name, {&rows, &indices, &probs, &out}));
  return own ? 0 : CheckCallTiling();
}

int Call::CheckCallTiling() const {
  host::Problem problem;
  problem.inputs = {Describe(rows), Describe(indices), Describe(probs)};
  problem.outputs = {Describe(out)};
  if (ep) problem.attrs = {num_topk, Describe(range)};
  problem.attrs.insert(problem.attrs.end(), {padded_mode, Describe(restore)});
  return CheckTiling(*api, problem);
}

Status Call::Bind(Launch* launch) const {
  if (probs && probs.rank() != 2) return op_msg::RankNeeded(probs.name, probs.rank(), "2");
  if (indices.rank() != 1) return op_msg::RankNeeded(indices.name, indices.rank(), "1");
  if (rows.rank() != 2) return op_msg::RankNeeded(rows.name, rows.rank(), "2");
  const std::int64_t slots_a_token = top_k();
  if (!probs && slots_a_token <= 0) return op_msg::NotAbove("numTopk", slots_a_token, 0);
  const std::int64_t tokens = slots_a_token == 0 ? probs.dim(0) : indices.dim(0) / slots_a_token;
  if (probs && (probs.dim(0) != tokens || indices.dim(0) != tokens * slots_a_token)) {
    return op_msg::WrongDim(probs.name, 0, probs.dim(0), tokens, "sortedIndices / topK");
  }
  const Window window = ep ? WindowOf(range) : WindowOf(0, rows.dim(0));
  View row_view;
  View index_view;
  View prob_view;
  Output* output = nullptr;
  MOEPERM_TRY(BindRows(rows, 2, window, launch, &row_view));
  MOEPERM_TRY(BindSlots(indices, tokens * slots_a_token, launch, &index_view));
  if (probs) MOEPERM_TRY(launch->Input(probs, &prob_view));
  MOEPERM_TRY(launch->AddOutput(out, tokens, rows.dim(1), "tokens x hidden", &output));
  UnpermuteArgs args;
  args.permuted_tokens = AsInput(row_view);
  args.sorted_indices = AsInput(index_view);
  if (probs) args.probs = AsInput(prob_view);
  args.first_row = window.first;
  launch->compute = [args, output]() mutable -> Status {
    MOEPERM_TRY(output->Begin(false, &args.tokens));
    return Unpermute(args);
  };
  return {};
}

}  // namespace
}  // namespace moeperm::cann

aclnnStatus aclnnMoeTokenUnpermuteGetWorkspaceSize(const aclTensor* permutedTokens,
                                                   const aclTensor* sortedIndices,
                                                   const aclTensor* probsOptional, bool paddedMode,
                                                   const aclIntArray* restoreShapeOptional,
                                                   aclTensor* out, uint64_t* workspaceSize,
                                                   aclOpExecutor** executor) {
  using namespace moeperm::cann;
  return Prepare(kPlain,
                 Call{.api = &kPlain,
                      .rows = {"permutedTokens", permutedTokens},
                      .indices = {"sortedIndices", sortedIndices},
                      .probs = {"probsOptional", probsOptional},
                      .padded_mode = paddedMode,
                      .restore = {"restoreShapeOptional", restoreShapeOptional},
                      .out = {"out", out}},
                 workspaceSize, executor);
}

aclnnStatus aclnnMoeTokenUnpermute(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   aclrtStream stream) {
  using namespace moeperm::cann;
  return RunExecutor(kPlain.name, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(
    const aclTensor* permutedTokens, const aclTensor* sortedIndices, const aclTensor* probsOptional,
    int64_t numTopk, const aclIntArray* rangeOptional, bool paddedMode,
    const aclIntArray* restoreShapeOptional, const aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  using namespace moeperm::cann;
  return Prepare(kEp,
                 Call{.api = &kEp,
                      .rows = {"permutedTokens", permutedTokens},
                      .indices = {"sortedIndices", sortedIndices},
                      .probs = {"probsOptional", probsOptional},
                      .padded_mode = paddedMode,
                      .restore = {"restoreShapeOptional", restoreShapeOptional},
                      .out = {"out", out},
                      .ep = true,
                      .num_topk = numTopk,
                      .range = {"rangeOptional", rangeOptional}},
                 workspaceSize, executor);
}

aclnnStatus aclnnMoeTokenUnpermuteWithEp(void* workspace, uint64_t workspaceSize,
                                         aclOpExecutor* executor, aclrtStream stream) {
  using namespace moeperm::cann;
  return RunExecutor(kEp.name, workspace, workspaceSize, executor, stream);
}
