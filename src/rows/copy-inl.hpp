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

// Calls body(offset, count of vectors, aligned) so that the vectors cover [0, bytes), those with
// aligned = true at aligned addresses of dst. The first and the last may overlap their neighbours,
// which then get the same bytes twice. bytes must be at least one vector.
template <class Body>
HWY_INLINE void CoverAligned(const std::uint8_t* dst, std::int64_t bytes, const Body& body) {
  const auto n = static_cast<std::int64_t>(hn::Lanes(D8()));
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(dst) %
                                              static_cast<std::uintptr_t>(n));
  std::int64_t i = past == 0 ? 0 : n - past;
  if (i != 0) body(std::int64_t{0}, 1, false);
  for (; i + 4 * n <= bytes; i += 4 * n) body(i, 4, true);
  for (; i + n <= bytes; i += n) body(i, 1, true);
  if (i < bytes) body(bytes - n, 1, false);
}

HWY_INLINE void StoreBytes(hn::Vec<D8> value, std::uint8_t* to, bool aligned) {
  if (aligned) {
    hn::Stream(value, D8(), to);
  } else {
    hn::StoreU(value, D8(), to);
  }
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
  CoverAligned(dst, bytes, [&](std::int64_t i, int count, bool aligned) HWY_ATTR {
    if (next != nullptr) {
      for (std::int64_t line = 0; line < count * n; line += 64) hwy::Prefetch(next + i + line);
    }
    if (count == 4) {
      const auto a = hn::LoadU(d8, src + i);
      const auto b = hn::LoadU(d8, src + i + n);
      const auto c = hn::LoadU(d8, src + i + 2 * n);
      const auto d = hn::LoadU(d8, src + i + 3 * n);
      StoreBytes(a, dst + i, aligned);
      StoreBytes(b, dst + i + n, aligned);
      StoreBytes(c, dst + i + 2 * n, aligned);
      StoreBytes(d, dst + i + 3 * n, aligned);
    } else {
      StoreBytes(hn::LoadU(d8, src + i), dst + i, aligned);
    }
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
  CoverAligned(dst, bytes, [&](std::int64_t i, int count, bool aligned) HWY_ATTR {
    for (int k = 0; k < count; ++k) StoreBytes(hn::Zero(d8), dst + i + k * n, aligned);
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
