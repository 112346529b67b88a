// SPDX-License-Identifier: Apache-2.0
// Exhaustive, or of many gigabytes: minutes of time and up to 14 GB of memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "rows/convert.hpp"
#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/mapping.hpp"

namespace moeperm::test {
namespace {

constexpr std::int64_t kHidden = 1073741832;
const std::vector<std::int64_t> kOneRow = {1, kHidden};
const std::vector<std::int64_t> kThreeRows = {3, kHidden};

// P001, P002 and P004: three rows of 2^30 + 8 elements, through every entry.
class RowsPast31Bits : public testing::Test {
 protected:
  RowsPast31Bits() {
    for (const Mapping* mapping : {&tokens_, &permuted_, &grad_}) {
      const_cast<Mapping*>(mapping)->AdviseHugePages();
    }
  }
  static std::uint16_t Half(int value) {
    return static_cast<std::uint16_t>(
        moeperm_reference::Narrow(Type::kFloat16, static_cast<float>(value)));
  }
  void FillTokens() const {
    auto* tokens = tokens_.as<std::uint16_t>();
    for (std::int64_t h = 0; h < kHidden; ++h) {
      tokens[h] = Half(static_cast<int>(h % 8));
    }
  }
  void CheckPermuted() const {
    for (std::int64_t row = 0; row < 3; ++row) {
      EXPECT_EQ(std::memcmp(permuted_.as<std::uint16_t>() + row * kHidden,
                            tokens_.as<std::uint16_t>(), kHidden * 2),
                0)
          << "row " << row;
    }
    EXPECT_EQ(permuted_.as<std::uint16_t>()[3 * kHidden - 1], Half(7));
  }
  void FillGrad() const {
    auto* rows = permuted_.as<std::uint16_t>();
    for (std::int64_t row = 0; row < 3; ++row) {
      std::fill_n(rows + row * kHidden, kHidden, Half(1 << row));
    }
  }
  void CheckGrad() const {
    const auto* sums = grad_.as<const std::uint16_t>();
    EXPECT_EQ(std::count(sums, sums + kHidden, Half(7)), kHidden);
  }
  [[nodiscard]] ConstTensorView Tokens() const {
    return {tokens_.as<const void>(), DType::kFloat16, kOneRow};
  }
  [[nodiscard]] TensorView Permuted3() const {
    return {permuted_.as<void>(), DType::kFloat16, kThreeRows};
  }
  [[nodiscard]] TensorView Grad() const { return {grad_.as<void>(), DType::kFloat16, kOneRow}; }

