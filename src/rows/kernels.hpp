// SPDX-License-Identifier: Apache-2.0
// The row primitives of one instruction set. All give the same bits (docs/numerics.md).
#pragma once

#include <cstdint>

#include "base/isa.hpp"
#include "moeperm/dtype.hpp"
#include "rows/jobs.hpp"

namespace moeperm {

struct RowKernels {
  using Reduce = void (*)(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end);
  Reduce reduce_float32;
  Reduce reduce_float16;
  Reduce reduce_bfloat16;
  using SpreadDot = void (*)(const SpreadDotJob& job, std::int64_t token_begin,
                             std::int64_t token_end);
  // Column strides equal to the element size, as in spread.
  SpreadDot spread_dot_float32;
  SpreadDot spread_dot_float16;
  SpreadDot spread_dot_bfloat16;
  void (*spread)(const SpreadJob& job, std::int64_t token_begin, std::int64_t token_end);
  void (*fill_zero)(std::uint8_t* dst, std::int64_t bytes, bool stream);
  void (*copy)(std::uint8_t* dst, const std::uint8_t* src, std::int64_t bytes, bool stream);
  // Orders streaming stores before whatever the thread does next.
  void (*flush_stream)();

  [[nodiscard]] Reduce reduce(DType dtype) const {
    return OfDType(dtype, reduce_float32, reduce_float16, reduce_bfloat16);
  }
  [[nodiscard]] SpreadDot spread_dot(DType dtype) const {
    return OfDType(dtype, spread_dot_float32, spread_dot_float16, spread_dot_bfloat16);
  }

  template <class Kernel>
  static Kernel OfDType(DType dtype, Kernel float32, Kernel float16, Kernel bfloat16) {
    switch (dtype) {
      case DType::kFloat16:
        return float16;
      case DType::kBFloat16:
        return bfloat16;
      default:
        return float32;
    }
  }
};

const RowKernels& RowKernelsFor(const Isa& isa);

// The same for any column strides, hidden size and number of routes; scalar.
void ReduceAnyFloat32(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end);
void ReduceAnyFloat16(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end);
void ReduceAnyBFloat16(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end);
void SpreadAny(const SpreadJob& job, std::int64_t token_begin, std::int64_t token_end);
void SpreadDotAnyFloat32(const SpreadDotJob& job, std::int64_t token_begin, std::int64_t token_end);
void SpreadDotAnyFloat16(const SpreadDotJob& job, std::int64_t token_begin, std::int64_t token_end);
void SpreadDotAnyBFloat16(const SpreadDotJob& job, std::int64_t token_begin,
                          std::int64_t token_end);

}  // namespace moeperm
