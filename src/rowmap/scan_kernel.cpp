// SPDX-License-Identifier: Apache-2.0
// The scan of a routing map's row, compiled once for each instruction set.
#include "rowmap/scan_kernel.hpp"

#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rowmap/scan_kernel.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace moeperm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Bit i: byte i of the 8 at `from` is not 0.
HWY_INLINE std::uint64_t BitsOf8(const std::uint8_t* from) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, from, 8);
  constexpr std::uint64_t kLow7 = 0x7F7F7F7F7F7F7F7F;
  const std::uint64_t tops = (((bytes & kLow7) + kLow7) | bytes) & ~kLow7;
  return ((tops >> 7) * 0x0102040810204080) >> 56;
}

// Words of 64 columns that are looked at before their routes are written: 16 KiB.
inline constexpr std::int64_t kMaxWords = 2048;
// Fewer than 256, so that a byte counts them.
inline constexpr std::int64_t kMaxTokens = 64;

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_RVV
using D8 = hn::CappedTag<std::uint8_t, 64>;

// words[t * stride], bit i: byte i of the 64 at row t is not 0. Adds the columns' routes to
// histogram[0 .. 63]: the counts stay in registers, where adding one a route in memory would wait
// for the one before.
template <int kVectors>
HWY_INLINE void ScanColumn(const std::uint8_t* rows, std::int64_t row_bytes, std::int64_t tokens,
                           std::uint64_t* words, std::int64_t stride, std::int32_t* histogram) {
  const D8 d8;
  constexpr std::int64_t kStep = 64 / kVectors;
  const auto zero = hn::Zero(d8);
  auto count0 = zero;
  auto count1 = zero;
  auto count2 = zero;
  auto count3 = zero;
  const auto look = [&](const std::uint8_t* from, auto& count) HWY_ATTR {
    const auto mask = hn::Ne(hn::LoadU(d8, from), zero);
    count = hn::Sub(count, hn::VecFromMask(d8, mask));  // true is -1
    std::uint64_t bits = 0;
    hn::StoreMaskBits(d8, mask, reinterpret_cast<std::uint8_t*>(&bits));
    return bits;
  };
  // The next tile is fetched meanwhile: column by column the processor sees no stream to follow.
  const std::int64_t ahead = tokens * row_bytes;
  for (std::int64_t t = 0; t < tokens; ++t, rows += row_bytes, words += stride) {
    hwy::Prefetch(rows + ahead);
    std::uint64_t bits = look(rows, count0);
    if constexpr (kVectors > 1) bits |= look(rows + kStep, count1) << kStep;
    if constexpr (kVectors > 2) {
      bits |= look(rows + 2 * kStep, count2) << 2 * kStep;
      bits |= look(rows + 3 * kStep, count3) << 3 * kStep;
    }
    *words = bits;
  }
  HWY_ALIGN std::uint8_t counts[64];
  hn::Store(count0, d8, counts);
  if constexpr (kVectors > 1) hn::Store(count1, d8, counts + kStep);
  if constexpr (kVectors > 2) {
    hn::Store(count2, d8, counts + 2 * kStep);
    hn::Store(count3, d8, counts + 3 * kStep);
  }
  for (int i = 0; i < 64; ++i) histogram[i] += counts[i];
}

HWY_INLINE void Scan64(const std::uint8_t* rows, std::int64_t row_bytes, std::int64_t tokens,
                       std::uint64_t* words, std::int64_t stride, std::int32_t* histogram) {
  switch (hn::Lanes(D8())) {
    case 64:
      return ScanColumn<1>(rows, row_bytes, tokens, words, stride, histogram);
    case 32:
      return ScanColumn<2>(rows, row_bytes, tokens, words, stride, histogram);
    default:
      return ScanColumn<4>(rows, row_bytes, tokens, words, stride, histogram);
  }
}
#else
HWY_INLINE void Scan64(const std::uint8_t* rows, std::int64_t row_bytes, std::int64_t tokens,
                       std::uint64_t* words, std::int64_t stride, std::int32_t* histogram) {
  for (std::int64_t t = 0; t < tokens; ++t, rows += row_bytes, words += stride) {
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < 8; ++i) bits |= BitsOf8(rows + 8 * i) << (8 * i);
    *words = bits;
    for (; bits != 0; bits &= bits - 1) ++histogram[std::countr_zero(bits)];
  }
}
#endif

// The same for the last, 1 to 63, columns.
HWY_INLINE void ScanRest(const std::uint8_t* rows, std::int64_t row_bytes, std::int64_t tokens,
                         std::int64_t columns, std::uint64_t* words, std::int64_t stride,
                         std::int32_t* histogram) {
  for (std::int64_t t = 0; t < tokens; ++t, rows += row_bytes, words += stride) {
    std::uint64_t bits = 0;
    std::int64_t i = 0;
    for (; i + 8 <= columns; i += 8) bits |= BitsOf8(rows + i) << i;
    for (; i < columns; ++i) bits |= static_cast<std::uint64_t>(rows[i] != 0) << i;
    *words = bits;
    for (; bits != 0; bits &= bits - 1) ++histogram[std::countr_zero(bits)];
  }
}

