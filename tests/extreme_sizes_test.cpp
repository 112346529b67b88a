// SPDX-License-Identifier: Apache-2.0
// Sizes and strides at the ends of 64 bits: accepted where they mean something, else refused with a
// message; never multiplied past the end (UndefinedBehaviorSanitizer watches).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <utility>

#include "moeperm/moeperm.hpp"

namespace moeperm::test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

TEST(ExtremeSizes, SizesBesideNone) {
  const std::array<bool, 3> map{};
  PermuteWithRoutingMapArgs args;
  for (const bool drop_and_pad : {false, true}) {
    args.drop_and_pad = drop_and_pad;
    args.top_k = 1;
    for (const std::int64_t hidden : {std::int64_t{1} << 62, kMost}) {
      args.tokens = ConstTensorView(static_cast<const float*>(nullptr), {0, hidden});
      args.routing_map = ConstTensorView(map.data(), {0, 3});
      args.permuted_tokens = TensorView(static_cast<float*>(nullptr), {0, hidden});
      args.sorted_indices = TensorView(static_cast<std::int32_t*>(nullptr), {0});
      EXPECT_EQ(PermuteWithRoutingMap(args).message(), "");
      // A row of them fits nowhere.
      PermuteWithRoutingMapArgs rows = args;
      rows.num_out_tokens = 5;
      PermuteWithRoutingMapSpecs specs;
      EXPECT_EQ(InferPermuteWithRoutingMap(rows, &specs).code(), Code::kInvalidArgument);
      EXPECT_EQ(PermuteWithRoutingMap(rows).code(), Code::kInvalidArgument);
    }
  }
}

TEST(ExtremeSizes, StridesThatAreNeverStepped) {
  const std::array<float, 2> tokens{3, 4};
  const std::array<bool, 2> map{true, false};
  std::array<float, 2> permuted{};
  std::array<std::int32_t, 1> sorted_indices{7};
  std::array<float, 2> grad{};
  for (const std::int64_t stride : {kMost, kLeast, kMost / 4 + 1}) {
    PermuteWithRoutingMapArgs args;
    args.tokens = ConstTensorView(tokens.data(), {1, 2}, {stride, 1});
    args.routing_map = ConstTensorView(map.data(), {1, 2}, {stride, 1});
    args.num_out_tokens = 1;
    args.top_k = 1;
    args.permuted_tokens = TensorView(permuted.data(), {1, 2}, {stride, 1});
    args.sorted_indices = TensorView(sorted_indices.data(), {1}, {stride});
    ASSERT_EQ(PermuteWithRoutingMap(args).message(), "");
    EXPECT_EQ(permuted, tokens);
    EXPECT_EQ(sorted_indices[0], 0);
    PermuteWithRoutingMapGradArgs back;
    back.permuted_tokens_grad = ConstTensorView(permuted.data(), {1, 2}, {stride, 1});
    back.sorted_indices = ConstTensorView(sorted_indices.data(), {1}, {stride});
    back.num_tokens = 1;
    back.tokens_grad = TensorView(grad.data(), {1, 2}, {stride, 1});
    ASSERT_EQ(PermuteWithRoutingMapGrad(back).message(), "");
    EXPECT_EQ(grad, tokens);
  }
}

TEST(ExtremeSizes, AViewWiderThanTheAddressSpace) {
  const float element = 0;
  const std::int64_t step = std::int64_t{1} << 60;
  const std::array<bool, 2> map{};
  PermuteWithRoutingMapArgs args;
  args.routing_map = ConstTensorView(map.data(), {2, 1});
  args.tokens = ConstTensorView(&element, {2, 2}, {step, -step});
  PermuteWithRoutingMapSpecs specs;
  EXPECT_THAT(InferPermuteWithRoutingMap(args, &specs).message(),
              HasSubstr("tokens of shape [2, 2]"));
}

TEST(ExtremeSizes, InferRefusesAnOutputThatFitsNowhere) {
  const float element = 0;
  const bool route = true;
  PermuteWithRoutingMapArgs args;
  args.tokens = ConstTensorView(&element, {1, std::int64_t{1} << 60}, {0, 0});
  args.routing_map = ConstTensorView(&route, {1, 1});
  args.num_out_tokens = 1000;
  args.top_k = 1;
  PermuteWithRoutingMapSpecs specs;
  EXPECT_THAT(InferPermuteWithRoutingMap(args, &specs).message(),
              HasSubstr("permuted_tokens of shape [1000, 1152921504606846976]"));

  PermuteWithRoutingMapGradArgs grad;
  const std::int32_t index = 0;
  grad.permuted_tokens_grad = ConstTensorView(&element, {1, std::int64_t{1} << 60}, {0, 0});
  grad.sorted_indices = ConstTensorView(&index, {2}, {0});
  grad.num_tokens = 2;
  PermuteWithRoutingMapGradSpecs grad_specs;
  EXPECT_THAT(InferPermuteWithRoutingMapGrad(grad, &grad_specs).message(),
              HasSubstr("tokens_grad of shape [2, 1152921504606846976]"));
}

// Addresses 0 and 3 only, each element of a row twice: what lies between is free.
TEST(ExtremeSizes, AnOutputBetweenTheElementsOfAnInput) {
  std::array<float, 4> memory{5, 0, 0, 6};
  const std::array<bool, 2> map{true, false};
  std::array<std::int32_t, 2> sorted_indices{};
  PermuteWithRoutingMapArgs args;
  args.tokens = ConstTensorView(memory.data(), {2, 2}, {0, 3});
  args.routing_map = ConstTensorView(map.data(), {2, 1});
  args.num_out_tokens = 1;
  args.top_k = 1;
  args.permuted_tokens = TensorView(memory.data() + 1, {1, 2});
  args.sorted_indices = TensorView(sorted_indices.data(), {2});
  ASSERT_EQ(PermuteWithRoutingMap(args).message(), "");
  EXPECT_EQ(memory, (std::array<float, 4>{5, 5, 6, 6}));
}

TEST(ExtremeSizes, ARowMapThatWasMovedFrom) {
  const bool route = true;
  RowMap map;
  ASSERT_TRUE(RowMap::FromRoutingMap(ConstTensorView(&route, {1, 1}), {}, &map).ok());
  const RowMap other = std::move(map);
  EXPECT_EQ(map.num_rows(), 1);  // NOLINT(bugprone-use-after-move): a move is a copy
  EXPECT_EQ(other.num_rows(), 1);
}

}  // namespace
}  // namespace moeperm::test
