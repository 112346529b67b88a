// SPDX-License-Identifier: Apache-2.0
// The way back over a row map: the recipe of unpermute.cpp where the index is at hand and no row
// has two slots.
#include "moeperm/unpermute_by_row_map.hpp"

#include "base/status_macros.hpp"
#include "ops/common.hpp"
#include "rowmap/row_map_impl.hpp"
#include "rows/rows.hpp"
#include "rows/weights.hpp"

namespace moeperm {
namespace {

// The sizes that a row map sets, and its probs.
struct MapSizes {
  Size tokens;
  Size experts;
  Size rows;

  explicit MapSizes(const RowMap::Impl& map)
      : tokens{map.num_tokens, "the tokens of the row map"},
        experts{map.num_experts, "the experts of the row map"},
        rows{map.num_rows, "the rows of the row map"} {}

  [[nodiscard]] Status CheckProbs(const std::optional<ConstTensorView>& probs) const {
    return probs ? CheckInputOf("probs", *probs, Kind::kFloat, {tokens, experts}) : Status();
  }
};

SlotColumns Slots(const TokenRows& index, const RowMap::Impl& map) {
  return {index, map.slot_experts.data()};
}

Status CheckForward(const UnpermuteByRowMapArgs& args, const RowMap::Impl& map) {
  const MapSizes sizes(map);
  const ConstTensorView& in = args.permuted_tokens;
  MOEPERM_TRY(CheckInput("permuted_tokens", in, 2, Kind::kFloat));
  MOEPERM_TRY(CheckDim("permuted_tokens", in, 0, sizes.rows.value, sizes.rows.what));
  MOEPERM_TRY(CheckOutputOf("tokens", args.tokens, "permuted_tokens", in.dtype(),
                            {sizes.tokens, {in.shape(1), "hidden"}}));
  MOEPERM_TRY(sizes.CheckProbs(args.probs));
  Views views;
  views.In("permuted_tokens", in);
  views.In("probs", args.probs);
  views.Out("tokens", args.tokens);
  return views.CheckDisjoint();
}

Status Run(const UnpermuteByRowMapArgs& args, const Context::Impl& context,
           const RowMap::Impl& map) {
  const TokenRows index = map.token_rows();
  ReduceOptions options{.from_zero = map.drop_and_pad};
  Buffer<float> weights;
  if (args.probs) {
    MOEPERM_TRY(weights.Allocate(map.num_slots()));
    LoadWeights(context, Slots(index, map), *args.probs, weights.data());
    options.weighting = args.round_products ? Weighting::kRoundedToRow : Weighting::kProduct;
    options.weights = weights.data();
    options.skip_zero_weights = !map.drop_and_pad;
  }
  ReduceRows(context, index, options, args.permuted_tokens, args.tokens);
  return {};
}

Status CheckBackward(const UnpermuteByRowMapGradArgs& args, const RowMap::Impl& map) {
  if (!args.permuted_tokens_grad && !args.probs_grad) {
    return msg::NothingToDo("permuted_tokens_grad, probs_grad");
  }
  const MapSizes sizes(map);
  MOEPERM_TRY(CheckInput("tokens_grad", args.tokens_grad, 2, Kind::kFloat));
  MOEPERM_TRY(CheckDim("tokens_grad", args.tokens_grad, 0, sizes.tokens.value, sizes.tokens.what));
  const DType dtype = args.tokens_grad.dtype();
  const Size hidden = {args.tokens_grad.shape(1), "hidden"};
  MOEPERM_TRY(sizes.CheckProbs(args.probs));
  Views views;
  if (args.probs_grad) {
    if (!args.probs) return msg::Missing("probs", "probs_grad is wanted");
    if (!args.permuted_tokens) return msg::Missing("permuted_tokens", "probs_grad is wanted");
    MOEPERM_TRY(
        CheckInputOf("permuted_tokens", *args.permuted_tokens, Kind::kFloat, {sizes.rows, hidden}));
    MOEPERM_TRY(CheckSameDType("permuted_tokens", *args.permuted_tokens, "tokens_grad", dtype));
    MOEPERM_TRY(CheckOutputOf("probs_grad", *args.probs_grad, "probs", args.probs->dtype(),
                              {sizes.tokens, sizes.experts}));
    views.In("permuted_tokens", args.permuted_tokens);
  }
  if (args.permuted_tokens_grad) {
    MOEPERM_TRY(CheckOutputOf("permuted_tokens_grad", *args.permuted_tokens_grad, "tokens_grad",
                              dtype, {sizes.rows, hidden}));
  }
  views.In("tokens_grad", args.tokens_grad);
  views.In("probs", args.probs);
  views.Out("permuted_tokens_grad", args.permuted_tokens_grad);
  views.Out("probs_grad", args.probs_grad);
  return views.CheckDisjoint();
}

Status RunGrad(const UnpermuteByRowMapGradArgs& args, const Context::Impl& context,
               const RowMap::Impl& map) {
  const TokenRows index = map.token_rows();
  Buffer<float> weights;
  Buffer<float> dots;
  if (args.probs && args.permuted_tokens_grad) {
    MOEPERM_TRY(weights.Allocate(map.num_slots()));
    LoadWeights(context, Slots(index, map), *args.probs, weights.data());
  }
  if (args.probs_grad) MOEPERM_TRY(dots.Allocate(map.num_slots()));
  SpreadBackByWriter(
      context, index, index.rows,
      {args.tokens_grad, args.permuted_tokens, args.permuted_tokens_grad,
       args.probs ? weights.data() : nullptr, args.probs_grad ? dots.data() : nullptr});
  if (args.permuted_tokens_grad) {
    for (const Range& run : map.empty_rows) {
      ZeroRows(context, run.begin, run.end, *args.permuted_tokens_grad);
    }
  }
  if (args.probs_grad) StoreWeights(context, Slots(index, map), dots.data(), *args.probs_grad);
  return {};
}

}  // namespace

Status UnpermuteByRowMap(const RowMap& row_map, const UnpermuteByRowMapArgs& args,
                         const Context& context) noexcept {
  return Guarded([&]() -> Status {
    MOEPERM_TRY(context.status());
    MOEPERM_TRY(CheckForward(args, row_map.impl()));
    return Run(args, *context.impl(), row_map.impl());
  });
}

Status UnpermuteByRowMapGrad(const RowMap& row_map, const UnpermuteByRowMapGradArgs& args,
                             const Context& context) noexcept {
  return Guarded([&]() -> Status {
    MOEPERM_TRY(context.status());
    MOEPERM_TRY(CheckBackward(args, row_map.impl()));
    return RunGrad(args, *context.impl(), row_map.impl());
  });
}

}  // namespace moeperm
