// SPDX-License-Identifier: Apache-2.0
// The gradients of the way back with probs for every pair of token and expert.
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map_grad.h"

#include <algorithm>

#include "cann/ops/table.hpp"
#include "moeperm/unpermute_with_routing_map.hpp"

namespace moeperm::cann {
namespace {

constexpr std::string_view kApi = "aclnnMoeTokenUnpermuteWithRoutingMapGrad";
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"sorted_indices", "outIndex"},
    {"routing_map", "routingMapOptional"},
    {"tokens_grad", "unpermutedTokensGrad"}};
constexpr Api kEntry = {kApi, 561002, false, kNames};

struct Call {
  TensorArg tokens;     // unpermutedTokensGrad
  TensorArg indices;    // outIndex
  TensorArg ids;        // permuteTokenId
  TensorArg map;        // routingMapOptional
  TensorArg rows;       // permutedTokensOptional
  TensorArg probs;      // probsOptional
  bool padded;          // dropAndPad
  IntsArg restore;      // restoreShapeOptional
  TensorArg rows_out;   // permutedTokensGradOut
  TensorArg probs_out;  // probsGradOutOptional

  int Check();
  Status CheckShapes() const;
  Status BindProbs(Launch* launch, UnpermuteWithRoutingMapGradArgs* args, Output** output) const;
  Status Bind(Launch* launch) const;
};

int Call::Check() {
  MOEPERM_CANN_TRY(CheckGiven(kApi, {&tokens, &indices, &ids, &rows_out}));
  MOEPERM_CANN_TRY(
      FindTensors(kApi, {&tokens, &indices, &ids, &map, &rows, &probs, &rows_out, &probs_out}));
  MOEPERM_CANN_TRY(FindInts(kApi, &restore));
  MOEPERM_CANN_TRY(CheckFloat(kApi, tokens));
  MOEPERM_CANN_TRY(CheckInt32(kApi, indices));
  MOEPERM_CANN_TRY(CheckInt32(kApi, ids));
  if (map) MOEPERM_CANN_TRY(CheckRoutingMap(kApi, map));
  if (rows) MOEPERM_CANN_TRY(CheckSameDType(kApi, rows, tokens));
  if (probs) {
    MOEPERM_CANN_TRY(CheckFloat(kApi, probs));
    MOEPERM_CANN_TRY(CheckProbsDType(kApi, probs, tokens));
  }
  MOEPERM_CANN_TRY(CheckSameDType(kApi, rows_out, tokens));
  if (probs && probs_out) MOEPERM_CANN_TRY(CheckSameDType(kApi, probs_out, probs));
  MOEPERM_CANN_TRY(
      CheckDims(kApi, {&tokens, &indices, &ids, &map, &rows, &probs, &rows_out, &probs_out}));
  host::Problem problem;
  problem.inputs = {Describe(tokens), Describe(indices), Describe(ids),
                    Describe(map),    Describe(rows),    Describe(probs)};
  problem.outputs = {Describe(rows_out), Describe(probs_out)};
  problem.attrs = {padded, Describe(restore)};
  return CheckTiling(kEntry, problem);
}

Status Call::CheckShapes() const {
  if (tokens.rank() != 2) return op_msg::RankNeeded(tokens.name, tokens.rank(), "2");
  for (const TensorArg* arg : {&indices, &ids}) {
    if (arg->rank() != 1) return op_msg::RankNeeded(arg->name, arg->rank(), "1");
  }
  if (ids.dim(0) != indices.dim(0)) {
    return op_msg::WrongDim(ids.name, 0, ids.dim(0), indices.dim(0), "as in outIndex");
  }
  if (!probs) return {};
  for (const TensorArg* arg : {&map, &rows}) {
    if (!*arg)
      return {Code::kInvalidArgument, std::string(arg->name) + " is missing: probs are given"};
  }
  for (const TensorArg* arg : {&probs, &map, &rows}) {
    if (arg->rank() != 2) return op_msg::RankNeeded(arg->name, arg->rank(), "2");
  }
  if (probs.dim(0) != tokens.dim(0)) {
    return op_msg::WrongDim(probs.name, 0, probs.dim(0), tokens.dim(0), "as unpermutedTokensGrad");
  }
  if (rows.dim(1) != tokens.dim(1)) {
    return op_msg::WrongDim(rows.name, 1, rows.dim(1), tokens.dim(1), "as unpermutedTokensGrad");
  }
  if (!padded && map.meta->dims != probs.meta->dims) {
    return op_msg::ShapesDiffer(map.name, map.meta->dims, probs.name, probs.meta->dims);
  }
  const std::int64_t experts = probs.dim(1);
  if (padded && (experts == 0 ? indices.dim(0) != 0 : indices.dim(0) % experts != 0)) {
    return op_msg::NotMultiple(indices.name, indices.dim(0), "the experts of probsOptional",
                               experts);
  }
  return {};
}

