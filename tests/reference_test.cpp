// SPDX-License-Identifier: Apache-2.0
// The tools of the other tests: the reference against values worked out by hand and against the
// arithmetic of the machine, and comparators that must report what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "support/fixtures.hpp"
#include "support/random.hpp"

namespace moeperm::test {
namespace {

using moeperm_reference::Narrow;
using moeperm_reference::Widen;
using testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

TEST(Reference, NarrowsToFloat16) {
  const struct {
    float value;
    std::uint32_t bits;
  } cases[] = {{0.0F, 0},
               {-0.0F, 0x8000},
               {1.0F, 0x3C00},
               {2049.0F, 0x6800},  // halfway, 2048 is even
               {2051.0F, 0x6802},  // halfway, 2052 is even
               {2049.001F, 0x6801},
               {65504.0F, 0x7BFF},
               {65519.99F, 0x7BFF},
               {65520.0F, 0x7C00},  // halfway to what would be 65536
               {-1e30F, 0xFC00},
               {0x1p-14F, 0x0400},
               {0x1.ffcp-15F, 0x0400},  // halfway up from the largest subnormal
               {0x1.ff8p-15F, 0x03FF},
               {0x1p-24F, 0x0001},
               {0x1p-25F, 0x0000},  // halfway to the smallest
               {0x1.000002p-25F, 0x0001},
               {0x1.8p-24F, 0x0002},
               {-0x1p-26F, 0x8000},
               {std::numeric_limits<float>::infinity(), 0x7C00},
               {-std::numeric_limits<float>::quiet_NaN(), 0x7E00}};
  for (const auto& one : cases) {
    EXPECT_EQ(Narrow(Type::kFloat16, one.value), one.bits) << one.value;
  }
}

TEST(Reference, NarrowsToBFloat16) {
  const struct {
    std::uint32_t float_bits;
    std::uint32_t bits;
  } cases[] = {{0x3F808000, 0x3F80}, {0x3F818000, 0x3F82}, {0x3F808001, 0x3F81},
               {0x7F7FFFFF, 0x7F80}, {0x7F7F7FFF, 0x7F7F}, {0x80000000, 0x8000},
               {0x00008000, 0x0000}, {0x00008001, 0x0001}, {0x00018000, 0x0002},
               {0xFF800000, 0xFF80}, {0x7F800001, 0x7FC0}, {0xFFFFFFFF, 0x7FC0}};
  for (const auto& one : cases) {
    EXPECT_EQ(Narrow(Type::kBFloat16, std::bit_cast<float>(one.float_bits)), one.bits)
        << std::hex << one.float_bits;
  }
}

// Every number of the 16-bit types, and the two values halfway to its neighbours, against
// arithmetic in double, where all of them are exact.
TEST(Reference, AgreesWithDoubleArithmetic) {
  const struct {
    Type type;
    int mantissa_bits;
    int bias;
    std::uint32_t top;  // infinity
  } formats[] = {{Type::kFloat16, 10, 15, 0x7C00}, {Type::kBFloat16, 7, 127, 0x7F80}};
  for (const auto& format : formats) {
    const auto value = [&](std::uint32_t bits) {
      const int exponent = static_cast<int>(bits >> format.mantissa_bits);
      const double mantissa = bits & ((1U << format.mantissa_bits) - 1);
      const double one = 1 << format.mantissa_bits;
      return exponent == 0 ? std::ldexp(mantissa / one, 1 - format.bias)
                           : std::ldexp(1 + mantissa / one, exponent - format.bias);
    };
    for (std::uint32_t bits = 0; bits < format.top; ++bits) {
      ASSERT_EQ(static_cast<double>(Widen(format.type, bits)), value(bits)) << bits;
      ASSERT_EQ(static_cast<double>(Widen(format.type, bits | 0x8000)), -value(bits)) << bits;
      const float halfway = static_cast<float>((value(bits) + value(bits + 1)) / 2);
      const std::uint32_t even = bits + (bits & 1);
      ASSERT_EQ(Narrow(format.type, static_cast<float>(value(bits))), bits);
      ASSERT_EQ(Narrow(format.type, halfway), even);
      ASSERT_EQ(Narrow(format.type, -halfway), even | 0x8000);
      ASSERT_EQ(Narrow(format.type, std::nextafter(halfway, 0.0F)), bits);
      ASSERT_EQ(
          Narrow(format.type, std::nextafter(halfway, std::numeric_limits<float>::infinity())),
          bits + 1);
    }
  }
}

TEST(Reference, OneRowIsACopyAndSumsAreCanonical) {
  const auto bits_of = [](Type type, const std::vector<std::uint32_t>& rows, const Ints& indices,
                          bool drop_and_pad) {
    Matrix matrix(type, static_cast<std::int64_t>(rows.size()), 1);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      matrix.Set(static_cast<std::int64_t>(row), 0, rows[row]);
    }
    return moeperm_reference::TokensGrad(matrix, indices, 1, drop_and_pad).Get(0, 0);
  };
  EXPECT_EQ(bits_of(Type::kFloat32, {0xFF812345}, {0}, false), 0xFF812345);  // signaling NaN
  EXPECT_EQ(bits_of(Type::kFloat32, {0x80000000}, {0, -1}, false), 0x80000000);
  EXPECT_EQ(bits_of(Type::kFloat32, {0x80000000}, {-1, 0}, false), 0U);  // from +0
  EXPECT_EQ(bits_of(Type::kFloat32, {0xFF812345}, {-1, 0}, false), 0x7FC00000);
  EXPECT_EQ(bits_of(Type::kFloat16, {0xFC01}, {0}, true), 0x7E00U);
  EXPECT_EQ(bits_of(Type::kBFloat16, {0x8000}, {0}, true), 0U);
  EXPECT_EQ(bits_of(Type::kBFloat16, {0x8000, 0x8000}, {0, 1}, false), 0x8000U);
  EXPECT_EQ(bits_of(Type::kBFloat16, {0x7F80, 0xFF80}, {0, 1}, false), 0x7FC0U);  // inf - inf
  EXPECT_EQ(bits_of(Type::kFloat16, {0x1234}, {-1, -1}, false), 0U);
}

TEST(Reference, RefusesWhatTheOperatorMust) {
  const ForwardInputs f1 = NotPadded(F1());
  const Matrix tokens = f1.tokens.ToMatrix();
  const RoutingMap map = f1.routing_map.ToRoutingMap();
  EXPECT_THROW(moeperm_reference::Permute(tokens, map, nullptr, 6, 1, false),
               std::invalid_argument);
  EXPECT_THROW(moeperm_reference::Permute(tokens, map, nullptr, -1, 2, false),
               std::invalid_argument);
  EXPECT_THROW(moeperm_reference::Permute(tokens, map, nullptr, 12, 0, true),
               std::invalid_argument);
  EXPECT_NO_THROW(moeperm_reference::Permute(tokens, map, nullptr, 11, 0, true));
}

TEST(Comparators, ReportTheFirstWrongElement) {
  Tensor actual = Counting(DType::kFloat32, {2, 3});
  Matrix expected = actual.ToMatrix();
  EXPECT_TRUE(Equals("x", actual, expected));
  expected.Set(1, 0, 0x40400001);
  expected.Set(1, 2, 0);
  const testing::AssertionResult result = Equals("x", actual, expected);
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message(), HasSubstr("x[1][0] = 0x40400000, want 0x40400001 (2 of 6"));
}

