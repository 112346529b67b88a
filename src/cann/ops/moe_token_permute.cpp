// SPDX-License-Identifier: Apache-2.0
// The table form forward; WithEp: with probs, and of the rows that one process holds.
#include "aclnnop/aclnn_moe_token_permute.h"

#include <algorithm>

#include "aclnnop/aclnn_moe_token_permute_with_ep.h"
#include "cann/ops/table.hpp"
#include "moeperm/permute.hpp"

namespace moeperm::cann {
namespace {

constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"num_out_tokens", "numOutTokens"}, {"sorted_indices", "sortedIndicesOut"}};
constexpr Api kPlain = {"aclnnMoeTokenPermute", 561002, true, kNames};
constexpr Api kEp = {"aclnnMoeTokenPermuteWithEp", 561002, false, kNames};

struct Call {
  const Api* api;
  TensorArg tokens;
  TensorArg indices;
  std::int64_t num_out_tokens;
  bool padded_mode;
  TensorArg tokens_out;   // permuteTokensOut
  TensorArg indices_out;  // sortedIndicesOut
  bool ep = false;
  TensorArg probs = {};  // probsOptional
  IntsArg range = {};
  TensorArg probs_out = {};  // permuteProbsOut

  int Check();
  int CheckTypes() const;
  int CheckCallTiling() const;
  Status RowsOfCall(std::int64_t slots, Window* window) const;
  Status CheckShapes(std::int64_t* hidden, std::int64_t* slots) const;
  Status Bind(Launch* launch) const;
};

int Call::Check() {
  const std::string_view name = api->name;
  const bool own = !ep && OnAscend950();
  if (own && padded_mode) return op_msg::Unsupported(name, "paddedMode", "true", "false");
  MOEPERM_CANN_TRY(CheckGiven(name, {&tokens, &indices, &tokens_out, &indices_out}));
  MOEPERM_CANN_TRY(CheckGivenWith(name, probs_out, probs));
  MOEPERM_CANN_TRY(
      FindTensors(name, {&tokens, &indices, &probs, &tokens_out, &indices_out, &probs_out}));
  MOEPERM_CANN_TRY(FindInts(name, &range));
  MOEPERM_CANN_TRY(CheckTypes());
  MOEPERM_CANN_TRY(
      CheckDims(name, {&tokens, &indices, &probs, &tokens_out, &indices_out, &probs_out}));
  return own ? 0 : CheckCallTiling();
}

// int8 tokens have an interface, but no computation here.
int Call::CheckTypes() const {
  const std::string_view name = api->name;
  if (ep || tokens.meta->dtype != ACL_INT8) MOEPERM_CANN_TRY(CheckFloat(name, tokens));
  MOEPERM_CANN_TRY(CheckIndex(name, indices));
  if (probs) MOEPERM_CANN_TRY(CheckSameDType(name, probs, tokens));
  MOEPERM_CANN_TRY(CheckSameDType(name, tokens_out, tokens));
  MOEPERM_CANN_TRY(CheckInt32(name, indices_out));
  return probs ? CheckSameDType(name, probs_out, probs) : 0;
}

int Call::CheckCallTiling() const {
  host::Problem problem;
  problem.inputs = {Describe(tokens), Describe(indices)};
  problem.outputs = {Describe(tokens_out), Describe(indices_out)};
  if (ep) {
    problem.inputs.push_back(Describe(probs));
    problem.outputs.push_back(Describe(probs_out));
    problem.attrs.push_back(Describe(range));
  }
  problem.attrs.insert(problem.attrs.end(), {num_out_tokens, padded_mode});
  return CheckTiling(*api, problem);
}

// Plain: the first rows, and of a number that is not positive all but the last so many. WithEp: the
// range, or [0, numOutTokens) without one; an empty one is all rows.
Status Call::RowsOfCall(std::int64_t slots, Window* window) const {
  std::int64_t start = 0;
  std::int64_t end = num_out_tokens;
  if (range.values) {
    if (range.values->size() != 2) {
      return op_msg::TooShort(range.name, std::ssize(*range.values), 2, "first row, and one past");
    }
    start = (*range.values)[0];
    end = (*range.values)[1];
  }
  if (ep) {
    for (const std::int64_t bound : {start, end}) {
      if (bound < 0) return op_msg::NotAbove(range.name, bound, -1);
      if (bound > slots) return op_msg::TooLong(range.name, bound, slots, "slots");
    }
  }
  std::int64_t rows = end;
  if (ep) rows = end - start;
  if (rows <= 0) rows = rows < -slots ? 0 : rows + slots;
  rows = std::min(rows, slots);
  *window = {rows == slots ? 0 : start, rows, 0};
  return {};
}

