// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <limits>

#include "aclnn/opdev/fp16_t.h"
#include "cann/runtime/support.hpp"

namespace moeperm::cann::testing {
namespace {

TEST(Float16, EveryValueThereAndBack) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<aclFloat16>(bits);
    const float value = aclFloat16ToFloat(half);
    const int exponent = bits >> 10 & 31;
    const double size = exponent == 0 ? std::ldexp(bits & 0x3FF, -24)
                                      : std::ldexp(1.0 + (bits & 0x3FF) / 1024.0, exponent - 15);
    ASSERT_EQ(value, static_cast<float>((bits & 0x8000) != 0 ? -size : size)) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0);
    // Exponent 31 has no way back: those values are too large.
    const int back = exponent == 31 ? (bits & 0x8000) | 0x7BFF : bits;
    ASSERT_EQ(aclFloatToFloat16(value), back);
  }
}

TEST(Float16, RoundsToNearestTiesToEven) {
  for (int bits = 0; bits < 0x7BFF; ++bits) {
    const float low = aclFloat16ToFloat(static_cast<aclFloat16>(bits));
    const float high = aclFloat16ToFloat(static_cast<aclFloat16>(bits + 1));
    const float middle = (low + high) / 2;
    const int even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(aclFloatToFloat16(middle), even) << bits;
    ASSERT_EQ(aclFloatToFloat16(std::nextafter(middle, 0.0F)), bits);
    ASSERT_EQ(aclFloatToFloat16(std::nextafter(middle, 1e9F)), bits + 1);
    ASSERT_EQ(aclFloatToFloat16(-middle), even | 0x8000);
  }
}

TEST(Float16, Limits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {65504.0F, 65505.0F, 65520.0F, 65536.0F, 1e38F, kInfinity}) {
    EXPECT_EQ(aclFloatToFloat16(value), 0x7BFF);
    EXPECT_EQ(aclFloatToFloat16(-value), 0xFBFF);
  }
  EXPECT_EQ(aclFloatToFloat16(std::bit_cast<float>(0x7FC00000U)), 0x7BFF);
  EXPECT_EQ(aclFloatToFloat16(std::bit_cast<float>(0xFF800001U)), 0xFBFF);
  EXPECT_EQ(aclFloatToFloat16(0.0F), 0);
  EXPECT_EQ(aclFloatToFloat16(-0.0F), 0x8000);
  EXPECT_EQ(aclFloatToFloat16(std::ldexp(1.0F, -25)), 0);
  EXPECT_EQ(aclFloatToFloat16(-std::ldexp(1.0F, -25)), 0x8000);
  EXPECT_EQ(aclFloatToFloat16(std::nextafter(std::ldexp(1.0F, -25), 1.0F)), 1);
  EXPECT_EQ(aclFloatToFloat16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(aclFloat16ToFloat(0x7C00), 65536.0F);
  EXPECT_EQ(aclFloat16ToFloat(0xFC00), -65536.0F);
  EXPECT_EQ(aclFloat16ToFloat(0x7E00), 98304.0F);
}

TEST(Float16, AsAClass) {
  op::fp16_t half = 1.5F;
  EXPECT_EQ(half.val, 0x3E00);
  half = -2.0F;
  EXPECT_EQ(static_cast<float>(half), -2.0F);
  EXPECT_EQ(static_cast<float>(op::fp16_t()), 0.0F);
}

TEST(DataType, Sizes) {
  const auto size = [](int dtype) { return aclDataTypeSize(static_cast<aclDataType>(dtype)); };
  for (const int dtype : {-1, 13}) EXPECT_EQ(size(dtype), 0U) << dtype;
  for (const int dtype : {2, 4, 12, 29, 30, 34, 35, 36, 37}) EXPECT_EQ(size(dtype), 1U) << dtype;
  for (const int dtype : {1, 6, 7, 27}) EXPECT_EQ(size(dtype), 2U) << dtype;
  for (const int dtype : {0, 3, 8, 33}) EXPECT_EQ(size(dtype), 4U) << dtype;
  EXPECT_EQ(size(17), 16U);
  for (const int dtype : {9, 10, 11, 16, 38, 39, 40, 41, 5, 14, 42, 1000, -2}) {
    EXPECT_EQ(size(dtype), 8U) << dtype;
  }
}

}  // namespace
}  // namespace moeperm::cann::testing
