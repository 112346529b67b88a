// SPDX-License-Identifier: Apache-2.0
// The index form: rank the slots by expert, spread the rows; backward, reduce them.
#include "moeperm/permute.hpp"

#include <algorithm>

#include "base/status_macros.hpp"
#include "ops/common.hpp"
#include "rowmap/index_ranks.hpp"
#include "rowmap/map_view.hpp"
#include "rows/rows.hpp"
#include "rows/weights.hpp"

namespace moeperm {
namespace {

std::int64_t SlotsOfToken(const ConstTensorView& view) {
  return view.rank() == 2 ? view.shape(1) : 1;
}

// A view of one or two dimensions, the second of which `top_k` says.
Status CheckPerSlot(std::string_view name, const ConstTensorView& view, Kind kind,
                    const ConstTensorView& indices) {
  MOEPERM_TRY(CheckShape(name, view, indices.rank(), kind));
  MOEPERM_TRY(CheckDim(name, view, 0, indices.shape(0), "rows of indices"));
  return indices.rank() == 2 ? CheckDim(name, view, 1, indices.shape(1), "columns of indices")
                             : Status();
}

// What can be known without data and outputs.
Status CheckInputs(const PermuteArgs& args, std::int64_t* slots) {
  MOEPERM_TRY(CheckShape("tokens", args.tokens, 2, Kind::kFloat));
  MOEPERM_TRY(CheckShape("indices", args.indices, args.indices.rank() == 1 ? 1 : 2, Kind::kIndex));
  MOEPERM_TRY(CheckDim("tokens", args.tokens, 0, args.indices.shape(0), "rows of indices"));
  MOEPERM_TRY(CheckCount("indices", args.indices, 0));
  if (!CheckedMul(args.indices.shape(0), SlotsOfToken(args.indices), slots)) {
    return msg::TooManySlots(args.indices.shape(0), SlotsOfToken(args.indices));
  }
  MOEPERM_TRY(CheckRowCount("the number of indices", *slots));
  if (args.probs) MOEPERM_TRY(CheckPerSlot("probs", *args.probs, Kind::kFloat, args.indices));
  MOEPERM_TRY(CheckRowCount("num_experts", args.num_experts));
  MOEPERM_TRY(CheckRowCount("num_out_tokens", args.num_out_tokens));
  MOEPERM_TRY(CheckRowCount("first_row", args.first_row));
  return CheckBytes("permuted_tokens", args.tokens.dtype(),
                    {args.num_out_tokens, args.tokens.shape(1)});
}

Status CheckOutputs(const PermuteArgs& args, std::int64_t slots) {
  const Size rows = {args.num_out_tokens, "num_out_tokens"};
  Views views;
  MOEPERM_TRY(CheckInput("tokens", args.tokens, 2, Kind::kFloat));
  MOEPERM_TRY(CheckInput("indices", args.indices, args.indices.rank(), Kind::kIndex));
  MOEPERM_TRY(CheckOutputOf("permuted_tokens", args.permuted_tokens, "tokens", args.tokens.dtype(),
                            {rows, {args.tokens.shape(1), "hidden"}}));
  MOEPERM_TRY(CheckOutputOf("sorted_indices", args.sorted_indices, Kind::kIndex,
                            {{slots, "slots of indices"}}));
  if (args.probs && !args.permuted_probs) {
    return msg::Missing("permuted_probs", "probs are given");
  }
  if (!args.probs && args.permuted_probs) {
    return msg::Unexpected("permuted_probs", "there are no probs");
  }
  if (args.probs) {
    MOEPERM_TRY(CheckInput("probs", *args.probs, args.indices.rank(), Kind::kFloat));
    MOEPERM_TRY(CheckOutputOf("permuted_probs", *args.permuted_probs, "probs", args.probs->dtype(),
                              {rows}));
  }
  if (args.tokens_per_expert) {
    if (args.num_experts == 0) return msg::Missing("num_experts", "tokens_per_expert is wanted");
    MOEPERM_TRY(CheckOutputOf("tokens_per_expert", *args.tokens_per_expert, Kind::kIndex,
                              {{args.num_experts, "num_experts"}}));
  }
  views.In("tokens", args.tokens);
  views.In("indices", args.indices);
  views.In("probs", args.probs);
  views.Out("permuted_tokens", args.permuted_tokens);
  views.Out("permuted_probs", args.permuted_probs);
  views.Out("sorted_indices", args.sorted_indices);
  views.Out("tokens_per_expert", args.tokens_per_expert);
  return views.CheckDisjoint();
}

Status Run(const PermuteArgs& args, const Context::Impl& context, std::int64_t slots) {
  IndexValues experts;
  MOEPERM_TRY(experts.Load(args.indices));
  IndexRanks ranks;
  std::int64_t bad = -1;
  MOEPERM_TRY(ranks.Build(context, experts.data(), slots, args.num_experts,
                          args.tokens_per_expert.has_value(), &bad));
  if (bad >= 0) {
    const std::int64_t expert = IndexAt(args.indices, bad);
    return args.num_experts > 0 ? msg::ExpertOutOfRange(bad, expert, args.num_experts)
                                : msg::ExpertTooLarge(bad, expert, kMaxRows - 1);
  }
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    SetIndex(args.sorted_indices, slot, ranks.slot_rows[slot]);
  }
  if (args.tokens_per_expert) {
    for (std::int64_t e = 0; e < args.num_experts; ++e) {
      SetIndex(*args.tokens_per_expert, e, ranks.tokens_per_expert[e]);
    }
  }
  const std::int64_t rows = args.num_out_tokens;
  const std::int64_t made = std::clamp<std::int64_t>(ranks.num_routes - args.first_row, 0, rows);
  for (std::int64_t slot = 0; slot < slots; ++slot) {  // the rows that are made, from 0
    const std::int64_t row = ranks.slot_rows[slot] - args.first_row;
    ranks.slot_rows[slot] =
        ranks.slot_rows[slot] >= 0 && row >= 0 && row < made ? static_cast<std::int32_t>(row) : -1;
  }
  const TokenRows index = {args.indices.shape(0), ranks.slot_rows.data(), nullptr,
                           SlotsOfToken(args.indices)};
  SpreadRows(context, index, args.tokens, args.permuted_tokens);
  ZeroRows(context, made, rows, args.permuted_tokens);
  if (args.probs) {
    SpreadWeights(context, index, nullptr, AsMatrix(*args.probs), *args.permuted_probs);
    ZeroWeights(made, rows, *args.permuted_probs);
  }
  return {};
}

// Rows of the permuted gradients; checked to be one number.
Status CheckGradInputs(const PermuteGradArgs& args, std::int64_t* top_k) {
  MOEPERM_TRY(CheckRowCount("num_tokens", args.num_tokens));
  MOEPERM_TRY(CheckRowCount("first_row", args.first_row));
  if (!args.tokens_grad && !args.probs_grad) return msg::NothingToDo("tokens_grad, probs_grad");
  MOEPERM_TRY(CheckInput("sorted_indices", args.sorted_indices, 1, Kind::kIndex));
  MOEPERM_TRY(CheckCount("sorted_indices", args.sorted_indices, 0));
  MOEPERM_TRY(SlotsPerToken(args.sorted_indices, args.num_tokens, top_k,
                            args.probs_grad ? args.probs_grad->shape(1) : 0));
  Views views;
  views.In("sorted_indices", args.sorted_indices);
  if (args.tokens_grad) {
    if (!args.permuted_tokens_grad) {
      return msg::Missing("permuted_tokens_grad", "tokens_grad is wanted");
    }
    const ConstTensorView& in = *args.permuted_tokens_grad;
    MOEPERM_TRY(CheckInput("permuted_tokens_grad", in, 2, Kind::kFloat));
    MOEPERM_TRY(CheckCount("permuted_tokens_grad", in, 0));
    MOEPERM_TRY(CheckOutputOf("tokens_grad", *args.tokens_grad, "permuted_tokens_grad", in.dtype(),
                              {{args.num_tokens, "num_tokens"}, {in.shape(1), "hidden"}}));
    views.In("permuted_tokens_grad", in);
  }
  if (args.probs_grad) {
    if (!args.permuted_probs_grad) {
      return msg::Missing("permuted_probs_grad", "probs_grad is wanted");
    }
    const ConstTensorView& in = *args.permuted_probs_grad;
    MOEPERM_TRY(CheckInput("permuted_probs_grad", in, 1, Kind::kFloat));
    MOEPERM_TRY(CheckCount("permuted_probs_grad", in, 0));
    MOEPERM_TRY(CheckOutputOf("probs_grad", *args.probs_grad, "permuted_probs_grad", in.dtype(),
                              {{args.num_tokens, "num_tokens"}, {*top_k, "slots a token"}}));
    views.In("permuted_probs_grad", in);
  }
  if (args.permuted_tokens_grad && args.permuted_probs_grad && args.tokens_grad &&
      args.probs_grad) {
    MOEPERM_TRY(CheckDim("permuted_probs_grad", *args.permuted_probs_grad, 0,
                         args.permuted_tokens_grad->shape(0), "rows of permuted_tokens_grad"));
  }
  views.Out("tokens_grad", args.tokens_grad);
  views.Out("probs_grad", args.probs_grad);
  return views.CheckDisjoint();
}

Status RunGrad(const PermuteGradArgs& args, const Context::Impl& context, std::int64_t top_k) {
  const std::int64_t rows =
      (args.tokens_grad ? args.permuted_tokens_grad : args.permuted_probs_grad)->shape(0);
  IndexValues indices;
  MOEPERM_TRY(indices.LoadRows(args.sorted_indices, args.first_row, rows));
  const TokenRows index = {args.num_tokens, indices.data(), nullptr, top_k};
  if (args.tokens_grad) {
    ReduceRows(context, index, {.skip_out_of_range = true}, *args.permuted_tokens_grad,
               *args.tokens_grad);
  }
  if (args.probs_grad) GatherWeights(context, index, *args.permuted_probs_grad, *args.probs_grad);
  return {};
}

}  // namespace

