// SPDX-License-Identifier: Apache-2.0
// The plain reference of the index form and of the way back with weights. As reference.hpp: scalar,
// obvious, nothing of the library. An operator is a list of its slots, and one loop over them.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/reference.hpp"

namespace moeperm_reference {

struct TablePermuted {
  Matrix tokens;                                // [num_out_tokens, hidden]
  Matrix probs;                                 // [num_out_tokens, 1]; no elements without probs
  std::vector<std::int64_t> sorted_indices;     // [tokens * top_k], rows of the full layout
  std::vector<std::int64_t> tokens_per_expert;  // [num_experts]
};

// `experts` [tokens * top_k]: the expert of each slot, negative: none. num_experts 0: one more than
// the largest. `probs` [tokens, top_k] may be null. Throws std::invalid_argument where refused.
TablePermuted PermuteByTable(const Matrix& tokens, const std::vector<std::int64_t>& experts,
                             std::int64_t num_experts, const Matrix* probs,
                             std::int64_t num_out_tokens, std::int64_t first_row);

// One term of a token's sum.
struct Slot {
  std::int64_t token = 0;
  std::int64_t row = -1;     // -1: none
  std::int64_t column = -1;  // of the weight in probs[token]; -1: none
  bool first = false;        // the token's first slot, where the sum may start as its row
};

// The slots in the order they are added, those of a token one after another or not.
//
// Slot t * top_k + k weighs probs[t][k]; it has a row where sorted_indices is in
// [first_row, first_row + rows).
std::vector<Slot> SlotsOfTable(const std::vector<std::int64_t>& sorted_indices, std::int64_t tokens,
                               std::int64_t rows, std::int64_t first_row);
// Not padded: slot t * top_k + k weighs probs[t][the k-th expert of t in the map]. Throws where a
// token has more experts than slots.
std::vector<Slot> SlotsOfMap(const std::vector<std::int64_t>& sorted_indices, const RoutingMap& map,
                             std::int64_t rows);
// Drop-and-pad: a slot for each row, which weighs probs[sorted_indices[row]][expert of the row].
std::vector<Slot> SlotsOfRows(const std::vector<std::int64_t>& sorted_indices, std::int64_t tokens,
                              std::int64_t experts);

struct SumRules {
  bool skip_zero_weights = false;  // weights +0 and -0, and slots without one
  bool round_products = false;     // to the dtype of the rows, before they are added
};

// out[token] = sum over its slots with a row of weight * rows[row]. `probs` null: no weights.
Matrix SumSlots(const Matrix& rows, const std::vector<Slot>& slots, std::int64_t tokens,
                const Matrix* probs, const SumRules& rules);
// out[row] = weight * tokens[token]: of several slots of a row the last one; +0 for rows of none.
// With probs, a slot without a weight is none.
Matrix SpreadSlots(const Matrix& tokens, const std::vector<Slot>& slots, std::int64_t rows,
                   const Matrix* probs);
// out[token][column] = <rows[row], tokens[token]>; of several slots of a column the last one.
Matrix DotSlots(const Matrix& rows, const Matrix& tokens, const std::vector<Slot>& slots, Type type,
                std::int64_t columns);
// out[slot] = the slot's weight, its bits as they are; +0 without one.
Matrix WeightsOfSlots(const Matrix& probs, const std::vector<Slot>& slots);
// out[token][column] = weights[row] of the slot, its bits; +0 without a row.
Matrix GatherRows(const Matrix& weights, const std::vector<Slot>& slots, std::int64_t tokens,
                  std::int64_t columns);

}  // namespace moeperm_reference
