// SPDX-License-Identifier: Apache-2.0
// Loads and stores of pairs of float32 vectors from and to each storage type; included once a
// target. A pair holds 2 * Lanes(DF()) neighbouring elements, which of them in which lane is the
// type's affair: sums are lane by lane. Store() is the vector form of Narrow() in convert.hpp, and
// with `stream` wants an address aligned to a whole vector.
#include "rows/convert.hpp"

HWY_BEFORE_NAMESPACE();
namespace moeperm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DU = hn::RebindToUnsigned<DF>;
using DI = hn::RebindToSigned<DF>;
using DU16 = hn::Rebind<std::uint16_t, DF>;
using VF = hn::Vec<DF>;
using VU = hn::Vec<DU>;

HWY_INLINE VU WithCanonicalNan(VF value, VU bits, std::uint32_t nan) {
  const DU du;
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), hn::Set(du, nan), bits);
}

struct Float32Rows {
  using Element = float;
  static constexpr auto kAny = ReduceAnyFloat32;

  static HWY_INLINE void Load(const Element* from, VF& a, VF& b) {
    const DF df;
    a = hn::LoadU(df, from);
    b = hn::LoadU(df, from + hn::Lanes(df));
  }
  static HWY_INLINE void Store(VF a, VF b, Element* to, bool stream) {
    const DF df;
    StoreOne(a, to, stream);
    StoreOne(b, to + hn::Lanes(df), stream);
  }
  // The nearest value the storage type has.
  static HWY_INLINE VF Round(VF value) { return value; }

 private:
  static HWY_INLINE void StoreOne(VF value, Element* to, bool stream) {
    const DF df;
    value = hn::BitCast(df, WithCanonicalNan(value, hn::BitCast(DU(), value), kNanFloat32));
    if (stream) {
      hn::Stream(value, df, to);
    } else {
      hn::StoreU(value, df, to);
    }
  }
};

// The upper half of each result is the rounded bfloat16.
HWY_INLINE VU RoundedBFloat16(VF value) {
  const DU du;
  const VU bits = hn::BitCast(du, value);
  const VU odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const VU rounded = hn::Add(hn::Add(bits, odd), hn::Set(du, 0x7FFF));
  return WithCanonicalNan(value, rounded, kNanFloat32);
}

HWY_INLINE VF RoundToBFloat16(VF value) {
  return hn::BitCast(DF(), hn::And(RoundedBFloat16(value), hn::Set(DU(), 0xFFFF0000)));
}

#if HWY_TARGET != HWY_SCALAR
using D16 = hn::Repartition<std::uint16_t, DF>;

HWY_INLINE void Store16(hn::Vec<D16> value, std::uint16_t* to, bool stream) {
  if (stream) {
    hn::Stream(value, D16(), to);
  } else {
    hn::StoreU(value, D16(), to);
  }
}

// Even elements in one vector, odd ones in the other: no lane has to move.
struct BFloat16Rows {
  using Element = std::uint16_t;
  static constexpr auto kAny = ReduceAnyBFloat16;

  static HWY_INLINE void Load(const Element* from, VF& even, VF& odd) {
    const DF df;
    const DU du;
    const VU both = hn::BitCast(du, hn::LoadU(D16(), from));
    even = hn::BitCast(df, hn::ShiftLeft<16>(both));
    odd = hn::BitCast(df, hn::And(both, hn::Set(du, 0xFFFF0000)));
  }
  static HWY_INLINE void Store(VF even, VF odd, Element* to, bool stream) {
    const DU du;
    const VU low = hn::ShiftRight<16>(RoundedBFloat16(even));
    const VU high = hn::And(RoundedBFloat16(odd), hn::Set(du, 0xFFFF0000));
    Store16(hn::BitCast(D16(), hn::Or(low, high)), to, stream);
  }
  static HWY_INLINE VF Round(VF value) { return RoundToBFloat16(value); }
};
#else  // one lane: no vector holds two elements
struct BFloat16Rows {
  using Element = std::uint16_t;
  static constexpr auto kAny = ReduceAnyBFloat16;

  static HWY_INLINE void Load(const Element* from, VF& a, VF& b) {
    a = hn::Set(DF(), WidenBFloat16(from[0]));
    b = hn::Set(DF(), WidenBFloat16(from[1]));
  }
  static HWY_INLINE void Store(VF a, VF b, Element* to, bool /*stream*/) {
    to[0] = static_cast<Element>(hn::GetLane(RoundedBFloat16(a)) >> 16);
    to[1] = static_cast<Element>(hn::GetLane(RoundedBFloat16(b)) >> 16);
  }
  static HWY_INLINE VF Round(VF value) { return RoundToBFloat16(value); }
};
#endif

