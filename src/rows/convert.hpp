// SPDX-License-Identifier: Apache-2.0
// Conversions of one element, the scalar form of what the SIMD bodies do. Widening is exact.
// Narrowing rounds once, to nearest even: subnormals are kept, overflow gives infinity, and every
// NaN becomes the canonical quiet one, so that its bits do not depend on the machine.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "moeperm/dtype.hpp"

namespace moeperm {

inline constexpr std::uint32_t kNanFloat32 = 0x7FC00000;
inline constexpr std::uint16_t kNanFloat16 = 0x7E00;
inline constexpr std::uint16_t kNanBFloat16 = 0x7FC0;

inline float WidenBFloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t NarrowBFloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return kNanBFloat16;
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

inline float WidenFloat16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  std::uint32_t magnitude = (bits & 0x7FFFU) << 13;
  const std::uint32_t exponent = magnitude & 0x0F800000;
  magnitude += (127U - 15U) << 23;
  if (exponent == 0x0F800000) {  // infinity or NaN
    magnitude += (128U - 16U) << 23;
  } else if (exponent == 0) {  // zero or subnormal: let the subtraction renormalise
    magnitude += 1U << 23;
    magnitude = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) -
                                             std::bit_cast<float>(113U << 23));
  }
  return std::bit_cast<float>(sign | magnitude);
}

inline std::uint16_t NarrowFloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  std::uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return kNanFloat16;
  if (magnitude >= 0x47800000) return sign | 0x7C00;  // 65536 and above
  if (magnitude < 0x38800000) {  // below the smallest normal: the addition of 0.5 rounds
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000));
  }
  magnitude += 0xC8000FFF + (magnitude >> 13 & 1);  // rebias by 15 - 127, round
  return static_cast<std::uint16_t>(sign | magnitude >> 13);
}

// The same by storage type.
inline float Widen(float value) { return value; }
inline float Widen(Float16 value) { return WidenFloat16(value.bits); }
inline float Widen(BFloat16 value) { return WidenBFloat16(value.bits); }

template <class T>
T Narrow(float value);
template <>
inline float Narrow<float>(float value) {
  return value == value ? value : std::bit_cast<float>(kNanFloat32);
}
template <>
inline Float16 Narrow<Float16>(float value) {
  return {NarrowFloat16(value)};
}
template <>
inline BFloat16 Narrow<BFloat16>(float value) {
  return {NarrowBFloat16(value)};
}

// An element anywhere in memory.
template <class T>
T LoadElement(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
void StoreElement(void* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

}  // namespace moeperm
