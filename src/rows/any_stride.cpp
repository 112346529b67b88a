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

bool Takes(const ReduceJob& job, std::int64_t slot) {
  const std::int32_t row = job.index.rows[slot];
  return row >= 0 && row < job.num_rows && !(job.skip_zero_weights && job.weights[slot] == 0.0F);
}

// The first slot of [begin, end) whose row is taken, or -1; *count is how many there are.
// Reports rows that point nowhere.
std::int64_t FirstTaken(const ReduceJob& job, std::int64_t begin, std::int64_t end,
                        std::int64_t* count) {
  std::int64_t first = -1;
  *count = 0;
  for (std::int64_t slot = begin; slot < end; ++slot) {
    const std::int32_t row = job.index.rows[slot];
    if (row >= job.num_rows && !job.skip_out_of_range) job.bad->Report(slot);
    if (!Takes(job, slot)) continue;
    if (first < 0) first = slot;
    ++*count;
  }
  return first;
}

template <class T>
float Weighted(const ReduceJob& job, std::int64_t slot, float value) {
  if (job.weighting == Weighting::kNone) return value;
  value *= job.weights[slot];
  return job.weighting == Weighting::kRoundedToRow ? Widen(Narrow<T>(value)) : value;
}

template <class T>
void SumTile(const ReduceJob& job, std::int64_t begin, std::int64_t end, bool from_row,
             std::int64_t column, std::int64_t width, std::array<float, kTile>& sum) {
  if (!from_row) std::fill_n(sum.begin(), width, 0.0F);
  bool start = from_row;
  for (std::int64_t slot = begin; slot < end; ++slot) {
    if (!Takes(job, slot)) continue;
    const std::int32_t row = job.index.rows[slot];
    const std::uint8_t* from = job.src + row * job.src_row_bytes + column * job.src_col_bytes;
    for (std::int64_t i = 0; i < width; ++i, from += job.src_col_bytes) {
      const float value = Weighted<T>(job, slot, Widen(LoadElement<T>(from)));
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
    if (from_row && count == 1 &&
        job.weighting == Weighting::kNone) {  // a copy, exact in every bit pattern
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

// The lanes of spread_dot-inl.hpp.
template <class T>
float Dot(const SpreadDotJob& job, std::int64_t token, std::int32_t row) {
  std::array<float, 16> lanes{};
  const std::uint8_t* a = job.src + token * job.src_row_bytes;
  const std::uint8_t* b = job.other + row * job.other_row_bytes;
  for (std::int64_t i = 0; i < job.hidden; ++i) {
    const float product = Widen(LoadElement<T>(a)) * Widen(LoadElement<T>(b));
    lanes[static_cast<std::size_t>(i % 16)] += product;
    a += job.src_col_bytes;
    b += job.other_col_bytes;
  }
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

template <class T>
void SpreadDotAny(const SpreadDotJob& job, std::int64_t token_begin, std::int64_t token_end) {
  for (std::int64_t token = token_begin; token < token_end; ++token) {
    for (std::int64_t slot = job.index.Begin(token); slot < job.index.End(token); ++slot) {
      if (job.dots != nullptr) {
        const std::int32_t row = job.index.rows[slot];
        job.dots[slot] = row >= 0 && row < job.num_rows ? Dot<T>(job, token, row) : 0.0F;
      }
      if (job.dst == nullptr || job.write_rows[slot] < 0) continue;
      const std::uint8_t* from = job.src + token * job.src_row_bytes;
      std::uint8_t* to = job.dst + job.write_rows[slot] * job.dst_row_bytes;
      for (std::int64_t i = 0; i < job.hidden; ++i) {
        const float value = Widen(LoadElement<T>(from + i * job.src_col_bytes));
        StoreElement(to + i * job.dst_col_bytes, Narrow<T>(value * job.weights[slot]));
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

void SpreadDotAnyFloat32(const SpreadDotJob& job, std::int64_t token_begin,
                         std::int64_t token_end) {
  SpreadDotAny<float>(job, token_begin, token_end);
}
void SpreadDotAnyFloat16(const SpreadDotJob& job, std::int64_t token_begin,
                         std::int64_t token_end) {
  SpreadDotAny<Float16>(job, token_begin, token_end);
}
void SpreadDotAnyBFloat16(const SpreadDotJob& job, std::int64_t token_begin,
                          std::int64_t token_end) {
  SpreadDotAny<BFloat16>(job, token_begin, token_end);
}

void SpreadAny(const SpreadJob& job, std::int64_t token_begin, std::int64_t token_end) {
  switch (job.element_bytes) {
    case 1:
      return SpreadElements<1>(job, token_begin, token_end);
    case 2:
      return SpreadElements<2>(job, token_begin, token_end);
    case 4:
      return SpreadElements<4>(job, token_begin, token_end);
    default:
      return SpreadElements<8>(job, token_begin, token_end);
  }
}

}  // namespace moeperm
