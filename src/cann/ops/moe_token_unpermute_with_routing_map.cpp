// SPDX-License-Identifier: Apache-2.0
// The way back with probs for every pair of token and expert.
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map.h"

#include <algorithm>
#include <numeric>

#include "aclnn/opdev/op_errno.h"
#include "cann/ops/table.hpp"
#include "moeperm/unpermute_with_routing_map.hpp"

namespace moeperm::cann {
namespace {

constexpr std::string_view kApi = "aclnnMoeTokenUnpermuteWithRoutingMap";
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"permuted_tokens", "permutedTokens"},
    {"sorted_indices", "sortedIndices"},
    {"routing_map", "routingMapOptional"}};
constexpr Api kEntry = {kApi, ACLNN_ERR_INNER_NULLPTR, false, kNames};

struct Call {
  TensorArg rows;     // permutedTokens
  TensorArg indices;  // sortedIndices
  TensorArg map;      // routingMapOptional
  TensorArg probs;    // probsOptional
  bool padded;
  IntsArg restore;      // restoreShapeOptional
  TensorArg out;        // unpermutedTokens
  TensorArg order_out;  // outIndex
  TensorArg ids_out;    // permuteTokenId
  TensorArg probs_out;  // permuteProbs

  [[nodiscard]] bool empty() const { return indices.empty() || (!padded && rows.empty()); }
  [[nodiscard]] std::int64_t num_tokens() const {
    return probs ? probs.dim(0) : restore.values->front();
  }
  int Check();
  int CheckCallTiling() const;
  Status BindRoutes(Launch* launch, UnpermuteWithRoutingMapArgs* args) const;
  Status Bind(Launch* launch) const;
};

int Call::Check() {
  MOEPERM_CANN_TRY(CheckGiven(kApi, {&rows, &indices}));
  if (probs.handle == nullptr && restore.handle == nullptr) {
    return op_msg::MissingTensor(kApi, "probsOptional, restoreShapeOptional too,");
  }
  MOEPERM_CANN_TRY(CheckGiven(kApi, {&out, &order_out, &ids_out}));
  if (!padded) MOEPERM_CANN_TRY(CheckGivenWith(kApi, map, probs));
  MOEPERM_CANN_TRY(
      FindTensors(kApi, {&rows, &indices, &map, &probs, &out, &order_out, &ids_out, &probs_out}));
  MOEPERM_CANN_TRY(FindInts(kApi, &restore));
  MOEPERM_CANN_TRY(CheckFloat(kApi, rows));
  MOEPERM_CANN_TRY(CheckInt32(kApi, indices));
  if (probs) {
    MOEPERM_CANN_TRY(CheckFloat(kApi, probs));
    MOEPERM_CANN_TRY(CheckProbsDType(kApi, probs, rows));
    if (probs_out) MOEPERM_CANN_TRY(CheckSameDType(kApi, probs_out, probs));
  }
  MOEPERM_CANN_TRY(CheckSameDType(kApi, out, rows));
  MOEPERM_CANN_TRY(CheckSameDType(kApi, order_out, indices));
  MOEPERM_CANN_TRY(CheckSameDType(kApi, ids_out, indices));
  MOEPERM_CANN_TRY(
      CheckDims(kApi, {&rows, &indices, &map, &probs, &out, &order_out, &ids_out, &probs_out}));
  MOEPERM_CANN_TRY(CheckRank(kApi, rows, 2));
  MOEPERM_CANN_TRY(CheckRank(kApi, indices, 1));
  MOEPERM_CANN_TRY(CheckRank(kApi, out, 2));
  return empty() ? 0 : CheckCallTiling();
}

int Call::CheckCallTiling() const {
  if (!probs && restore.values->size() != 2) {
    return op_msg::TilingFailed(kApi, "restoreShapeOptional does not have 2 numbers",
                                kEntry.no_tiling);
  }
  if (padded && !probs) return 0;  // no kernel of its own
  host::Problem problem;
  problem.inputs = {Describe(rows), Describe(indices), Describe(map), Describe(probs)};
  problem.outputs = {Describe(out), Describe(order_out), Describe(ids_out), Describe(probs_out)};
  problem.attrs = {padded, Describe(restore)};
  return CheckTiling(kEntry, problem);
}

Status Call::BindRoutes(Launch* launch, UnpermuteWithRoutingMapArgs* args) const {
  if (!probs) return {};
  if (probs.rank() != 2) return op_msg::RankNeeded(probs.name, probs.rank(), "2");
  View view;
  MOEPERM_TRY(launch->Input(probs, &view));
  args->probs = AsInput(view);
  if (padded) {
    const std::int64_t experts = probs.dim(1);
    if (experts == 0 || indices.dim(0) % experts != 0) {
      return op_msg::NotMultiple(indices.name, indices.dim(0), "the experts of probsOptional",
                                 experts);
    }
    return {};
  }
  MOEPERM_TRY(launch->Input(map, &view));
  if (view.dims != probs.meta->dims) {
    return op_msg::ShapesDiffer(map.name, view.dims, probs.name, probs.meta->dims);
  }
  if (map.meta->dtype == ACL_UINT8) view.dtype = DType::kInt8;  // bytes, 0 or not
  if (view.dtype != DType::kInt8 && view.dtype != DType::kBool) {
    return op_msg::Translated({Code::kInvalidArgument, "routing_map needs int8, uint8 or bool"},
                              kNames);
  }
  args->routing_map = AsInput(view);
  return {};
}

