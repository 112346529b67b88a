// SPDX-License-Identifier: Apache-2.0
// The way back with probs for every pair of token and expert: the same recipe as unpermute.cpp, the
// weights found through the map (not padded) or the rows' experts (drop-and-pad).
#include "moeperm/unpermute_with_routing_map.hpp"

#include <cstring>

#include "base/status_macros.hpp"
#include "ops/common.hpp"
#include "rowmap/map_view.hpp"
#include "rowmap/row_map_impl.hpp"
#include "rowmap/slot_experts.hpp"
#include "rows/rows.hpp"
#include "rows/weights.hpp"

namespace moeperm {
namespace {

// What both directions are told of the routes.
struct Routes {
  const ConstTensorView& sorted_indices;
  const std::optional<ConstTensorView>& routing_map;
  const std::optional<ConstTensorView>& probs;
  bool drop_and_pad;
  std::int64_t num_tokens;
  std::int64_t num_rows;

  [[nodiscard]] std::int64_t num_experts() const { return probs ? probs->shape(1) : 0; }
};

Status CheckRoutes(const Routes& routes, Views* views) {
  MOEPERM_TRY(CheckInput("sorted_indices", routes.sorted_indices, 1, Kind::kIndex));
  MOEPERM_TRY(CheckCount("sorted_indices", routes.sorted_indices, 0));
  std::int64_t top_k = 0;
  if (routes.drop_and_pad) {
    MOEPERM_TRY(
        CheckDim("sorted_indices", routes.sorted_indices, 0, routes.num_rows, "permuted rows"));
  } else {
    MOEPERM_TRY(SlotsPerToken(routes.sorted_indices, routes.num_tokens, &top_k));
  }
  views->In("sorted_indices", routes.sorted_indices);
  if (!routes.probs) return {};
  MOEPERM_TRY(CheckInput("probs", *routes.probs, 2, Kind::kFloat));
  MOEPERM_TRY(CheckDim("probs", *routes.probs, 0, routes.num_tokens, "tokens"));
  MOEPERM_TRY(CheckCount("probs", *routes.probs, 1));
  views->In("probs", routes.probs);
  const std::int64_t experts = routes.num_experts();
  if (routes.drop_and_pad) {
    const bool divides = experts == 0 ? routes.num_rows == 0 : routes.num_rows % experts == 0;
    return divides ? Status() : msg::RowsNotMultiple(routes.num_rows, experts);
  }
  if (!routes.routing_map) return msg::Missing("routing_map", "probs are given, not padded");
  views->In("routing_map", routes.routing_map);
  return CheckInputOf("routing_map", *routes.routing_map, Kind::kRoutingMap,
                      {{routes.num_tokens, "tokens"}, {experts, "experts of probs"}});
}

// The rows of each token, and the column of probs of each slot.
struct WeightedIndex {
  TokenRows rows;
  std::int64_t num_slots = 0;
  Buffer<std::int32_t> columns;  // where there are probs

  [[nodiscard]] SlotColumns slots() const { return {rows, columns.data()}; }

  Status Build(const Context::Impl& context, const Routes& routes) {
    num_slots = routes.sorted_indices.shape(0);
    MOEPERM_TRY(values_.Load(routes.sorted_indices));
    if (!routes.drop_and_pad) {
      const std::int64_t top_k = routes.num_tokens == 0 ? 0 : num_slots / routes.num_tokens;
      rows = {routes.num_tokens, values_.data(), nullptr, top_k};
      return routes.probs ? FindSlotExperts(context, *routes.routing_map, top_k, &columns)
                          : Status();
    }
    std::int64_t bad = -1;
    MOEPERM_TRY(by_token_.Build(context, values_.data(), num_slots, routes.num_tokens, &bad));
    if (bad >= 0) {
      return msg::TokenOutOfRange(bad, IndexAt(routes.sorted_indices, bad), routes.num_tokens);
    }
    rows = {routes.num_tokens, by_token_.rows.data(), by_token_.offsets.data(), 0};
    if (!routes.probs) return {};
    MOEPERM_TRY(columns.Allocate(num_slots));
    const std::int64_t capacity = routes.num_experts() == 0 ? 1 : num_slots / routes.num_experts();
    for (std::int64_t slot = 0; slot < num_slots; ++slot) {
      columns[slot] = static_cast<std::int32_t>(rows.rows[slot] / capacity);
    }
    return {};
  }