Status Call::BindProbs(Launch* launch, UnpermuteWithRoutingMapGradArgs* args,
                       Output** output) const {
  View view;
  MOEPERM_TRY(launch->Input(probs, &view));
  args->probs = AsInput(view);
  if (!padded) {
    MOEPERM_TRY(launch->Input(map, &view));
    args->routing_map = AsInput(view);
  }
  if (!probs_out) return {};
  MOEPERM_TRY(BindRows(rows, 2, WindowOf(0, indices.dim(0)), launch, &view));
  args->permuted_tokens = AsInput(view);
  return launch->AddOutput(probs_out, probs.dim(0), probs.dim(1), "tokens x experts", output);
}

// Drop-and-pad: the token of each row, from the rows and the tokens they were sorted with.
Status FindTokens(const ConstTensorView& rows, const ConstTensorView& ids, std::int64_t tokens,
                  Buffer<std::int32_t>* out) {
  const std::int64_t count = rows.shape(0);
  MOEPERM_TRY(out->Allocate(count));
  std::fill_n(out->data(), count, -1);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t row = static_cast<const std::int32_t*>(rows.data())[i * rows.stride(0)];
    const std::int32_t token = static_cast<const std::int32_t*>(ids.data())[i * ids.stride(0)];
    if (row < 0 || row >= count) return op_msg::OutOfBounds("outIndex", i, row, count, "rows");
    if (token < 0 || token >= tokens) {
      return op_msg::OutOfBounds("permuteTokenId", i, token, tokens, "tokens");
    }
    // Each row once, or some row would have no token.
    if ((*out)[row] >= 0) return op_msg::OutOfBounds("outIndex", i, row, count, "rows, each once");
    (*out)[row] = token;
  }
  return {};
}

Status Call::Bind(Launch* launch) const {
  MOEPERM_TRY(CheckShapes());
  const std::int64_t num_tokens = tokens.dim(0);
  const std::int64_t num_rows = indices.dim(0);
  const std::int64_t top_k = num_tokens == 0 ? 0 : num_rows / num_tokens;
  View token_view;
  View index_view;
  View id_view;
  Output* output = nullptr;
  Output* probs_output = nullptr;
  UnpermuteWithRoutingMapGradArgs args;
  MOEPERM_TRY(launch->Input(tokens, &token_view));
  MOEPERM_TRY(BindSlots(indices, padded ? num_rows : top_k * num_tokens, launch, &index_view));
  if (padded) MOEPERM_TRY(launch->Input(ids, &id_view));
  MOEPERM_TRY(launch->AddOutput(rows_out, num_rows, tokens.dim(1), "rows x hidden", &output));
  // Without slots no prob has a part, whatever the map says.
  if (probs && (padded || top_k > 0)) {
    MOEPERM_TRY(BindProbs(launch, &args, &probs_output));
  } else {
    MOEPERM_TRY(launch->Zero(probs_out));
  }
  args.tokens_grad = AsInput(token_view);
  args.sorted_indices = AsInput(index_view);
  args.drop_and_pad = padded;
  const ConstTensorView token_ids = padded ? AsInput(id_view) : ConstTensorView();
  launch->compute = [args, token_ids, num_tokens, output, probs_output]() mutable -> Status {
    Buffer<std::int32_t> row_tokens;
    if (args.drop_and_pad) {
      MOEPERM_TRY(FindTokens(args.sorted_indices, token_ids, num_tokens, &row_tokens));
      args.sorted_indices = ConstTensorView(row_tokens.data(), {token_ids.shape(0)});
    }
    MOEPERM_TRY(output->Begin(false, &args.permuted_tokens_grad.emplace()));
    if (probs_output != nullptr) {
      MOEPERM_TRY(probs_output->Begin(false, &args.probs_grad.emplace()));
    }
    return UnpermuteWithRoutingMapGrad(args);
  };
  return {};
}

}  // namespace
}  // namespace moeperm::cann

aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
    const aclTensor* unpermutedTokensGrad, const aclTensor* outIndex,
    const aclTensor* permuteTokenId, const aclTensor* routingMapOptional,
    const aclTensor* permutedTokensOptional, const aclTensor* probsOptional, bool dropAndPad,
    const aclIntArray* restoreShapeOptional, const aclTensor* permutedTokensGradOut,
    const aclTensor* probsGradOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor) {
  using namespace moeperm::cann;
  return Prepare(kEntry,
                 Call{.tokens = {"unpermutedTokensGrad", unpermutedTokensGrad},
                      .indices = {"outIndex", outIndex},
                      .ids = {"permuteTokenId", permuteTokenId},
                      .map = {"routingMapOptional", routingMapOptional},
                      .rows = {"permutedTokensOptional", permutedTokensOptional},
                      .probs = {"probsOptional", probsOptional},
                      .padded = dropAndPad,
                      .restore = {"restoreShapeOptional", restoreShapeOptional},
                      .rows_out = {"permutedTokensGradOut", permutedTokensGradOut},
                      .probs_out = {"probsGradOutOptional", probsGradOutOptional}},
                 workspaceSize, executor);
}

aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGrad(void* workspace, uint64_t workspaceSize,
                                                     aclOpExecutor* executor, aclrtStream stream) {
  using namespace moeperm::cann;
  return RunExecutor(kApi, workspace, workspaceSize, executor, stream);
}
