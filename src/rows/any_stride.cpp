// SPDX-License-Identifier: Apache-2.0
// The primitives for what the SIMD bodies leave: columns that are not neighbours, rows shorter than
// a vector, tokens with very many routes. Same order of addition, so the same bits.
#include <algorithm>
#include <array>
#include <cstring>

#include "rows/convert.hpp"
#include "rows/kernels.hpp"

namespace moeperm {
namespace {

// Columns summed at a time: small enough for the first-level cache.
constexpr std::int64_t kTile = 512;

template <class T>
T LoadElement(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void StoreElement(std::uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

// The first row of the slots [begin, end) that is there, or -1; *count is how many there are.
// Reports rows that point nowhere.
std::int64_t FirstTaken(const ReduceJob& job, std::int64_t begin, std::int64_t end,
                        std::int64_t* count) {
  std::int64_t first = -1;
  *count = 0;
  for (std::int64_t slot = begin; slot < end; ++slot) {
    const std::int32_t row = job.index.rows[slot];
    if (row >= job.num_rows && !job.skip_out_of_range) job.bad->Report(slot);
    if (row < 0 || row >= job.num_rows) continue;
    if (first < 0) first = slot;
    ++*count;
  }
  return first;
}

template <class T>
void SumTile(const ReduceJob& job, std::int64_t begin, std::int64_t end, bool from_row,
             std::int64_t column, std::int64_t width, std::array<float, kTile>& sum) {
  if (!from_row) std::fill_n(sum.begin(), width, 0.0F);
  bool start = from_row;
  for (std::int64_t slot = begin; slot < end; ++slot) {
    const std::int32_t row = job.index.rows[slot];
    if (row < 0 || row >= job.num_rows) continue;
    const std::uint8_t* from = job.src + row * job.src_row_bytes + column * job.src_col_bytes;
    for (std::int64_t i = 0; i < width; ++i, from += job.src_col_bytes) {
      const float value = Widen(LoadElement<T>(from));
      auto& element = sum[static_cast<std::size_t>(i)];
      element = start ? value : element + value;
    }
    start = false;
  }
}

template <class T>
void ReduceAny(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end) {
  std::array<float, kTile> sum;
  for (std::int64_t token = token_begin; token < token_end; ++token) {
    const std::int64_t begin = job.index.Begin(token);
    const std::int64_t end = job.index.End(token);
    std::int64_t count = 0;
    const std::int64_t first = FirstTaken(job, begin, end, &count);
    const bool from_row = !job.from_zero && first == begin && count > 0;
    std::uint8_t* to = job.dst + token * job.dst_row_bytes;
    if (from_row && count == 1) {  // a copy, exact in every bit pattern
      const std::uint8_t* from = job.src + job.index.rows[first] * job.src_row_bytes;
      for (std::int64_t i = 0; i < job.hidden; ++i) {
        std::memcpy(to + i * job.dst_col_bytes, from + i * job.src_col_bytes, sizeof(T));
      }
      continue;
    }
    for (std::int64_t column = 0; column < job.hidden; column += kTile) {
      const std::int64_t width = std::min(kTile, job.hidden - column);
      SumTile<T>(job, begin, end, from_row, column, width, sum);
      for (std::int64_t i = 0; i < width; ++i) {
        StoreElement(to + (column + i) * job.dst_col_bytes,
                     Narrow<T>(sum[static_cast<std::size_t>(i)]));
      }
    }
  }
}

template <std::size_t kBytes>
void SpreadElements(const SpreadJob& job, std::int64_t token_begin, std::int64_t token_end) {
  for (std::int64_t token = token_begin; token < token_end; ++token) {
    const std::uint8_t* from = job.src + token * job.src_row_bytes;
    for (std::int64_t slot = job.index.Begin(token); slot < job.index.End(token); ++slot) {
      const std::int32_t row = job.index.rows[slot];
      if (row < 0) continue;
      std::uint8_t* to = job.dst + row * job.dst_row_bytes;
      for (std::int64_t i = 0; i < job.hidden; ++i) {
        std::memcpy(to + i * job.dst_col_bytes, from + i * job.src_col_bytes, kBytes);
      }
    }
  }
}

}  // namespace

void ReduceAnyFloat32(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end) {
  ReduceAny<float>(job, token_begin, token_end);
}
void ReduceAnyFloat16(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end) {
  ReduceAny<Float16>(job, token_begin, token_end);
}
void ReduceAnyBFloat16(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end) {
  ReduceAny<BFloat16>(job, token_begin, token_end);
}

void SpreadAny(const SpreadJob& job, std::int64_t token_begin, std::int64_t token_end) {
  if (job.element_bytes == 4) {
    SpreadElements<4>(job, token_begin, token_end);
  } else {
    SpreadElements<2>(job, token_begin, token_end);
  }
}

}  // namespace moeperm
