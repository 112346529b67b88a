// SPDX-License-Identifier: Apache-2.0
// The way back: reduce the rows with the probs as weights; backward, spread the gradient with them
// and take the dot products in the same pass.
#include "moeperm/unpermute.hpp"

#include "base/status_macros.hpp"
#include "ops/common.hpp"
#include "rowmap/map_view.hpp"
#include "rows/rows.hpp"
#include "rows/weights.hpp"

namespace moeperm {
namespace {

Status CheckForward(const UnpermuteArgs& args, std::int64_t* top_k) {
  MOEPERM_TRY(CheckInput("permuted_tokens", args.permuted_tokens, 2, Kind::kFloat));
  MOEPERM_TRY(CheckCount("permuted_tokens", args.permuted_tokens, 0));
  MOEPERM_TRY(CheckInput("sorted_indices", args.sorted_indices, 1, Kind::kIndex));
  MOEPERM_TRY(CheckCount("sorted_indices", args.sorted_indices, 0));
  MOEPERM_TRY(CheckRowCount("first_row", args.first_row));
  MOEPERM_TRY(CheckShape("tokens", args.tokens, 2, Kind::kFloat));
  const std::int64_t tokens = args.tokens.shape(0);
  MOEPERM_TRY(CheckCount("tokens", args.tokens, 0));
  MOEPERM_TRY(CheckOutputOf("tokens", args.tokens, "permuted_tokens", args.permuted_tokens.dtype(),
                            {{tokens, ""}, {args.permuted_tokens.shape(1), "hidden"}}));
  MOEPERM_TRY(
      SlotsPerToken(args.sorted_indices, tokens, top_k, args.probs ? args.probs->shape(1) : 0));
  if (args.probs) {
    MOEPERM_TRY(CheckInputOf("probs", *args.probs, Kind::kFloat,
                             {{tokens, "tokens"}, {*top_k, "slots a token"}}));
  }
  Views views;
  views.In("permuted_tokens", args.permuted_tokens);
  views.In("sorted_indices", args.sorted_indices);
  views.In("probs", args.probs);
  views.Out("tokens", args.tokens);
  return views.CheckDisjoint();
}

Status Run(const UnpermuteArgs& args, const Context::Impl& context, std::int64_t top_k) {
  const std::int64_t slots = args.sorted_indices.shape(0);
  IndexValues indices;
  MOEPERM_TRY(indices.LoadRows(args.sorted_indices, args.first_row, args.permuted_tokens.shape(0)));
  const TokenRows index = {args.tokens.shape(0), indices.data(), nullptr, top_k};
  ReduceOptions options{.skip_out_of_range = true};
  Buffer<float> weights;
  if (args.probs) {
    MOEPERM_TRY(weights.Allocate(slots));
    LoadWeights(context, {index}, *args.probs, weights.data());
    options.weighting = Weighting::kProduct;
    options.weights = weights.data();
    options.skip_zero_weights = true;
  }
  ReduceRows(context, index, options, args.permuted_tokens, args.tokens);
  return {};
}

Status CheckBackward(const UnpermuteGradArgs& args, std::int64_t* top_k) {
  if (!args.permuted_tokens_grad && !args.probs_grad) {
    return msg::NothingToDo("permuted_tokens_grad, probs_grad");
  }
  MOEPERM_TRY(CheckInput("tokens_grad", args.tokens_grad, 2, Kind::kFloat));
  MOEPERM_TRY(CheckCount("tokens_grad", args.tokens_grad, 0));
  MOEPERM_TRY(CheckInput("sorted_indices", args.sorted_indices, 1, Kind::kIndex));
  MOEPERM_TRY(CheckCount("sorted_indices", args.sorted_indices, 0));
  MOEPERM_TRY(CheckRowCount("first_row", args.first_row));
  const std::int64_t tokens = args.tokens_grad.shape(0);
  const Size hidden = {args.tokens_grad.shape(1), "hidden"};
  const DType dtype = args.tokens_grad.dtype();
  MOEPERM_TRY(
      SlotsPerToken(args.sorted_indices, tokens, top_k, args.probs ? args.probs->shape(1) : 0));
  if (args.probs) {
    MOEPERM_TRY(CheckInputOf("probs", *args.probs, Kind::kFloat,
                             {{tokens, "tokens"}, {*top_k, "slots a token"}}));
  }
  Views views;
  views.In("tokens_grad", args.tokens_grad);
  views.In("sorted_indices", args.sorted_indices);
  views.In("probs", args.probs);
  if (args.probs_grad) {
    if (!args.probs) return msg::Missing("probs", "probs_grad is wanted");
    if (!args.permuted_tokens) return msg::Missing("permuted_tokens", "probs_grad is wanted");
    MOEPERM_TRY(CheckInput("permuted_tokens", *args.permuted_tokens, 2, Kind::kFloat));
    MOEPERM_TRY(CheckCount("permuted_tokens", *args.permuted_tokens, 0));
    MOEPERM_TRY(CheckSameDType("permuted_tokens", *args.permuted_tokens, "tokens_grad", dtype));
    MOEPERM_TRY(CheckDim("permuted_tokens", *args.permuted_tokens, 1, hidden.value, hidden.what));
    MOEPERM_TRY(CheckOutputOf("probs_grad", *args.probs_grad, "probs", args.probs->dtype(),
                              {{tokens, "tokens"}, {*top_k, "slots a token"}}));
    views.In("permuted_tokens", args.permuted_tokens);
  }
  if (args.permuted_tokens_grad) {
    const TensorView& out = *args.permuted_tokens_grad;
    MOEPERM_TRY(CheckShape("permuted_tokens_grad", out, 2, Kind::kFloat));
    MOEPERM_TRY(CheckCount("permuted_tokens_grad", out, 0));
    const std::int64_t rows = args.probs_grad ? args.permuted_tokens->shape(0) : out.shape(0);
    MOEPERM_TRY(CheckOutputOf("permuted_tokens_grad", out, "tokens_grad", dtype,
                              {{rows, "rows of permuted_tokens"}, hidden}));
  }
  views.Out("permuted_tokens_grad", args.permuted_tokens_grad);
  views.Out("probs_grad", args.probs_grad);
  return views.CheckDisjoint();
}

Status RunGrad(const UnpermuteGradArgs& args, const Context::Impl& context, std::int64_t top_k) {
  const std::int64_t slots = args.sorted_indices.shape(0);
  const std::int64_t rows = args.permuted_tokens_grad ? args.permuted_tokens_grad->shape(0)
                                                      : args.permuted_tokens->shape(0);
  IndexValues indices;
  MOEPERM_TRY(indices.LoadRows(args.sorted_indices, args.first_row, rows));
  const TokenRows index = {args.tokens_grad.shape(0), indices.data(), nullptr, top_k};
  Buffer<float> weights;
  Buffer<float> dots;
  if (args.probs && args.permuted_tokens_grad) {
    MOEPERM_TRY(weights.Allocate(slots));
    LoadWeights(context, {index}, *args.probs, weights.data());
  }
  if (args.probs_grad) MOEPERM_TRY(dots.Allocate(slots));
  MOEPERM_TRY(
      SpreadBack(context, index,
                 {args.tokens_grad, args.permuted_tokens, args.permuted_tokens_grad,
                  args.probs ? weights.data() : nullptr, args.probs_grad ? dots.data() : nullptr}));
  if (args.probs_grad) StoreWeights(context, {index}, dots.data(), *args.probs_grad);
  return {};
}

}  // namespace

Status Unpermute(const UnpermuteArgs& args, const Context& context) noexcept {
  return Guarded([&]() -> Status {
    MOEPERM_TRY(context.status());
    std::int64_t top_k = 0;
    MOEPERM_TRY(CheckForward(args, &top_k));
    return Run(args, *context.impl(), top_k);
  });
}

Status UnpermuteGrad(const UnpermuteGradArgs& args, const Context& context) noexcept {
  return Guarded([&]() -> Status {
    MOEPERM_TRY(context.status());
    std::int64_t top_k = 0;
    MOEPERM_TRY(CheckBackward(args, &top_k));
    return RunGrad(args, *context.impl(), top_k);
  });
}

}  // namespace moeperm