// Takes the lowest bit of *bits; some column past the end where there is none. The top bit is set
// for the count only: it keeps the compiler from branching on an empty word.
HWY_INLINE std::int32_t TakeLowest(std::uint64_t* bits, std::int32_t base) {
  const int lowest = std::countr_zero(*bits | std::uint64_t{1} << 63);
  *bits &= *bits - 1;
  return base + lowest;
}

// Most words have few bits: the first four are written without asking, so that no branch depends
// on their number.
HWY_INLINE std::int32_t* Append(std::uint64_t bits, std::int32_t base, std::int32_t* out) {
  const int count = std::popcount(bits);
  for (int i = 0; i < 4; ++i) out[i] = TakeLowest(&bits, base);
  for (int i = 4; HWY_UNLIKELY(i < count); ++i) out[i] = TakeLowest(&bits, base);
  return out + count;
}

// The words of columns [begin, end), begin a multiple of 64, of `tokens` rows.
HWY_INLINE void ScanTile(const ScanJob& job, const std::uint8_t* rows, std::int64_t tokens,
                         std::int64_t begin, std::int64_t end, std::uint64_t* words) {
  const std::int64_t stride = hwy::DivCeil(end - begin, std::int64_t{64});
  for (std::int64_t e = begin; e < end; e += 64, ++words) {
    std::int32_t* const histogram = job.histogram + e;
    if (e + 64 <= end) {
      Scan64(rows + e, job.row_bytes, tokens, words, stride, histogram);
    } else {
      ScanRest(rows + e, job.row_bytes, tokens, end - e, words, stride, histogram);
    }
  }
}

// Whether `room` elements hold the routes of these words; if not, takes them off the histogram.
HWY_INLINE bool FitsOrUndo(const std::uint64_t* words, std::int64_t rows, std::int64_t row_words,
                           std::int64_t room, std::int32_t* histogram) {
  std::int64_t routes = 0;
  for (std::int64_t i = 0; i < rows * row_words; ++i) routes += std::popcount(words[i]);
  if (routes + kScanSlack <= room) return true;
  for (std::int64_t i = 0; i < rows * row_words; ++i) {
    for (std::uint64_t bits = words[i]; bits != 0; bits &= bits - 1) {
      --histogram[i % row_words * 64 + std::countr_zero(bits)];
    }
  }
  return false;
}

ScanResult Scan(const ScanJob& job) {
  HWY_ALIGN std::uint64_t words[kMaxWords];
  const std::int64_t row_words = hwy::DivCeil(job.experts, std::int64_t{64});
  const std::int64_t tile =
      row_words == 0 ? kMaxTokens : HWY_MAX(HWY_MIN(kMaxWords / row_words, kMaxTokens), 1);
  std::int32_t* end = job.found;
  std::int64_t token = 0;
  while (token < job.tokens) {
    const std::int64_t tokens = HWY_MIN(tile, job.tokens - token);
    const std::int64_t room = job.room - (end - job.found);
    const bool sure = room >= tokens * job.experts + kScanSlack;
    if (!sure && row_words > kMaxWords) break;
    for (std::int64_t t = 0; t < tokens; ++t) job.counts[token + t] = 0;
    // One part of the columns, unless a single row has more than fit.
    for (std::int64_t begin = 0; begin < job.experts; begin += kMaxWords * 64) {
      const std::int64_t stop = HWY_MIN(begin + kMaxWords * 64, job.experts);
      ScanTile(job, job.rows + token * job.row_bytes, tokens, begin, stop, words);
      if (!sure && !FitsOrUndo(words, tokens, row_words, room, job.histogram)) {
        return {token, end - job.found};
      }
      const std::uint64_t* word = words;
      for (std::int64_t t = 0; t < tokens; ++t) {
        std::int32_t* const first = end;
        for (std::int64_t e = begin; e < stop; e += 64) {
          end = Append(*word++, static_cast<std::int32_t>(e), end);
        }
        job.counts[token + t] += static_cast<std::int32_t>(end - first);
      }
    }
    token += tokens;
  }
  return {token, end - job.found};
}

}  // namespace HWY_NAMESPACE
}  // namespace moeperm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace moeperm {
namespace {
HWY_EXPORT(Scan);
}  // namespace

ScanRows ScanRowsFor(const Isa& isa) { return HWY_DISPATCH_TABLE(Scan)[isa.index]; }

}  // namespace moeperm
#endif