TEST(Comparators, TellZerosAndNansApart) {
  Tensor actual = Tensor::OfFloats(DType::kFloat32, {2}, {0.0F, NAN});
  Matrix expected(Type::kFloat32, 2, 1);
  expected.Set(1, 0, 0x7FC00000);
  EXPECT_TRUE(Equals("x", actual, expected));
  expected.Set(0, 0, 0x80000000);
  EXPECT_FALSE(Equals("x", actual, expected));
  expected.Set(0, 0, 0);
  expected.Set(1, 0, 0x7FC00001);
  EXPECT_FALSE(Equals("x", actual, expected));
}

TEST(Comparators, ReportOtherShapesAndDTypes) {
  const Tensor actual = Counting(DType::kFloat16, {2, 3});
  EXPECT_FALSE(Equals("x", actual, Matrix(Type::kFloat16, 3, 2)));
  EXPECT_FALSE(Equals("x", actual, Matrix(Type::kFloat16, 2, 4)));
  EXPECT_FALSE(Equals("x", actual, Matrix(Type::kBFloat16, 2, 3)));
  EXPECT_FALSE(Equals("x", actual, Counting(DType::kFloat32, {2, 3})));
}

TEST(Comparators, ReportWrongIntegers) {
  const Tensor actual = Tensor::OfInts(DType::kInt32, {3}, {4, -1, 7});
  EXPECT_TRUE(Equals("x", actual, Ints{4, -1, 7}));
  EXPECT_FALSE(Equals("x", actual, Ints{4, -1}));
  const testing::AssertionResult result = Equals("x", actual, Ints{4, 0, 7});
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message(), HasSubstr("x[1] = 0xffffffff, want 0x0"));
}

