// SPDX-License-Identifier: Apache-2.0
// Copies and zeroes past the caches, and spread_rows; included once a target.
#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace moeperm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D8 = hn::ScalableTag<std::uint8_t>;

// One lane at a time there is nothing to stream.
inline constexpr bool kCanStream = HWY_TARGET != HWY_SCALAR;

// Covers [0, bytes) of dst: vectors(offset, count) at aligned addresses, which are to be streamed,
// and edge(offset, bytes) for what lies before and after them. The two never share a cache line: a
// line that was stored to in the ordinary way would have to leave the cache before it is streamed
// to.
template <class Vectors, class Edge>
HWY_INLINE void CoverAligned(const std::uint8_t* dst, std::int64_t bytes, const Vectors& vectors,
                             const Edge& edge) {
  constexpr std::int64_t kLine = 64;
  const auto n = static_cast<std::int64_t>(hn::Lanes(D8()));
  const std::int64_t unit = std::max(n, kLine);
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(dst) %
                                              static_cast<std::uintptr_t>(unit));
  std::int64_t i = past == 0 ? 0 : std::min(unit - past, bytes);
  if (i != 0) edge(std::int64_t{0}, i);
  const std::int64_t end = i + (bytes - i) / unit * unit;
  for (; i + 4 * n <= end; i += 4 * n) vectors(i, 4);
  for (; i < end; i += n) vectors(i, 1);
  if (i < bytes) edge(i, bytes - i);
}

// `next`: where the thread will read after this; fetched meanwhile, one line for each line written.
// May be null.
HWY_INLINE void CopyStreaming(std::uint8_t* HWY_RESTRICT dst, const std::uint8_t* HWY_RESTRICT src,
                              std::int64_t bytes, const std::uint8_t* next) {
  const D8 d8;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d8));
  if (!kCanStream || bytes < n) {
    std::memcpy(dst, src, static_cast<std::size_t>(bytes));
    return;
  }
  const auto vectors = [&](std::int64_t i, int count) HWY_ATTR {
    if (next != nullptr) {
      for (std::int64_t line = 0; line < count * n; line += 64) hwy::Prefetch(next + i + line);
    }
    if (count == 4) {
      const auto a = hn::LoadU(d8, src + i);
      const auto b = hn::LoadU(d8, src + i + n);
      const auto c = hn::LoadU(d8, src + i + 2 * n);
      const auto d = hn::LoadU(d8, src + i + 3 * n);
      hn::Stream(a, d8, dst + i);
      hn::Stream(b, d8, dst + i + n);
      hn::Stream(c, d8, dst + i + 2 * n);
      hn::Stream(d, d8, dst + i + 3 * n);
    } else {
      hn::Stream(hn::LoadU(d8, src + i), d8, dst + i);
    }
  };
  CoverAligned(dst, bytes, vectors, [&](std::int64_t i, std::int64_t size) {
    std::memcpy(dst + i, src + i, static_cast<std::size_t>(size));
  });
}

void Copy(std::uint8_t* dst, const std::uint8_t* src, std::int64_t bytes, bool stream) {
  if (stream) {
    CopyStreaming(dst, src, bytes, nullptr);
  } else {
    std::memcpy(dst, src, static_cast<std::size_t>(bytes));
  }
}

void FillZero(std::uint8_t* dst, std::int64_t bytes, bool stream) {
  const D8 d8;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d8));
  if (!kCanStream || !stream || bytes < n) {
    std::memset(dst, 0, static_cast<std::size_t>(bytes));
    return;
  }
  const auto vectors = [&](std::int64_t i, int count) HWY_ATTR {
    for (int k = 0; k < count; ++k) hn::Stream(hn::Zero(d8), d8, dst + i + k * n);
  };
  CoverAligned(dst, bytes, vectors, [&](std::int64_t i, std::int64_t size) {
    std::memset(dst + i, 0, static_cast<std::size_t>(size));
  });
}

void FlushStream() { hwy::FlushStream(); }

// dst[row] = src[token] for each row of each token. A token is read from memory once, a piece at a
// time that stays in the first-level cache while it is written to the token's rows.
void Spread(const SpreadJob& job, std::int64_t token_begin, std::int64_t token_end) {
  constexpr std::int64_t kPiece = std::int64_t{16} << 10;
  const std::int64_t bytes = job.hidden * job.element_bytes;
  for (std::int64_t token = token_begin; token < token_end; ++token) {
    const std::uint8_t* from = job.src + token * job.src_row_bytes;
    const std::int64_t begin = job.index.Begin(token);
    std::int64_t end = job.index.End(token);
    while (end > begin && job.index.rows[end - 1] < 0) --end;
    for (std::int64_t at = 0; at < bytes; at += kPiece) {
      const std::int64_t size = std::min(kPiece, bytes - at);
      const std::uint8_t* next = nullptr;
      if (bytes <= kPiece && token + 1 < token_end) next = from + job.src_row_bytes;
      for (std::int64_t slot = begin; slot < end; ++slot) {
        const std::int32_t row = job.index.rows[slot];
        if (row < 0) continue;
        std::uint8_t* to = job.dst + row * job.dst_row_bytes + at;
        if (job.stream) {
          CopyStreaming(to, from + at, size, slot + 1 == end ? next : nullptr);
        } else {
          std::memcpy(to, from + at, static_cast<std::size_t>(size));
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace moeperm
HWY_AFTER_NAMESPACE();
