// SPDX-License-Identifier: Apache-2.0
// Widening and narrowing as the operator does them, on every instruction set: the gradient of a
// token with two routes is a + b, widened, added and rounded once.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "rows/convert.hpp"
#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/random.hpp"

namespace moeperm::test {
namespace {

// One token, two routes, every 16-bit pattern in the first row and `other` in the second.
GradInputs EveryPatternPlus(DType dtype, std::uint32_t other) {
  GradInputs inputs{.sorted_indices = Tensor::OfInts(DType::kInt32, {2}, {0, 1})};
  inputs.permuted_tokens_grad.emplace(dtype, std::vector<std::int64_t>{2, 65536});
  for (std::int64_t i = 0; i < 65536; ++i) {
    inputs.permuted_tokens_grad->SetBits(0, i, static_cast<std::uint64_t>(i));
    inputs.permuted_tokens_grad->SetBits(1, i, other);
  }
  inputs.permuted_tokens_grad->Freeze();
  inputs.num_tokens = 1;
  return inputs;
}

TEST(Conversions, EveryPatternPlusZero) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const Type type = ToType(dtype);
    const GradInputs inputs = EveryPatternPlus(dtype, 0);
    for (const Context& context : EveryContext({1})) {
      const Tensor sums = std::move(*RunGrad(inputs, context).tokens_grad);
      for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        // A number comes back as it went in, but -0 + +0 is +0 and a NaN is the canonical one.
        std::uint32_t want = bits == 0x8000 ? 0 : bits;
        if (std::isnan(moeperm_reference::Widen(type, bits))) {
          want = type == Type::kFloat16 ? 0x7E00 : 0x7FC0;
        }
        ASSERT_EQ(sums.Bits(0, bits), want) << Name(dtype) << " " << bits << Describe(context);
      }
    }
  }
}

TEST(Conversions, EveryPatternPlusOthers) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    Random random(5);
    std::vector<std::uint32_t> others = {0x8000, 0x3C00, 0x3F80, 0x0001, 0x8001, 0x7BFF, 0x7F7F};
    while (others.size() < 32) {
      others.push_back(RandomFloatBits(random, ToType(dtype)));
    }
    for (const std::uint32_t other : others) {
      const GradInputs inputs = EveryPatternPlus(dtype, other);
      const ReferenceGrads expected = Reference(inputs);
      for (const Context& context : EveryContext({1})) {
        EXPECT_TRUE(CheckGrad(inputs, {}, expected, context)) << "other " << other;
      }
    }
  }
}

TEST(Conversions, ScalarWidening) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    for (const auto& [got, want] :
         {std::pair(WidenFloat16(half), moeperm_reference::Widen(Type::kFloat16, bits)),
          std::pair(WidenBFloat16(half), moeperm_reference::Widen(Type::kBFloat16, bits))}) {
      ASSERT_TRUE(std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(want) ||
                  (std::isnan(got) && std::isnan(want)))
          << bits;
    }
  }
}

// One float32 in 4099 of all of them (a prime: every low byte turns up with every high one).
TEST(Conversions, ScalarNarrowing) {
  for (std::uint64_t i = 0; i < std::uint64_t{1} << 32; i += 4099) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(i));
    ASSERT_EQ(NarrowFloat16(value), moeperm_reference::Narrow(Type::kFloat16, value)) << i;
    ASSERT_EQ(NarrowBFloat16(value), moeperm_reference::Narrow(Type::kBFloat16, value)) << i;
  }
}

}  // namespace
}  // namespace moeperm::test
