// SPDX-License-Identifier: Apache-2.0
// MoeTokenPermuteWithRoutingMap and its gradient.
//
// Symbols in shapes: T tokens, H hidden, E experts, K slots a token (top_k), R rows, C capacity.
// Floating-point tensors are float32, float16 or bfloat16; the probs may have another of these
// dtypes than the tokens. A routing map is int8 or bool; a byte that is not 0 is a route. Any
// tensor may be a strided view; an output may not overlap itself, another output or an input.
// Every element of every output is written, and none is read. After an error the outputs are
// unspecified. Errors: kInvalidArgument (shapes, dtypes, strides, counts), kIndexOutOfRange (a
// value in sorted_indices), kOutOfMemory (temporary memory).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "moeperm/context.hpp"
#include "moeperm/export.h"
#include "moeperm/row_map.hpp"
#include "moeperm/status.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm {

// Lays the tokens out expert by expert: experts ascending, tokens ascending inside an expert.
//
//   permuted_tokens[row] = tokens[token of row], permuted_probs[row] = probs[token][expert of row]
//
// Not padded: one row a route, cut or filled up with zero rows to num_out_tokens. Token t's routes,
// experts ascending, are its slots t*K, t*K+1, ...; sorted_indices[slot] = row, and -1 for a slot
// without a route or whose row was cut off. A token with more than K routes is an error.
// Drop-and-pad: C = num_out_tokens / E (floor) rows an expert, R = C * E: its first C routed
// tokens, then, where it has fewer, its first unrouted tokens (pad rows, copied like the others,
// with their probs). sorted_indices[row] = token. C may not exceed T.
//
// The values are copied: exact for every bit pattern.
struct PermuteWithRoutingMapArgs {
  ConstTensorView tokens;                // [T, H] float
  ConstTensorView routing_map;           // [T, E] int8 or bool
  std::optional<ConstTensorView> probs;  // [T, E] float
  std::int64_t num_out_tokens = 0;       // not padded: R, any number; drop-and-pad: see above
  std::int64_t top_k = 0;                // K; not padded only
  bool drop_and_pad = false;

  TensorView permuted_tokens;                   // [R, H], dtype of tokens
  std::optional<TensorView> permuted_probs;     // [R], dtype of probs; if and only if probs
  TensorView sorted_indices;                    // [T * K] or [R], int32 or int64
  std::optional<TensorView> tokens_per_expert;  // [E] int32 or int64: routes in the map
  std::optional<TensorView> expert_offsets;     // [E + 1] int32 or int64: first row of each expert
};

struct PermuteWithRoutingMapSpecs {
  TensorSpec permuted_tokens;
  std::optional<TensorSpec> permuted_probs;  // where probs are given
  TensorSpec sorted_indices;                 // int32
  TensorSpec tokens_per_expert;              // int64
  TensorSpec expert_offsets;                 // int64
};

MOEPERM_EXPORT Status PermuteWithRoutingMap(const PermuteWithRoutingMapArgs& args,
                                            const Context& context = Context::Default()) noexcept;

// Shapes and dtypes of the outputs, from the inputs and attributes alone (outputs are not looked
// at, no data is read). Refuses what PermuteWithRoutingMap would refuse.
MOEPERM_EXPORT Status InferPermuteWithRoutingMap(const PermuteWithRoutingMapArgs& args,
                                                 PermuteWithRoutingMapSpecs* specs) noexcept;