Status InferPermute(const PermuteArgs& args, PermuteSpecs* specs) noexcept {
  return Guarded([&]() -> Status {
    std::int64_t slots = 0;
    MOEPERM_TRY(CheckInputs(args, &slots));
    specs->permuted_tokens = {args.tokens.dtype(), {args.num_out_tokens, args.tokens.shape(1)}};
    specs->permuted_probs.reset();
    if (args.probs) specs->permuted_probs = {args.probs->dtype(), {args.num_out_tokens}};
    specs->sorted_indices = {DType::kInt32, {slots}};
    return {};
  });
}

Status Permute(const PermuteArgs& args, const Context& context) noexcept {
  return Guarded([&]() -> Status {
    MOEPERM_TRY(context.status());
    std::int64_t slots = 0;
    MOEPERM_TRY(CheckInputs(args, &slots));
    MOEPERM_TRY(CheckOutputs(args, slots));
    return Run(args, *context.impl(), slots);
  });
}

Status PermuteGrad(const PermuteGradArgs& args, const Context& context) noexcept {
  return Guarded([&]() -> Status {
    MOEPERM_TRY(context.status());
    std::int64_t top_k = 0;
    MOEPERM_TRY(CheckGradInputs(args, &top_k));
    return RunGrad(args, *context.impl(), top_k);
  });
}

}  // namespace moeperm