  const Mapping tokens_{kHidden * 2};
  const Mapping permuted_{3 * kHidden * 2};
  const Mapping grad_{kHidden * 2};
  const std::int8_t map_[3] = {1, 1, 1};
  const float probs_[3] = {.25, .5, .75};
  float permuted_probs_[3] = {-1, -1, -1};
  std::int32_t indices_[3] = {-7, -7, -7};
};

TEST_F(RowsPast31Bits, P001_P004_WithRoutingMap) {
  FillTokens();
  PermuteWithRoutingMapArgs args;
  args.tokens = Tokens();
  args.routing_map = ConstTensorView(map_, {1, 3});
  args.probs = ConstTensorView(probs_, {1, 3});
  args.num_out_tokens = 3;
  args.top_k = 3;
  args.permuted_tokens = Permuted3();
  args.permuted_probs = TensorView(permuted_probs_, {3});
  args.sorted_indices = TensorView(indices_, {3});
  ASSERT_TRUE(PermuteWithRoutingMap(args).ok());
  CheckPermuted();
  EXPECT_EQ(permuted_probs_[2], .75F);

  FillGrad();
  PermuteWithRoutingMapGradArgs grad;
  grad.permuted_tokens_grad = Permuted3();
  grad.sorted_indices = TensorView(indices_, {3});
  grad.num_tokens = 1;
  grad.tokens_grad = Grad();
  ASSERT_TRUE(PermuteWithRoutingMapGrad(grad).ok());
  CheckGrad();
}

TEST_F(RowsPast31Bits, P002_ByRowMapAndDropAndPad) {
  FillTokens();
  RowMap row_map;
  ASSERT_TRUE(RowMap::FromRoutingMap(ConstTensorView(map_, {1, 3}),
                                     {.drop_and_pad = true, .capacity = 1}, &row_map)
                  .ok());
  PermuteByRowMapArgs args;
  args.tokens = Tokens();
  args.permuted_tokens = Permuted3();
  ASSERT_TRUE(PermuteByRowMap(row_map, args).ok());
  CheckPermuted();
  FillGrad();
  PermuteByRowMapGradArgs grad;
  grad.permuted_tokens_grad = Permuted3();
  grad.tokens_grad = Grad();
  ASSERT_TRUE(PermuteByRowMapGrad(row_map, grad).ok());
  CheckGrad();
}

// probs_grad of 2^31 + 128 elements (4.3 GB): the last one set, every other zero.
TEST(Probes, P011_ProbsGradPast31Bits) {
  constexpr std::int64_t kTokens = 16777217;
  constexpr std::int64_t kExperts = 128;
  Mapping map(kTokens * kExperts);
  map.AdviseHugePages();
  map.as<std::int8_t>()[map.bytes() - 1] = 1;
  Mapping probs_grad(kTokens * kExperts * 2);
  probs_grad.AdviseHugePages();
  std::memset(probs_grad.as<void>(), 0xFF, static_cast<std::size_t>(probs_grad.bytes()));
  const Mapping indices(kTokens * 4);
  const std::uint16_t permuted_probs_grad = 0x3C01;
  PermuteWithRoutingMapGradArgs args;
  args.permuted_probs_grad =
      ConstTensorView(&permuted_probs_grad, DType::kFloat16, std::vector<std::int64_t>{1});
  args.sorted_indices = ConstTensorView(indices.as<const std::int32_t>(), {kTokens});
  args.routing_map = ConstTensorView(map.as<const std::int8_t>(), {kTokens, kExperts});
  args.num_tokens = kTokens;
  args.num_experts = kExperts;
  args.probs_grad = TensorView(probs_grad.as<Float16>(), {kTokens, kExperts});
  const Status status = PermuteWithRoutingMapGrad(args);
  ASSERT_TRUE(status.ok()) << status.message();
  const auto* got = probs_grad.as<const std::uint16_t>();
  EXPECT_EQ(std::count(got, got + kTokens * kExperts - 1, 0), kTokens * kExperts - 1);
  EXPECT_EQ(got[kTokens * kExperts - 1], 0x3C01);
}

// Every float32 through the scalar functions.
TEST(EveryFloat, ScalarNarrowing) {
  for (std::uint64_t i = 0; i < std::uint64_t{1} << 32; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(i));
    ASSERT_EQ(NarrowFloat16(value), moeperm_reference::Narrow(Type::kFloat16, value)) << i;
    ASSERT_EQ(NarrowBFloat16(value), moeperm_reference::Narrow(Type::kBFloat16, value)) << i;
  }
}

// Every pair of 16-bit numbers through the kernels: a + b, all 2^32 of them. A gradient of 1024
// tokens at a time: the first row of each is every pattern, the second one pattern repeated.
class EveryPair : public testing::TestWithParam<std::string> {};

TEST_P(EveryPair, AddedAndRounded) {
  const Context& context = ContextOf(GetParam(), 2);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const Type type = ToType(dtype);
    std::vector<float> widened(65536);
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      widened[bits] = moeperm_reference::Widen(type, bits);
    }
    std::vector<std::uint16_t> rows(2 * 65536);
    std::vector<std::uint16_t> sums(65536);
    const std::int32_t indices[] = {0, 1};
    for (std::uint32_t other = 0; other < 65536; ++other) {
      for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        rows[bits] = static_cast<std::uint16_t>(bits);
        rows[65536 + bits] = static_cast<std::uint16_t>(other);
      }
      PermuteWithRoutingMapGradArgs args;
      args.permuted_tokens_grad =
          ConstTensorView(rows.data(), dtype, std::vector<std::int64_t>{2, 65536});
      args.sorted_indices = ConstTensorView(indices, {2});
      args.num_tokens = 1;
      args.tokens_grad = TensorView(sums.data(), dtype, std::vector<std::int64_t>{1, 65536});
      ASSERT_TRUE(PermuteWithRoutingMapGrad(args, context).ok());
      for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        ASSERT_EQ(sums[bits], moeperm_reference::Narrow(type, widened[bits] + widened[other]))
            << Name(dtype) << " " << bits << " + " << other;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, EveryPair, testing::ValuesIn(AvailableIsas()),
                         [](const auto& test) { return test.param; });

// Every float32 of a normal size through the bf16 kernels: each is the exact sum of three bf16
// numbers (its upper 8, middle 8 and lower 8 significant bits), added largest first.
class EveryFloatKernel : public testing::TestWithParam<std::string> {};

TEST_P(EveryFloatKernel, NarrowedToBFloat16) {
  const Context& context = ContextOf(GetParam(), 2);
  constexpr std::int64_t kBatch = 1 << 20;
  std::vector<std::uint16_t> rows(3 * kBatch);
  std::vector<std::uint16_t> narrowed(kBatch);
  const std::int32_t indices[] = {0, 1, 2};
  const auto top = [](float value) {  // the upper 8 significant bits, towards zero
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xFFFF0000U);
  };
  const auto bits_of = [](float value) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  };
  // From 2^-110 (its lowest bit is still a normal bf16) to the largest.
  for (std::uint32_t sign : {0U, 0x80000000U}) {
    for (std::uint32_t begin = 17U << 23; begin < 255U << 23; begin += kBatch) {
      for (std::int64_t i = 0; i < kBatch; ++i) {
        const float value = std::bit_cast<float>(sign | (begin + static_cast<std::uint32_t>(i)));
        const float high = top(value);
        const float middle = top(value - high);
        rows[static_cast<std::size_t>(i)] = bits_of(high);
        rows[static_cast<std::size_t>(kBatch + i)] = bits_of(middle);
        rows[static_cast<std::size_t>(2 * kBatch + i)] = bits_of(value - high - middle);
      }
      PermuteWithRoutingMapGradArgs args;
      args.permuted_tokens_grad =
          ConstTensorView(rows.data(), DType::kBFloat16, std::vector<std::int64_t>{3, kBatch});
      args.sorted_indices = ConstTensorView(indices, {3});
      args.num_tokens = 1;
      args.tokens_grad =
          TensorView(narrowed.data(), DType::kBFloat16, std::vector<std::int64_t>{1, kBatch});
      ASSERT_TRUE(PermuteWithRoutingMapGrad(args, context).ok());
      for (std::int64_t i = 0; i < kBatch; ++i) {
        const float value = std::bit_cast<float>(sign | (begin + static_cast<std::uint32_t>(i)));
        ASSERT_EQ(narrowed[static_cast<std::size_t>(i)],
                  moeperm_reference::Narrow(Type::kBFloat16, value))
            << value;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, EveryFloatKernel, testing::ValuesIn(AvailableIsas()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace moeperm::test