 private:
  IndexValues values_;
  TokenOfRowIndex by_token_;
};

// Not padded: the lowest slot with a row number that is too large.
Status CheckRows(const WeightedIndex& index, const Routes& routes) {
  for (std::int64_t slot = 0; slot < index.num_slots; ++slot) {
    if (index.rows.rows[slot] >= routes.num_rows) {
      return msg::RowOutOfRange(slot, IndexAt(routes.sorted_indices, slot), routes.num_rows);
    }
  }
  return {};
}

Status CheckForward(const UnpermuteWithRoutingMapArgs& args, const Routes& routes) {
  Views views;
  MOEPERM_TRY(CheckInput("permuted_tokens", args.permuted_tokens, 2, Kind::kFloat));
  MOEPERM_TRY(CheckCount("permuted_tokens", args.permuted_tokens, 0));
  MOEPERM_TRY(CheckCount("tokens", args.tokens, 0));
  MOEPERM_TRY(CheckOutputOf("tokens", args.tokens, "permuted_tokens", args.permuted_tokens.dtype(),
                            {{routes.num_tokens, ""}, {args.permuted_tokens.shape(1), "hidden"}}));
  MOEPERM_TRY(CheckRoutes(routes, &views));
  if (args.gathered_probs) {
    if (!args.probs) return msg::Unexpected("gathered_probs", "there are no probs");
    MOEPERM_TRY(CheckOutputOf("gathered_probs", *args.gathered_probs, "probs", args.probs->dtype(),
                              {{args.sorted_indices.shape(0), "size of sorted_indices"}}));
  }
  views.In("permuted_tokens", args.permuted_tokens);
  views.Out("tokens", args.tokens);
  views.Out("gathered_probs", args.gathered_probs);
  return views.CheckDisjoint();
}

// dst[row] (drop-and-pad) or dst[slot] = the slot's prob.
Status CopyProbs(const Context::Impl& context, const WeightedIndex& index, const Routes& routes,
                 const TensorView& dst) {
  TokenRows places = index.rows;
  Buffer<std::int32_t> slots;
  if (!routes.drop_and_pad) {
    MOEPERM_TRY(slots.Allocate(index.num_slots));
    std::int32_t* const rows = slots.data();
    auto* const to = static_cast<std::uint8_t*>(dst.data());
    const auto element = static_cast<std::int64_t>(SizeOf(dst.dtype()));
    for (std::int64_t slot = 0; slot < index.num_slots; ++slot) {
      const bool routed = index.columns[slot] >= 0;
      rows[slot] = routed ? static_cast<std::int32_t>(slot) : -1;
      if (!routed) {
        std::memset(to + slot * dst.stride(0) * element, 0, static_cast<std::size_t>(element));
      }
    }
    places.rows = rows;
  }
  SpreadWeights(context, places, index.columns.data(), *routes.probs, dst);
  return {};
}

Status Run(const UnpermuteWithRoutingMapArgs& args, const Context::Impl& context,
           const Routes& routes) {
  WeightedIndex index;
  MOEPERM_TRY(index.Build(context, routes));
  ReduceOptions options{.from_zero = args.drop_and_pad,
                        .skip_out_of_range = args.skip_rows_out_of_range};
  Buffer<float> weights;
  if (args.probs) {
    MOEPERM_TRY(weights.Allocate(index.num_slots));
    LoadWeights(context, index.slots(), *args.probs, weights.data());
    options.weighting = args.round_products ? Weighting::kRoundedToRow : Weighting::kProduct;
    options.weights = weights.data();
    options.skip_zero_weights = !args.drop_and_pad;
  }
  const std::int64_t bad =
      ReduceRows(context, index.rows, options, args.permuted_tokens, args.tokens);
  if (bad >= 0) {
    return msg::RowOutOfRange(bad, IndexAt(args.sorted_indices, bad), routes.num_rows);
  }
  return args.gathered_probs ? CopyProbs(context, index, routes, *args.gathered_probs) : Status();
}

Status CheckBackward(const UnpermuteWithRoutingMapGradArgs& args, const Routes& routes) {
  if (!args.permuted_tokens_grad && !args.probs_grad) {
    return msg::NothingToDo("permuted_tokens_grad, probs_grad");
  }
  const DType dtype = args.tokens_grad.dtype();
  const Size hidden = {args.tokens_grad.shape(1), "hidden"};
  const Size rows = {routes.num_rows, "rows of permuted_tokens"};
  Views views;
  if (args.probs_grad) {
    if (!args.probs) return msg::Missing("probs", "probs_grad is wanted");
    if (!args.permuted_tokens) return msg::Missing("permuted_tokens", "probs_grad is wanted");
  }
  MOEPERM_TRY(CheckRoutes(routes, &views));
  if (args.probs_grad) {
    MOEPERM_TRY(
        CheckInputOf("permuted_tokens", *args.permuted_tokens, Kind::kFloat, {rows, hidden}));
    MOEPERM_TRY(CheckSameDType("permuted_tokens", *args.permuted_tokens, "tokens_grad", dtype));
    MOEPERM_TRY(
        CheckOutputOf("probs_grad", *args.probs_grad, "probs", args.probs->dtype(),
                      {{routes.num_tokens, "tokens"}, {routes.num_experts(), "experts of probs"}}));
    views.In("permuted_tokens", args.permuted_tokens);
  }
  if (args.permuted_tokens_grad) {
    MOEPERM_TRY(CheckOutputOf("permuted_tokens_grad", *args.permuted_tokens_grad, "tokens_grad",
                              dtype, {rows, hidden}));
  }
  views.In("tokens_grad", args.tokens_grad);
  views.Out("permuted_tokens_grad", args.permuted_tokens_grad);
  views.Out("probs_grad", args.probs_grad);
  return views.CheckDisjoint();
}

Status RunGrad(const UnpermuteWithRoutingMapGradArgs& args, const Context::Impl& context,
               const Routes& routes) {
  WeightedIndex index;
  MOEPERM_TRY(index.Build(context, routes));
  if (!args.drop_and_pad && !args.skip_rows_out_of_range) MOEPERM_TRY(CheckRows(index, routes));
  Buffer<std::int32_t> routed;
  if (!args.drop_and_pad && args.probs) {  // a slot without an expert writes no row
    MOEPERM_TRY(routed.Allocate(index.num_slots));
    std::int32_t* const rows = routed.data();
    for (std::int64_t slot = 0; slot < index.num_slots; ++slot) {
      rows[slot] = index.columns[slot] < 0 ? -1 : index.rows.rows[slot];
    }
    index.rows.rows = routed.data();
  }
  Buffer<float> weights;
  Buffer<float> dots;
  if (args.probs && args.permuted_tokens_grad) {
    MOEPERM_TRY(weights.Allocate(index.num_slots));
    LoadWeights(context, index.slots(), *args.probs, weights.data());
  }
  if (args.probs_grad) MOEPERM_TRY(dots.Allocate(index.num_slots));
  MOEPERM_TRY(
      SpreadBack(context, index.rows,
                 {args.tokens_grad, args.permuted_tokens, args.permuted_tokens_grad,
                  args.probs ? weights.data() : nullptr, args.probs_grad ? dots.data() : nullptr}));
  if (args.probs_grad) StoreWeights(context, index.slots(), dots.data(), *args.probs_grad);
  return {};
}

}  // namespace

Status UnpermuteWithRoutingMap(const UnpermuteWithRoutingMapArgs& args,
                               const Context& context) noexcept {
  return Guarded([&]() -> Status {
    MOEPERM_TRY(context.status());
    MOEPERM_TRY(CheckShape("permuted_tokens", args.permuted_tokens, 2, Kind::kFloat));
    MOEPERM_TRY(CheckShape("tokens", args.tokens, 2, Kind::kFloat));
    const Routes routes = {args.sorted_indices,  args.routing_map,
                           args.probs,           args.drop_and_pad,
                           args.tokens.shape(0), args.permuted_tokens.shape(0)};
    MOEPERM_TRY(CheckForward(args, routes));
    return Run(args, *context.impl(), routes);
  });
}

Status UnpermuteWithRoutingMapGrad(const UnpermuteWithRoutingMapGradArgs& args,
                                   const Context& context) noexcept {
  return Guarded([&]() -> Status {
    MOEPERM_TRY(context.status());
    MOEPERM_TRY(CheckInput("tokens_grad", args.tokens_grad, 2, Kind::kFloat));
    MOEPERM_TRY(CheckCount("tokens_grad", args.tokens_grad, 0));
    std::int64_t rows = 0;  // where neither is given, nothing is asked for
    if (args.permuted_tokens) {
      MOEPERM_TRY(CheckShape("permuted_tokens", *args.permuted_tokens, 2, Kind::kFloat));
      rows = args.permuted_tokens->shape(0);
    } else if (args.permuted_tokens_grad) {
      MOEPERM_TRY(CheckShape("permuted_tokens_grad", *args.permuted_tokens_grad, 2, Kind::kFloat));
      rows = args.permuted_tokens_grad->shape(0);
    }
    MOEPERM_TRY(CheckRowCount("rows of permuted_tokens", rows));
    const Routes routes = {args.sorted_indices, args.routing_map,          args.probs,
                           args.drop_and_pad,   args.tokens_grad.shape(0), rows};
    MOEPERM_TRY(CheckBackward(args, routes));
    return RunGrad(args, *context.impl(), routes);
  });
}

}  // namespace moeperm
