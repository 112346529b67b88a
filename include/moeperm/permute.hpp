// SPDX-License-Identifier: Apache-2.0
// MoeTokenPermute and its gradient: routes given as a table of expert numbers; with `first_row`
// also MoeTokenPermuteWithEp and its gradient, for a process that holds some of the rows.
//
// Symbols in shapes: T tokens, H hidden, K slots a token (top_k), E experts, R rows. What the
// header of permute_with_routing_map.hpp says of dtypes, views, outputs and errors holds here too;
// an expert out of range is a kIndexOutOfRange.
#pragma once

#include <cstdint>
#include <optional>

#include "moeperm/context.hpp"
#include "moeperm/export.h"
#include "moeperm/status.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm {

// Slot s = t * K + k is token t's k-th entry in `indices`. All slots with an expert, ordered by
// expert, slots ascending inside an expert, are the rows of the full layout (so a token may go to
// one expert twice). Rows first_row .. first_row + R - 1 of it are made:
//
//   permuted_tokens[row - first_row] = tokens[token of row], permuted_probs likewise
//
// rows past the last route are zero. sorted_indices[slot] = row of the full layout, made or not; -1
// for a slot without an expert. The values are copied: exact for every bit pattern.
struct PermuteArgs {
  ConstTensorView tokens;                // [T, H] float
  ConstTensorView indices;               // [T, K] or [T], int32 or int64: expert, or negative: none
  std::optional<ConstTensorView> probs;  // float, shape of indices
  std::int64_t num_experts = 0;          // E; 0: one more than the largest in indices
  std::int64_t num_out_tokens = 0;       // R
  std::int64_t first_row = 0;
  TensorView permuted_tokens;                   // [R, H], dtype of tokens
  std::optional<TensorView> permuted_probs;     // [R], dtype of probs; with probs only
  TensorView sorted_indices;                    // [T * K] int32 or int64
  std::optional<TensorView> tokens_per_expert;  // [E] int32 or int64, with num_experts: routes
};

struct PermuteSpecs {
  TensorSpec permuted_tokens;
  std::optional<TensorSpec> permuted_probs;  // where probs are given
  TensorSpec sorted_indices;                 // int32
};

MOEPERM_EXPORT Status Permute(const PermuteArgs& args,
                              const Context& context = Context::Default()) noexcept;
// Shapes and dtypes of the outputs, from the inputs and attributes alone.
MOEPERM_EXPORT Status InferPermute(const PermuteArgs& args, PermuteSpecs* specs) noexcept;

// tokens_grad[t] = sum over t's slots, ascending, of the gradient of the slot's row, in float32,
// rounded once; it starts as the row of slot t * K where that one takes part, else from +0.
// probs_grad[t][k] = permuted_probs_grad of the slot's row, else +0. A slot takes part where its
// row is in [first_row, first_row + R). Either gradient may be asked for alone.
struct PermuteGradArgs {
  std::optional<ConstTensorView> permuted_tokens_grad;  // [R, H]; with tokens_grad
  std::optional<ConstTensorView> permuted_probs_grad;   // [R]; with probs_grad
  ConstTensorView sorted_indices;                       // [T * K] int32 or int64
  std::int64_t num_tokens = 0;                          // T
  std::int64_t first_row = 0;
  std::optional<TensorView> tokens_grad;  // [T, H], dtype of permuted_tokens_grad
  std::optional<TensorView> probs_grad;   // [T, K], dtype of permuted_probs_grad
};

MOEPERM_EXPORT Status PermuteGrad(const PermuteGradArgs& args,
                                  const Context& context = Context::Default()) noexcept;

}  // namespace moeperm