TEST(Comparators, ReportBytesWrittenOutsideTheElements) {
  for (int i = 0; i < kOutputLayouts; ++i) {
    const Layout layout = static_cast<Layout>(i);
    Tensor tensor = Copy(Counting(DType::kInt64, {3, 4}), layout);
    const Ints values = tensor.Ints();
    EXPECT_TRUE(Equals("x", tensor, values)) << Name(layout);
    // One byte past the element at the highest address, and one before the lowest.
    auto* lowest = static_cast<std::uint8_t*>(tensor.out().data());
    auto* highest = lowest;
    for (std::int64_t row = 0; row < 3; ++row) {
      for (std::int64_t col = 0; col < 4; ++col) {
        auto* at = static_cast<std::uint8_t*>(tensor.out().data()) +
                   8 * (row * tensor.out().stride(0) + col * tensor.out().stride(1));
        lowest = std::min(lowest, at);
        highest = std::max(highest, at);
      }
    }
    for (std::uint8_t* byte : {lowest - 1, highest + 8}) {
      *byte ^= 1;
      EXPECT_FALSE(Equals("x", tensor, values)) << Name(layout);
      EXPECT_FALSE(tensor.Unchanged("x"));
      *byte ^= 1;
      EXPECT_TRUE(tensor.Unchanged("x"));
    }
  }
}

TEST(Comparators, ReportBytesWrittenIntoGaps) {
  Tensor tensor = Copy(Counting(DType::kFloat16, {2, 2}), Layout::kRowGaps);
  EXPECT_TRUE(tensor.GuardsIntact("x"));
  static_cast<std::uint8_t*>(tensor.out().data())[4] = 0;  // after row 0
  EXPECT_FALSE(tensor.GuardsIntact("x"));
}

// A call that wrote nothing must not pass: outputs start as 0xFF bytes.
TEST(Comparators, UnwrittenOutputsFail) {
  const ForwardInputs inputs = NotPadded(F1());
  const ForwardOutputs outputs = MakeOutputs(inputs);
  EXPECT_FALSE(Matches(inputs, outputs, Reference(inputs)));
  ForwardOutputs zeros = MakeOutputs(inputs);
  zeros.permuted_tokens.FillBytes(0);
  EXPECT_FALSE(Equals("permuted_tokens", zeros.permuted_tokens, Reference(inputs).tokens));
}

}  // namespace
}  // namespace moeperm::test
