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
  // Column strides equal to the element size.
  void (*spread)(const SpreadJob& job, std::int64_t token_begin, std::int64_t token_end);
  void (*fill_zero)(std::uint8_t* dst, std::int64_t bytes, bool stream);
  void (*copy)(std::uint8_t* dst, const std::uint8_t* src, std::int64_t bytes, bool stream);
  // Orders streaming stores before whatever the thread does next.
  void (*flush_stream)();

  [[nodiscard]] Reduce reduce(DType dtype) const {
    switch (dtype) {
      case DType::kFloat16:
        return reduce_float16;
      case DType::kBFloat16:
        return reduce_bfloat16;
      default:
        return reduce_float32;
    }
  }
};

const RowKernels& RowKernelsFor(const Isa& isa);

// The same for any column strides, hidden size and number of routes; scalar.
void ReduceAnyFloat32(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end);
void ReduceAnyFloat16(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end);
void ReduceAnyBFloat16(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end);
void SpreadAny(const SpreadJob& job, std::int64_t token_begin, std::int64_t token_end);

}  // namespace moeperm
