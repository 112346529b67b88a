// SPDX-License-Identifier: Apache-2.0
// spread_rows with weights and dot_rows, in one pass; included once a target.
//
// Bytes: a token's row is read once from memory (then from the caches, once a row), every row of
// `other` is read once, every row of dst is written once. A tile of columns visits all rows of a
// token before the next one, so that the token's tile stays in registers.
//
// Order of a dot product (docs/numerics.md): element h is added into lane h mod 16, h ascending,
// from +0; then the lanes are halved pairwise.
#include <array>

HWY_BEFORE_NAMESPACE();
namespace moeperm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kDotLanes = 16;
// Lanes of a vector: a constant on the targets this is compiled for.
inline constexpr std::size_t kWidth = hn::MaxLanes(DF());
static_assert(kDotLanes % kWidth == 0);
// Vectors of a tile: whole turns of the lanes, and an even number, since 16-bit types are stored in
// pairs.
inline constexpr std::size_t kTileVectors = std::max<std::size_t>(4, kDotLanes / kWidth);
inline constexpr auto kTileColumns = static_cast<std::int64_t>(kTileVectors * kWidth);
// Rows of a token taken together; their lanes stay in the first-level cache.
inline constexpr std::int64_t kGroup = 32;

// Vectors of neighbouring elements in order: lanes have a meaning here.
struct OrderedFloat32 : Float32Rows {
  static HWY_INLINE VF LoadOne(const Element* from) { return hn::LoadU(DF(), from); }
};
struct OrderedFloat16 : Float16Rows {
  static HWY_INLINE VF LoadOne(const Element* from) { return LoadFloat16(from); }
};
struct OrderedBFloat16 : BFloat16Rows {
  static HWY_INLINE VF LoadOne(const Element* from) {
    const VU bits = hn::PromoteTo(DU(), hn::LoadU(DU16(), from));
    return hn::BitCast(DF(), hn::ShiftLeft<16>(bits));
  }
  static HWY_INLINE void Store(VF a, VF b, Element* to, [[maybe_unused]] bool stream) {
    const DI di;  // values are at most 0xFFFF, so the saturating conversion is a truncation
    const auto low = hn::DemoteTo(DU16(), hn::BitCast(di, hn::ShiftRight<16>(RoundedBFloat16(a))));
    const auto high = hn::DemoteTo(DU16(), hn::BitCast(di, hn::ShiftRight<16>(RoundedBFloat16(b))));
#if HWY_TARGET == HWY_SCALAR
    hn::StoreU(low, DU16(), to);
    hn::StoreU(high, DU16(), to + 1);
#else
    Store16(hn::Combine(D16(), high, low), to, stream);
#endif
  }
};

using DotLanes = std::array<float, kDotLanes>;