// Where each row stands among those sorted by token, and its token.
void WriteOrder(const ConstTensorView& tokens, const TensorView& order, const TensorView& ids) {
  const std::int64_t count = tokens.shape(0);
  const auto* const from = static_cast<const std::int32_t*>(tokens.data());
  std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  const auto token = [&](std::int32_t row) { return from[row * tokens.stride(0)]; };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](std::int32_t a, std::int32_t b) { return token(a) < token(b); });
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t row = rows[static_cast<std::size_t>(i)];
    static_cast<std::int32_t*>(order.data())[i * order.stride(0)] = row;
    static_cast<std::int32_t*>(ids.data())[i * ids.stride(0)] = token(row);
  }
}

Status Call::Bind(Launch* launch) const {
  if (empty()) {
    for (const TensorArg* arg : {&out, &order_out, &ids_out, &probs_out}) {
      MOEPERM_TRY(launch->Zero(*arg));
    }
    return {};
  }
  const std::int64_t tokens = num_tokens();
  const std::int64_t top_k = tokens > 0 ? rows.dim(0) / tokens : 0;
  const std::int64_t slots = padded ? indices.dim(0) : top_k * tokens;
  if (tokens < 0) return op_msg::NotAbove(restore.name, tokens, -1);
  View row_view;
  View index_view;
  Output* output = nullptr;
  Output* order = nullptr;
  Output* ids = nullptr;
  Output* gathered = nullptr;
  UnpermuteWithRoutingMapArgs args;
  MOEPERM_TRY(BindRows(rows, 2, WindowOf(0, padded ? slots : rows.dim(0)), launch, &row_view));
  MOEPERM_TRY(BindSlots(indices, slots, launch, &index_view));
  MOEPERM_TRY(BindRoutes(launch, &args));
  MOEPERM_TRY(launch->AddOutput(out, tokens, rows.dim(1), "tokens x hidden", &output));
  if (padded) {
    MOEPERM_TRY(launch->AddOutput(order_out, slots, 1, "rows", &order));
    MOEPERM_TRY(launch->AddOutput(ids_out, slots, 1, "rows", &ids));
  } else {
    MOEPERM_TRY(launch->Zero(order_out));
    MOEPERM_TRY(launch->Zero(ids_out));
  }
  const bool no_slots = !padded && top_k == 0;  // zeros, whatever the map says
  if (probs && probs_out && !no_slots) {
    MOEPERM_TRY(launch->AddOutput(probs_out, slots, 1, "slots", &gathered));
  } else {
    MOEPERM_TRY(launch->Zero(probs_out));
  }
  args.permuted_tokens = AsInput(row_view);
  args.sorted_indices = AsInput(index_view);
  args.drop_and_pad = padded;
  args.skip_rows_out_of_range = !padded;
  args.round_products = padded && probs && probs.meta->dtype == rows.meta->dtype;
  if (no_slots) args.probs.reset();
  launch->compute = [args, output, order, ids, gathered]() mutable -> Status {
    TensorView rows_by_token;
    TensorView tokens_of_rows;
    MOEPERM_TRY(output->Begin(false, &args.tokens));
    if (gathered != nullptr) MOEPERM_TRY(gathered->Begin(true, &args.gathered_probs.emplace()));
    MOEPERM_TRY(UnpermuteWithRoutingMap(args));
    if (order == nullptr) return {};
    MOEPERM_TRY(order->Begin(true, &rows_by_token));
    MOEPERM_TRY(ids->Begin(true, &tokens_of_rows));
    WriteOrder(args.sorted_indices, rows_by_token, tokens_of_rows);
    return {};
  };
  return {};
}

}  // namespace
}  // namespace moeperm::cann

aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
    const aclTensor* permutedTokens, const aclTensor* sortedIndices,
    const aclTensor* routingMapOptional, const aclTensor* probsOptional, bool paddedMode,
    const aclIntArray* restoreShapeOptional, aclTensor* unpermutedTokens, aclTensor* outIndex,
    aclTensor* permuteTokenId, aclTensor* permuteProbs, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  using namespace moeperm::cann;
  return Prepare(kEntry,
                 Call{.rows = {"permutedTokens", permutedTokens},
                      .indices = {"sortedIndices", sortedIndices},
                      .map = {"routingMapOptional", routingMapOptional},
                      .probs = {"probsOptional", probsOptional},
                      .padded = paddedMode,
                      .restore = {"restoreShapeOptional", restoreShapeOptional},
                      .out = {"unpermutedTokens", unpermutedTokens},
                      .order_out = {"outIndex", outIndex},
                      .ids_out = {"permuteTokenId", permuteTokenId},
                      .probs_out = {"permuteProbs", permuteProbs}},
                 workspaceSize, executor);
}

aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMap(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, aclrtStream stream) {
  using namespace moeperm::cann;
  return RunExecutor(kApi, workspace, workspaceSize, executor, stream);
}
