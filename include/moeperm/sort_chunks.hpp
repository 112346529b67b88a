// SPDX-License-Identifier: Apache-2.0
// Chunks of rows in another order, as expert-parallel code needs them after an exchange: from one
// chunk for each pair of process and expert to expert by expert. With its gradient, the inverse.
//
// Symbols in shapes: R rows, H hidden, C chunks. What the header of permute_with_routing_map.hpp
// says of dtypes, views, outputs and errors holds here too. The values are copied: exact for every
// bit pattern.
#pragma once

#include <optional>

#include "moeperm/context.hpp"
#include "moeperm/export.h"
#include "moeperm/status.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm {

// Chunk c is the split_sizes[c] rows after those of the chunks before it; the sizes, none negative,
// add up to R. sorted_rows is the chunks order[0], order[1], ..., one after another; order is a
// permutation of the chunks: a number that is none of them is a kIndexOutOfRange, one that comes
// twice a kInvalidArgument. The probs move with their rows.
struct SortChunksArgs {
  ConstTensorView rows;                    // [R, H] float
  std::optional<ConstTensorView> probs;    // [R] float
  ConstTensorView split_sizes;             // [C] int32 or int64
  ConstTensorView order;                   // [C] int32 or int64
  TensorView sorted_rows;                  // [R, H], dtype of rows
  std::optional<TensorView> sorted_probs;  // [R], dtype of probs; if and only if probs
};

MOEPERM_EXPORT Status SortChunks(const SortChunksArgs& args,
                                 const Context& context = Context::Default()) noexcept;

// The rows of sorted_rows_grad where they came from; the probs likewise. Sizes and order are those
// of the forward.
struct SortChunksGradArgs {
  ConstTensorView sorted_rows_grad;                  // [R, H] float
  std::optional<ConstTensorView> sorted_probs_grad;  // [R] float
  ConstTensorView split_sizes;                       // [C] int32 or int64
  ConstTensorView order;                             // [C] int32 or int64
  TensorView rows_grad;                              // [R, H], dtype of sorted_rows_grad
  std::optional<TensorView> probs_grad;              // [R]; if and only if sorted_probs_grad
};

MOEPERM_EXPORT Status SortChunksGrad(const SortChunksGradArgs& args,
                                     const Context& context = Context::Default()) noexcept;

}  // namespace moeperm