// float16 of n elements, as the low halves of 32-bit lanes.
//
// The processor's own conversion rounds as the contract wants on AVX2 (F16C) and better, and on
// Arm. Elsewhere Highway's stand-in is not promised to: the integer form of convert.hpp.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_ARCH_ARM
HWY_INLINE VF WidenFloat16Lanes(hn::Vec<DU16> half) {
  const hn::Rebind<hwy::float16_t, DF> df16;
  return hn::PromoteTo(DF(), hn::BitCast(df16, half));
}
HWY_INLINE hn::Vec<DU16> NarrowToFloat16(VF value) {
  const hn::Rebind<hwy::float16_t, DF> df16;
  // The conversion keeps a NaN's sign and payload; it gets the canonical one to begin with.
  value = hn::BitCast(DF(), WithCanonicalNan(value, hn::BitCast(DU(), value), kNanFloat32));
  return hn::BitCast(DU16(), hn::DemoteTo(df16, value));
}
#else
HWY_INLINE VF WidenFloat16Lanes(hn::Vec<DU16> half) {
  const DF df;
  const DU du;
  const VU bits = hn::PromoteTo(du, half);
  const VU sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000)));
  const VU shifted = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7FFF)));
  const VU exponent = hn::And(shifted, hn::Set(du, 0x0F800000));
  const VU normal = hn::Add(shifted, hn::Set(du, (127U - 15U) << 23));
  const VU special = hn::Add(normal, hn::Set(du, (128U - 16U) << 23));
  const VU small = hn::BitCast(du, hn::Sub(hn::BitCast(df, hn::Add(normal, hn::Set(du, 1U << 23))),
                                           hn::BitCast(df, hn::Set(du, 113U << 23))));
  VU magnitude = hn::IfThenElse(hn::Eq(exponent, hn::Set(du, 0x0F800000)), special, normal);
  magnitude = hn::IfThenElse(hn::Eq(exponent, hn::Zero(du)), small, magnitude);
  return hn::BitCast(df, hn::Or(sign, magnitude));
}
HWY_INLINE hn::Vec<DU16> NarrowToFloat16(VF value) {
  const DF df;
  const DU du;
  const DI di;
  const VU bits = hn::BitCast(du, value);
  const VU sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000));
  const VU magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
  const auto as_int = hn::BitCast(di, magnitude);  // not negative: signed compares are exact
  const VU odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
  const VU normal = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, hn::Set(du, 0xC8000FFF)), odd));
  const VU small = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5F))),
                           hn::Set(du, 0x3F000000));
  const auto is_large = hn::RebindMask(du, hn::Gt(as_int, hn::Set(di, 0x477FFFFF)));
  const auto is_small = hn::RebindMask(du, hn::Lt(as_int, hn::Set(di, 0x38800000)));
  VU half = hn::IfThenElse(is_large, hn::Set(du, 0x7C00), normal);
  half = hn::Or(sign, hn::IfThenElse(is_small, small, half));
  half = WithCanonicalNan(value, half, kNanFloat16);
  // Values are at most 0xFFFF, so the saturating conversion is a truncation.
  return hn::DemoteTo(DU16(), hn::BitCast(di, half));
}
#endif
HWY_INLINE VF LoadFloat16(const std::uint16_t* from) {
  return WidenFloat16Lanes(hn::LoadU(DU16(), from));
}

struct Float16Rows {
  using Element = std::uint16_t;
  static constexpr auto kAny = ReduceAnyFloat16;

  static HWY_INLINE void Load(const Element* from, VF& a, VF& b) {
    a = LoadFloat16(from);
    b = LoadFloat16(from + hn::Lanes(DF()));
  }
  static HWY_INLINE void Store(VF a, VF b, Element* to, [[maybe_unused]] bool stream) {
    const auto low = NarrowToFloat16(a);
    const auto high = NarrowToFloat16(b);
#if HWY_TARGET == HWY_SCALAR
    hn::StoreU(low, DU16(), to);
    hn::StoreU(high, DU16(), to + 1);
#else
    Store16(hn::Combine(D16(), high, low), to, stream);
#endif
  }
  static HWY_INLINE VF Round(VF value) { return WidenFloat16Lanes(NarrowToFloat16(value)); }
};

}  // namespace HWY_NAMESPACE
}  // namespace moeperm
HWY_AFTER_NAMESPACE();
