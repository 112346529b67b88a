// SPDX-License-Identifier: Apache-2.0
// The row primitives over views: the threads, and the choice of kernel. They know no operator.
#pragma once

#include <cstdint>

#include "base/context.hpp"
#include "moeperm/tensor.hpp"
#include "rows/jobs.hpp"

namespace moeperm {

struct ReduceOptions {
  bool from_zero = false;
  bool skip_out_of_range = false;
  Weighting weighting = Weighting::kNone;
  const float* weights = nullptr;  // one a slot, unless kNone
  bool skip_zero_weights = false;  // a slot of weight +-0 is taken as one without a row
};

// reduce_rows: dst[token] = sum of weight * src[row] over the token's rows, in slot order, by the
// numeric contract; a token without rows gets +0. src [rows, hidden] and dst [tokens, hidden] of
// one floating-point dtype, any strides. Returns the lowest slot whose row is not below the number
// of rows of src (nothing is read for it), or -1.
std::int64_t ReduceRows(const Context::Impl& context, const TokenRows& index,
                        const ReduceOptions& options, const ConstTensorView& src,
                        const TensorView& dst);

// spread_rows: dst[row] = src[token] for every row of every token; rows are valid. Elements of 1,
// 2, 4 or 8 bytes, any strides. Rows of no token are not written.
void SpreadRows(const Context::Impl& context, const TokenRows& index, const ConstTensorView& src,
                const TensorView& dst);

// spread_rows with weights and dot_rows, in one pass over src and `other`:
//   dst[row] = weights[slot] * src[token], rounded once, row = write_rows[slot] >= 0, each row
//   once; dots[slot] = <src[token], other[row]>, row = index.rows[slot]; +0 where other has no such
//   row.
// src [tokens, hidden], other and dst [rows, hidden] of one floating-point dtype, any strides.
// dst with write_rows and weights, or other with dots, may be null. Rows of dst that no slot writes
// are not touched.
struct SpreadDotArgs {
  const ConstTensorView* src = nullptr;
  const ConstTensorView* other = nullptr;
  float* dots = nullptr;
  const TensorView* dst = nullptr;
  const std::int32_t* write_rows = nullptr;
  const float* weights = nullptr;
};
void SpreadDotRows(const Context::Impl& context, const TokenRows& index, const SpreadDotArgs& args);

// dst[row] = 0 for the rows [begin, end), none where end is not above begin.
void ZeroRows(const Context::Impl& context, std::int64_t begin, std::int64_t end,
              const TensorView& dst);

// Whether writing an output of this size should go past the caches: where it would not stay in
// them anyway, the read of each line before it is written is saved.
bool ShouldStream(std::int64_t bytes);

}  // namespace moeperm
