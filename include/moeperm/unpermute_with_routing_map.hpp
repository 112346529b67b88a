// SPDX-License-Identifier: Apache-2.0
// MoeTokenUnpermuteWithRoutingMap and its gradient: the way back of PermuteWithRoutingMap, with the
// probs given for every pair of token and expert.
//
// Symbols in shapes: T tokens, H hidden, E experts, K slots a token (top_k), R rows, C capacity.
// What the header of permute_with_routing_map.hpp says of dtypes, views, outputs, errors and
// sorted_indices holds here too. The probs may have another floating-point dtype than the tokens.
#pragma once

#include <cstdint>
#include <optional>

#include "moeperm/context.hpp"
#include "moeperm/export.h"
#include "moeperm/status.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm {

// Not padded: token t's k-th slot belongs to its k-th expert in the map, ascending, and weighs
// probs[t][that expert]:
//
//   tokens[t] = sum over t's slots, ascending, of weight * permuted_tokens[sorted_indices[slot]]
//
// A slot takes part where it holds a row and its weight is not 0. Without probs rows are added as
// they are. The sum starts as the first slot's product where that takes part, else from +0. A token
// with more routes in the map than slots is an error.
// Drop-and-pad (C = R / E): tokens[t] = sum over the rows with sorted_indices[row] == t, ascending,
// of probs[t][row / C] * permuted_tokens[row], from +0; a weight of 0 multiplies.
//
// Sums are kept in float32, each product rounded before it is added, the sum rounded once. The
// original rounds products to the dtype of the rows in drop-and-pad mode: `round_products`, which
// does so in either mode.
struct UnpermuteWithRoutingMapArgs {
  ConstTensorView permuted_tokens;             // [R, H] float
  ConstTensorView sorted_indices;              // [T * K] or [R], int32 or int64
  std::optional<ConstTensorView> routing_map;  // [T, E] int8 or bool; with probs, not padded
  std::optional<ConstTensorView> probs;        // [T, E] float
  bool drop_and_pad = false;
  bool round_products = false;
  bool skip_rows_out_of_range = false;  // not padded: a row number >= R is skipped, no error
  TensorView tokens;                    // [T, H], dtype of permuted_tokens
  // [T * K] (slot order; +0 for a slot without an expert) or [R] (row order): the weights, copied.
  std::optional<TensorView> gathered_probs;  // dtype of probs; with probs only
};

MOEPERM_EXPORT Status UnpermuteWithRoutingMap(const UnpermuteWithRoutingMapArgs& args,
                                              const Context& context = Context::Default()) noexcept;

// permuted_tokens_grad[row] = weight of the row's slot * tokens_grad[t], rounded once (a copy
// without probs); +0 for rows of no slot; of several slots of one row the last one is taken. With
// probs, a slot without an expert in the map is none.
// probs_grad[t][e] = <permuted_tokens[row], tokens_grad[t]> for the row of route (t, e), in the
// order of addition that UnpermuteGrad has; +0 elsewhere, and where the slot holds no row.
// Drop-and-pad: of two rows with one pair (t, e) the last one is taken. Either gradient may be
// asked for alone.
struct UnpermuteWithRoutingMapGradArgs {
  ConstTensorView tokens_grad;                     // [T, H] float
  std::optional<ConstTensorView> permuted_tokens;  // [R, H], dtype of tokens_grad; with probs_grad
  ConstTensorView sorted_indices;                  // [T * K] or [R], int32 or int64
  std::optional<ConstTensorView> routing_map;      // [T, E]; with probs, not padded
  std::optional<ConstTensorView> probs;            // [T, E] float
  bool drop_and_pad = false;
  bool skip_rows_out_of_range = false;
  std::optional<TensorView> permuted_tokens_grad;  // [R, H], dtype of tokens_grad
  std::optional<TensorView> probs_grad;            // [T, E], dtype of probs; with probs only
};

MOEPERM_EXPORT Status
UnpermuteWithRoutingMapGrad(const UnpermuteWithRoutingMapGradArgs& args,
                            const Context& context = Context::Default()) noexcept;

}  // namespace moeperm