Status Call::CheckShapes(std::int64_t* hidden, std::int64_t* slots) const {
  const std::size_t rank = indices.rank();
  if (tokens.rank() < 2) return op_msg::RankNeeded(tokens.name, tokens.rank(), "2 or more");
  if (rank != 1 && rank != 2) return op_msg::RankNeeded(indices.name, rank, "1 or 2");
  if (probs && probs.meta->dims != indices.meta->dims) {
    return op_msg::ShapesDiffer(probs.name, probs.meta->dims, indices.name, indices.meta->dims);
  }
  if (tokens.dim(0) != indices.dim(0)) {
    return op_msg::WrongDim(tokens.name, 0, tokens.dim(0), indices.dim(0), "as in indices");
  }
  *hidden = 1;
  *slots = indices.dim(0);
  bool overflow = rank == 2 && __builtin_mul_overflow(*slots, indices.dim(1), slots);
  for (std::size_t i = 1; i < tokens.rank(); ++i) {
    overflow = __builtin_mul_overflow(*hidden, tokens.dim(i), hidden) || overflow;
  }
  if (overflow) return op_msg::TooLarge(tokens.name, tokens.meta->dims);
  return {};
}

Status Call::Bind(Launch* launch) const {
  View token_view;
  View index_view;
  View prob_view;
  Window window;
  std::int64_t hidden = 0;
  std::int64_t slots = 0;
  Output* output = nullptr;
  Output* index_output = nullptr;
  Output* probs_output = nullptr;
  MOEPERM_TRY(CheckShapes(&hidden, &slots));
  MOEPERM_TRY(RowsOfCall(slots, &window));
  MOEPERM_TRY(launch->Input(tokens, &token_view));
  MOEPERM_TRY(launch->Input(indices, &index_view));
  MOEPERM_TRY(launch->AddOutput(tokens_out, window.count, hidden, "rows x hidden", &output));
  MOEPERM_TRY(launch->AddOutput(indices_out, slots, 1, "slots of indices", &index_output));
  PermuteArgs args;
  if (probs) {
    MOEPERM_TRY(launch->Input(probs, &prob_view));
    MOEPERM_TRY(launch->AddOutput(probs_out, window.count, 1, "rows", &probs_output));
    args.probs = AsInput(prob_view);
  } else {
    MOEPERM_TRY(launch->Zero(probs_out));
  }
  args.indices = AsInput(index_view);
  args.num_out_tokens = window.count;
  args.first_row = window.first;
  // What the library refuses of sizes and dtypes, before anything is queued.
  PermuteSpecs specs;
  const std::int64_t shape[] = {tokens.dim(0), hidden};
  args.tokens = ConstTensorView(nullptr, token_view.dtype, shape);
  MOEPERM_TRY(InferPermute(args, &specs));
  Reshaped* const matrix =
      &launch->AddReshaped(Reshaped(std::move(token_view), tokens.dim(0), hidden));
  launch->compute = [args, matrix, output, index_output, probs_output]() mutable -> Status {
    MOEPERM_TRY(matrix->Load(&args.tokens));
    MOEPERM_TRY(output->Begin(false, &args.permuted_tokens));
    MOEPERM_TRY(index_output->Begin(true, &args.sorted_indices));
    if (probs_output != nullptr) {
      MOEPERM_TRY(probs_output->Begin(true, &args.permuted_probs.emplace()));
    }
    return Permute(args);
  };
  return {};
}

}  // namespace
}  // namespace moeperm::cann

aclnnStatus aclnnMoeTokenPermuteGetWorkspaceSize(const aclTensor* tokens, const aclTensor* indices,
                                                 int64_t numOutTokens, bool paddedMode,
                                                 const aclTensor* permuteTokensOut,
                                                 const aclTensor* sortedIndicesOut,
                                                 uint64_t* workspaceSize,
                                                 aclOpExecutor** executor) {
  using namespace moeperm::cann;
  return Prepare(kPlain,
                 Call{.api = &kPlain,
                      .tokens = {"tokens", tokens},
                      .indices = {"indices", indices},
                      .num_out_tokens = numOutTokens,
                      .padded_mode = paddedMode,
                      .tokens_out = {"permuteTokensOut", permuteTokensOut},
                      .indices_out = {"sortedIndicesOut", sortedIndicesOut}},
                 workspaceSize, executor);
}

aclnnStatus aclnnMoeTokenPermute(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                 aclrtStream stream) {
  using namespace moeperm::cann;
  return RunExecutor(kPlain.name, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMoeTokenPermuteWithEpGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* indices, const aclTensor* probsOptional,
    const aclIntArray* rangeOptional, int64_t numOutTokens, bool paddedMode,
    const aclTensor* permuteTokensOut, const aclTensor* sortedIndicesOut,
    const aclTensor* permuteProbsOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  using namespace moeperm::cann;
  return Prepare(kEp,
                 Call{.api = &kEp,
                      .tokens = {"tokens", tokens},
                      .indices = {"indices", indices},
                      .num_out_tokens = numOutTokens,
                      .padded_mode = paddedMode,
                      .tokens_out = {"permuteTokensOut", permuteTokensOut},
                      .indices_out = {"sortedIndicesOut", sortedIndicesOut},
                      .ep = true,
                      .probs = {"probsOptional", probsOptional},
                      .range = {"rangeOptional", rangeOptional},
                      .probs_out = {"permuteProbsOut", permuteProbsOut}},
                 workspaceSize, executor);
}

aclnnStatus aclnnMoeTokenPermuteWithEp(void* workspace, uint64_t workspaceSize,
                                       aclOpExecutor* executor, aclrtStream stream) {
  using namespace moeperm::cann;
  return RunExecutor(kEp.name, workspace, workspaceSize, executor, stream);
}
