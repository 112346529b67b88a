// SPDX-License-Identifier: Apache-2.0
// The model's conversions against those of the plain reference.
#include "cann/model/numbers.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "reference/reference.hpp"
#include "support/random.hpp"

namespace moeperm::test {
namespace {

using cann::model::FromBFloat16;
using cann::model::FromFloat16;
using cann::model::Sum;
using cann::model::ToBFloat16;
using cann::model::ToFloat16;
using moeperm_reference::Narrow;
using moeperm_reference::Widen;

std::uint32_t Bits(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST(ModelNumbers, EveryHalfIsWidenedExactlyAndComesBack) {
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    ASSERT_EQ(Bits(FromBFloat16(bits)), Bits(Widen(Type::kBFloat16, bits))) << i;
    ASSERT_EQ(ToBFloat16(FromBFloat16(bits)), bits);
    ASSERT_EQ(ToFloat16(FromFloat16(bits)), bits);
    if (std::isnan(Widen(Type::kFloat16, bits))) {
      ASSERT_TRUE(std::isnan(FromFloat16(bits))) << i;
    } else {
      ASSERT_EQ(Bits(FromFloat16(bits)), Bits(Widen(Type::kFloat16, bits))) << i;
    }
  }
}

void ExpectNarrowed(std::uint32_t bits) {
  const auto value = std::bit_cast<float>(bits);
  if (std::isnan(value)) return;
  ASSERT_EQ(ToFloat16(value), Narrow(Type::kFloat16, value)) << std::hex << bits;
  ASSERT_EQ(ToBFloat16(value), Narrow(Type::kBFloat16, value)) << std::hex << bits;
}

TEST(ModelNumbers, FloatsAreRoundedAsTheReferenceRounds) {
  Random random(1);
  for (int i = 0; i < 2'000'000; ++i) ExpectNarrowed(static_cast<std::uint32_t>(random.Bits()));
  // Everything around the ties and the ends of each exponent.
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (const std::uint32_t sign : {0U, 0x80000000U}) {
      for (std::uint32_t near = 0; near < 5; ++near) {
        for (const std::uint32_t tie :
             {0x1000U, 0x8000U, 0x3000U, 0x18000U, 0x7FF000U, 0x7F8000U}) {
          ExpectNarrowed(sign | ((exponent << 23) + tie + near - 2));
        }
      }
    }
  }
}

TEST(ModelNumbers, ASumThatIsNoNumberIsCanonical) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Bits(Sum(kInfinity, -kInfinity)), 0x7FC00000U);
  EXPECT_EQ(Bits(Sum(std::bit_cast<float>(0xFFC12345U), 1.0F)), 0x7FC00000U);
  EXPECT_EQ(Bits(Sum(-0.0F, 0.0F)), 0U);
  EXPECT_EQ(Sum(1.5F, 2.0F), 3.5F);
  EXPECT_EQ(ToFloat16(Sum(kInfinity, -kInfinity)), 0x7E00);
  EXPECT_EQ(ToBFloat16(Sum(kInfinity, -kInfinity)), 0x7FC0);
}

}  // namespace
}  // namespace moeperm::test
