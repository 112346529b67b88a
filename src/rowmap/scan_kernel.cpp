// SPDX-License-Identifier: Apache-2.0
// The scan of a routing map's row, compiled once for each instruction set.
#include "rowmap/scan_kernel.hpp"

#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rowmap/scan_kernel.cpp"
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

// Bit i: byte i of the 64 at `from` is not 0.
HWY_INLINE std::uint64_t BitsOf64(const std::uint8_t* from) {
  using D8 = hn::CappedTag<std::uint8_t, 64>;
  const D8 d8;
  const std::size_t n = hn::Lanes(d8);
  std::uint64_t bits = 0;
  if (n >= 16) {
    for (std::size_t i = 0; i < 64; i += n) {
      const auto mask = hn::Ne(hn::LoadU(d8, from + i), hn::Zero(d8));
      std::uint8_t stored[8] = {};
      hn::StoreMaskBits(d8, mask, stored);
      std::uint64_t part = 0;
      std::memcpy(&part, stored, sizeof(part));
      bits |= part << i;
    }
  } else {
    for (unsigned i = 0; i < 8; ++i) bits |= BitsOf8(from + 8 * i) << (8 * i);
  }
  return bits;
}

// Most words have few bits: the first four are written without asking, so that no branch depends
// on their number.
HWY_INLINE std::int32_t* Append(std::uint64_t bits, std::int32_t base, std::int32_t* out) {
  const int count = std::popcount(bits);
  for (int i = 0; i < 4; ++i) {
    out[i] = base + std::countr_zero(bits);
    bits &= bits - 1;
  }
  for (int i = 4; HWY_UNLIKELY(i < count); ++i) {
    out[i] = base + std::countr_zero(bits);
    bits &= bits - 1;
  }
  return out + count;
}

std::int64_t ScanOneRow(const std::uint8_t* row, std::int64_t experts, std::int32_t* out) {
  std::int32_t* end = out;
  std::int64_t e = 0;
  for (; e + 64 <= experts; e += 64) end = Append(BitsOf64(row + e), static_cast<std::int32_t>(e), end);
  if (e < experts) {
    std::uint64_t bits = 0;
    unsigned shift = 0;
    for (; e + 8 <= experts; e += 8, shift += 8) bits |= BitsOf8(row + e) << shift;
    for (; e < experts; ++e, ++shift) bits |= static_cast<std::uint64_t>(row[e] != 0) << shift;
    end = Append(bits, static_cast<std::int32_t>(experts - shift), end);
  }
  return end - out;
}

}  // namespace HWY_NAMESPACE
}  // namespace moeperm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace moeperm {
namespace {
HWY_EXPORT(ScanOneRow);
}  // namespace

ScanRow ScanRowFor(const Isa& isa) { return HWY_DISPATCH_TABLE(ScanOneRow)[isa.index]; }

}  // namespace moeperm
#endif
