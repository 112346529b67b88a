// SPDX-License-Identifier: Apache-2.0
// MoeTokenUnpermute and its gradient: brings the experts' rows back to token order, weighted; with
// `first_row` also MoeTokenUnpermuteWithEp and its gradient.
//
// Symbols in shapes: T tokens, H hidden, K slots a token (top_k), R rows. What the header of
// permute_with_routing_map.hpp says of dtypes, views, outputs and errors holds here too. The probs
// may have another floating-point dtype than the tokens.
#pragma once

#include <cstdint>
#include <optional>

#include "moeperm/context.hpp"
#include "moeperm/export.h"
#include "moeperm/status.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm {

// tokens[t] = sum over t's slots, ascending, of probs[t][k] * permuted_tokens[row of slot -
// first_row]
//
// in float32: each product is rounded, then added; the sum is rounded to the dtype once. A slot
// takes part where its row, sorted_indices[t * K + k], is in [first_row, first_row + R) and its
// prob is not 0: NaN and infinity of such a row do not spread. The sum starts as the first slot's
// product where that takes part, else from +0. Without probs rows are added as they are, and a
// token of one row is an exact copy.
struct UnpermuteArgs {
  ConstTensorView permuted_tokens;       // [R, H] float
  ConstTensorView sorted_indices;        // [T * K] int32 or int64; T from tokens
  std::optional<ConstTensorView> probs;  // [T, K] float
  std::int64_t first_row = 0;
  TensorView tokens;  // [T, H], dtype of permuted_tokens
};

MOEPERM_EXPORT Status Unpermute(const UnpermuteArgs& args,
                                const Context& context = Context::Default()) noexcept;

// permuted_tokens_grad[row of slot - first_row] = probs[t][k] * tokens_grad[t], rounded once (a
// copy without probs); +0 for rows of no slot; of several slots of one row the last one is taken.
// probs_grad[t][k] = <permuted_tokens[row of slot - first_row], tokens_grad[t]>: float32 products,
// element h added into lane h mod 16 from +0, the lanes halved pairwise (8, 4, 2, 1), rounded once;
// +0 for a slot that takes no part. A slot takes part where its row is in [first_row,
// first_row + R); a prob of 0 does not matter here. Either gradient may be asked for alone.
struct UnpermuteGradArgs {
  ConstTensorView tokens_grad;                     // [T, H] float
  std::optional<ConstTensorView> permuted_tokens;  // [R, H], dtype of tokens_grad; with probs_grad
  ConstTensorView sorted_indices;                  // [T * K] int32 or int64
  std::optional<ConstTensorView> probs;            // [T, K] float
  std::int64_t first_row = 0;
  std::optional<TensorView> permuted_tokens_grad;  // [R, H], dtype of tokens_grad
  std::optional<TensorView> probs_grad;            // [T, K], dtype of probs; with probs only
};

MOEPERM_EXPORT Status UnpermuteGrad(const UnpermuteGradArgs& args,
                                    const Context& context = Context::Default()) noexcept;

}  // namespace moeperm