// Brings the gradients of the permuted tokens and probs back to token order.
//
// Not padded (K = slots / T): tokens_grad[t] = sum over t's slots, ascending, of
// permuted_tokens_grad[sorted_indices[slot]]; slots holding -1 are skipped. The sum is kept in
// float32; it starts as the row of slot t*K where that slot is routed, else from +0, and is rounded
// to the dtype once. probs_grad[t][e] = permuted_probs_grad[rank of route (t, e)], routes counted
// expert by expert, tokens ascending; +0 where there is no route or the rank is not below R. The
// map alone decides probs_grad.
// Drop-and-pad: tokens_grad[t] = sum over the rows with sorted_indices[row] == t, rows ascending,
// in float32 from +0. probs_grad[sorted_indices[row]][row / C] = permuted_probs_grad[row], where
// C = R / E (R a multiple of E); the last of two equal pairs wins; +0 elsewhere.
//
// Either gradient may be asked for alone: an output that is absent is not computed, and what only
// it needs may be absent too.
struct PermuteWithRoutingMapGradArgs {
  std::optional<ConstTensorView> permuted_tokens_grad;  // [R, H]; with tokens_grad
  std::optional<ConstTensorView> permuted_probs_grad;   // [R]; with probs_grad
  ConstTensorView sorted_indices;                       // [T * K] or [R], int32 or int64
  std::optional<ConstTensorView> routing_map;           // [T, E]; with probs_grad, not padded
  std::int64_t num_tokens = 0;                          // T
  std::int64_t num_experts = 0;                         // E; with probs_grad
  bool drop_and_pad = false;
  // Not padded: a slot holding a row number >= R is an error. true: it is skipped, like -1.
  bool skip_rows_out_of_range = false;

  std::optional<TensorView> tokens_grad;  // [T, H], dtype of permuted_tokens_grad
  std::optional<TensorView> probs_grad;   // [T, E], dtype of permuted_probs_grad
};

struct PermuteWithRoutingMapGradSpecs {
  std::optional<TensorSpec> tokens_grad;  // where permuted_tokens_grad is given
  std::optional<TensorSpec> probs_grad;   // where permuted_probs_grad is given
};

MOEPERM_EXPORT Status
PermuteWithRoutingMapGrad(const PermuteWithRoutingMapGradArgs& args,
                          const Context& context = Context::Default()) noexcept;

// Shapes and dtypes of the gradients whose permuted ones are given, from the inputs and attributes
// alone (outputs are not looked at, no data is read). Refuses what PermuteWithRoutingMapGrad would
// refuse of these, but not what only probs_grad needs, for it need not be wanted: routing_map may
// be absent, and in drop-and-pad mode R need not be a multiple of E.
MOEPERM_EXPORT Status InferPermuteWithRoutingMapGrad(
    const PermuteWithRoutingMapGradArgs& args, PermuteWithRoutingMapGradSpecs* specs) noexcept;

// A further array of the tokens that moves with their rows, of any dtype; elements wider than 8
// bytes are several narrower ones.
struct SideData {
  ConstTensorView src;  // [T, N], any N
  TensorView dst;       // [R, N], dtype of src: dst[row] = src[token of row], bits as they are
};

// The same pair over an index built once: any routing, ragged included, no slots to count. The
// forms above are these two with sorted_indices as the index's carrier.
struct PermuteByRowMapArgs {
  ConstTensorView tokens;                    // [T, H] float
  std::optional<ConstTensorView> probs;      // [T, E] float
  TensorView permuted_tokens;                // [R, H], dtype of tokens
  std::optional<TensorView> permuted_probs;  // [R], dtype of probs; if and only if probs
  std::span<const SideData> side = {};       // zeros for rows without a token
};

MOEPERM_EXPORT Status PermuteByRowMap(const RowMap& row_map, const PermuteByRowMapArgs& args,
                                      const Context& context = Context::Default()) noexcept;

struct PermuteByRowMapGradArgs {
  std::optional<ConstTensorView> permuted_tokens_grad;  // [R, H]; with tokens_grad
  std::optional<ConstTensorView> permuted_probs_grad;   // [R]; with probs_grad
  std::optional<TensorView> tokens_grad;                // [T, H]
  std::optional<TensorView> probs_grad;                 // [T, E]
};

MOEPERM_EXPORT Status PermuteByRowMapGrad(const RowMap& row_map,
                                          const PermuteByRowMapGradArgs& args,
                                          const Context& context = Context::Default()) noexcept;

}  // namespace moeperm
