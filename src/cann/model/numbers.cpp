// SPDX-License-Identifier: Apache-2.0
#include "cann/model/numbers.hpp"

#include <bit>
#include <limits>

namespace moeperm::cann::model {
namespace {

constexpr std::uint32_t kSign = 0x80000000;
constexpr std::uint32_t kInfinity = 0x7F800000;

// value / 2^shift, to nearest, ties to even. shift is 1 .. 31.
std::uint32_t ShiftRounded(std::uint32_t value, std::uint32_t shift) {
  const std::uint32_t kept = value >> shift;
  const std::uint32_t lost = value - (kept << shift);
  const std::uint32_t half = std::uint32_t{1} << (shift - 1);
  const bool up = lost > half || (lost == half && kept % 2 == 1);
  return kept + (up ? 1 : 0);
}

}  // namespace

float FromFloat16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1F;
  const std::uint32_t fraction = bits & 0x3FF;
  if (exponent == 0) {  // zero and subnormals: so many times 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t wide = exponent == 0x1F ? 0xFF : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

float FromBFloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t ToFloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits & kSign) >> 16;
  const std::uint32_t magnitude = bits & ~kSign;
  if (magnitude > kInfinity) {
    const std::uint32_t payload = (magnitude >> 13) & 0x3FF;
    return static_cast<std::uint16_t>(sign | 0x7C00 | (payload == 0 ? 0x200 : payload));
  }
  const std::uint32_t exponent = magnitude >> 23;
  std::uint32_t half = 0;
  if (exponent >= 127 - 14) {
    // Rounding up carries into the exponent, and there at last into infinity.
    half = ShiftRounded(magnitude - ((127 - 15) << 23), 13);
    if (half > 0x7C00) half = 0x7C00;
  } else if (exponent >= 127 - 25) {
    const std::uint32_t significand = (magnitude & 0x7FFFFF) | 0x800000;
    half = ShiftRounded(significand, 13 + (127 - 14) - exponent);
  }
  return static_cast<std::uint16_t>(sign | half);
}

std::uint16_t ToBFloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits & kSign) >> 16;
  const std::uint32_t magnitude = bits & ~kSign;
  if (magnitude > kInfinity) {
    const std::uint32_t upper = magnitude >> 16;
    return static_cast<std::uint16_t>(sign | (upper == 0x7F80 ? 0x7FC0 : upper));
  }
  return static_cast<std::uint16_t>(sign | ShiftRounded(magnitude, 16));
}

float Sum(float a, float b) {
  const float sum = a + b;
  return sum != sum ? std::numeric_limits<float>::quiet_NaN() : sum;
}

}  // namespace moeperm::cann::model
