// SPDX-License-Identifier: Apache-2.0
// The way back of PermuteByRowMap and its gradient: any routing that a row map can hold, ragged
// included, with the probs given for every pair of token and expert.
//
// Symbols in shapes: T tokens, H hidden, E experts, R rows, all of them of the row map. What the
// header of permute_with_routing_map.hpp says of dtypes, views, outputs and errors holds here too.
// The probs may have another floating-point dtype than the tokens.
#pragma once

#include <optional>

#include "moeperm/context.hpp"
#include "moeperm/export.h"
#include "moeperm/row_map.hpp"
#include "moeperm/status.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm {

//   tokens[t] = sum over t's slots, ascending, of probs[t][expert of slot] * permuted_tokens[row]
//
// Rows without a token (of align, of mask_pads, past the routes) and routes without a row take no
// part. Sums are kept in float32, each product rounded before it is added, the sum rounded once;
// without probs rows are added as they are.
// Not padded: a slot whose weight is 0 takes no part; the sum starts as the first slot's product
// where that takes part, else from +0. Drop-and-pad: the sum starts from +0, a weight of 0
// multiplies, and pad rows that are not masked weigh the prob of their token and expert.
struct UnpermuteByRowMapArgs {
  ConstTensorView permuted_tokens;       // [R, H] float
  std::optional<ConstTensorView> probs;  // [T, E] float
  bool round_products = false;           // to the dtype of the rows, before they are added
  TensorView tokens;                     // [T, H], dtype of permuted_tokens
};

MOEPERM_EXPORT Status UnpermuteByRowMap(const RowMap& row_map, const UnpermuteByRowMapArgs& args,
                                        const Context& context = Context::Default()) noexcept;

// permuted_tokens_grad[row] = probs[token of row][expert of row] * tokens_grad[token of row],
// rounded once (a copy without probs); +0 for rows without a token.
// probs_grad[t][e] = <permuted_tokens[row], tokens_grad[t]> for the row of token t and expert e, in
// the order of addition that UnpermuteGrad has; +0 where there is none. A prob of 0 does not matter
// here. Either gradient may be asked for alone.
struct UnpermuteByRowMapGradArgs {
  ConstTensorView tokens_grad;                     // [T, H] float
  std::optional<ConstTensorView> permuted_tokens;  // [R, H], dtype of tokens_grad; with probs_grad
  std::optional<ConstTensorView> probs;            // [T, E] float
  std::optional<TensorView> permuted_tokens_grad;  // [R, H], dtype of tokens_grad
  std::optional<TensorView> probs_grad;            // [T, E], dtype of probs; with probs only
};

MOEPERM_EXPORT Status UnpermuteByRowMapGrad(const RowMap& row_map,
                                            const UnpermuteByRowMapGradArgs& args,
                                            const Context& context = Context::Default()) noexcept;

}  // namespace moeperm