HWY_INLINE float SumLanes(DotLanes lanes) {
  for (std::size_t half = kDotLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// One slot of a token: what is read, what is written.
template <class Element>
struct DotSlot {
  const Element* other = nullptr;  // null: no row
  Element* to = nullptr;           // null: nothing is written
  float weight = 0;
  DotLanes lanes{};
};

template <class Rows, bool kDot, bool kSpread>
HWY_INLINE void VisitTile(const std::array<VF, kTileVectors>& tile,
                          const typename Rows::Element* other, float weight, DotLanes& lanes,
                          typename Rows::Element* to, bool stream) {
  if constexpr (kDot) {
    if (other != nullptr) {
      constexpr std::size_t kTurn = kDotLanes / kWidth;
      for (std::size_t r = 0; r < kTurn; ++r) {
        VF sum = hn::LoadU(DF(), lanes.data() + r * kWidth);
        for (std::size_t v = r; v < kTileVectors; v += kTurn) {
          sum = hn::Add(sum, hn::Mul(tile[v], Rows::LoadOne(other + v * kWidth)));
        }
        hn::StoreU(sum, DF(), lanes.data() + r * kWidth);
      }
    }
  }
  if constexpr (kSpread) {
    if (to != nullptr) {
      const VF w = hn::Set(DF(), weight);
      for (std::size_t v = 0; v < kTileVectors; v += 2) {
        Rows::Store(hn::Mul(tile[v], w), hn::Mul(tile[v + 1], w), to + v * kWidth, stream);
      }
    }
  }
}

template <class Rows>
HWY_INLINE std::array<VF, kTileVectors> LoadTile(const typename Rows::Element* from) {
  std::array<VF, kTileVectors> tile;
  for (std::size_t v = 0; v < kTileVectors; ++v) tile[v] = Rows::LoadOne(from + v * kWidth);
  return tile;
}

// The columns that fill no tile, through a padded copy: +0 times +0 leaves a lane as it is, since
// no lane is ever -0.
template <class Rows, bool kDot, bool kSpread>
HWY_INLINE void VisitTail(const typename Rows::Element* from, std::int64_t begin, std::int64_t end,
                          DotSlot<typename Rows::Element>* slots, std::int64_t count) {
  using Element = typename Rows::Element;
  using Padded = std::array<Element, static_cast<std::size_t>(kTileColumns)>;
  const auto bytes = static_cast<std::size_t>(end - begin) * sizeof(Element);
  Padded token{};
  std::memcpy(token.data(), from + begin, bytes);
  const std::array<VF, kTileVectors> tile = LoadTile<Rows>(token.data());
  for (std::int64_t k = 0; k < count; ++k) {
    DotSlot<Element>& slot = slots[k];
    Padded row{};
    Padded result{};
    if (kDot && slot.other != nullptr) std::memcpy(row.data(), slot.other + begin, bytes);
    VisitTile<Rows, kDot, kSpread>(tile, kDot && slot.other != nullptr ? row.data() : nullptr,
                                   slot.weight, slot.lanes,
                                   slot.to != nullptr ? result.data() : nullptr, false);
    if (kSpread && slot.to != nullptr) std::memcpy(slot.to + begin, result.data(), bytes);
  }
}

// The slots [begin, end) of one token.
template <class Rows>
HWY_INLINE std::int64_t FindSlots(const SpreadDotJob& job, std::int64_t begin, std::int64_t end,
                                  DotSlot<typename Rows::Element>* slots) {
  using Element = typename Rows::Element;
  for (std::int64_t s = begin; s < end; ++s) {
    DotSlot<Element>& slot = slots[s - begin];
    slot = {};
    if (job.dots != nullptr) {
      const std::int32_t row = job.index.rows[s];
      if (row >= 0 && row < job.num_rows) {
        slot.other = reinterpret_cast<const Element*>(job.other + row * job.other_row_bytes);
      }
    }
    if (job.dst != nullptr && job.write_rows[s] >= 0) {
      slot.to = reinterpret_cast<Element*>(job.dst + job.write_rows[s] * job.dst_row_bytes);
      slot.weight = job.weights[s];
    }
  }
  return end - begin;
}

template <class Rows, bool kDot, bool kSpread>
void SpreadDotRange(const SpreadDotJob& job, std::int64_t token_begin, std::int64_t token_end) {
  using Element = typename Rows::Element;
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(Element));
  using Slots = std::array<DotSlot<Element>, static_cast<std::size_t>(kGroup)>;
  std::array<Slots, 2> both;
  Slots* slots = both.data();
  Slots* next = both.data() + 1;
  const std::int64_t slot_end = token_begin < token_end ? job.index.End(token_end - 1) : 0;
  std::int64_t token = token_begin;
  std::int64_t begin = token < token_end ? job.index.Begin(token) : 0;
  // Past tokens without slots, to the next group of slots.
  const auto settle = [&] {
    while (token < token_end && begin >= job.index.End(token)) ++token;
  };
  const auto find = [&](Slots* found) -> std::int64_t {
    settle();
    if (token >= token_end) return 0;
    const std::int64_t end = std::min(begin + kGroup, job.index.End(token));
    return FindSlots<Rows>(job, begin, end, found->data());
  };
  if (begin >= slot_end) return;
  std::int64_t count = find(slots);
  while (count > 0) {
    const std::int64_t this_begin = begin;
    const auto* from = reinterpret_cast<const Element*>(job.src + token * job.src_row_bytes);
    begin += count;
    const std::int64_t next_count = find(next);
    const std::uint8_t* const next_from =
        token < token_end ? job.src + token * job.src_row_bytes : nullptr;
    const std::int64_t row_bytes = job.hidden * kSize;
    const std::int64_t distance =
        std::min(std::max<std::int64_t>(kPrefetchBytes / count, 512), row_bytes);
    std::int64_t i = 0;
    for (; i + kTileColumns <= job.hidden; i += kTileColumns) {
      const std::array<VF, kTileVectors> tile = LoadTile<Rows>(from + i);
      const std::int64_t ahead = i * kSize + distance;
      const bool wraps = ahead >= row_bytes;
      if (wraps && next_from != nullptr) hwy::Prefetch(next_from + (ahead - row_bytes));
      for (std::int64_t k = 0; k < count; ++k) {
        DotSlot<Element>& slot = (*slots)[static_cast<std::size_t>(k)];
        if constexpr (kDot) {
          const Element* fetch = slot.other;
          if (wraps) fetch = k < next_count ? (*next)[static_cast<std::size_t>(k)].other : nullptr;
          if (fetch != nullptr) {
            const auto* line =
                reinterpret_cast<const std::uint8_t*>(fetch) + ahead - (wraps ? row_bytes : 0);
            for (std::int64_t at = 0; at < kTileColumns * kSize; at += 64) {
              hwy::Prefetch(line + at);
            }
          }
        }
        VisitTile<Rows, kDot, kSpread>(tile, slot.other == nullptr ? nullptr : slot.other + i,
                                       slot.weight, slot.lanes,
                                       slot.to == nullptr ? nullptr : slot.to + i, job.stream);
      }
    }
    if (i < job.hidden) {
      VisitTail<Rows, kDot, kSpread>(from, i, job.hidden, slots->data(), count);
    }
    if constexpr (kDot) {
      for (std::int64_t k = 0; k < count; ++k) {
        job.dots[this_begin + k] = SumLanes((*slots)[static_cast<std::size_t>(k)].lanes);
      }
    }
    std::swap(slots, next);
    count = next_count;
  }
}

template <class Rows>
void SpreadDot(const SpreadDotJob& job, std::int64_t token_begin, std::int64_t token_end) {
  if (job.dots != nullptr && job.dst != nullptr) {
    SpreadDotRange<Rows, true, true>(job, token_begin, token_end);
  } else if (job.dots != nullptr) {
    SpreadDotRange<Rows, true, false>(job, token_begin, token_end);
  } else {
    SpreadDotRange<Rows, false, true>(job, token_begin, token_end);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace moeperm
HWY_AFTER_NAMESPACE();
