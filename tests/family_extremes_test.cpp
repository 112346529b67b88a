// SPDX-License-Identifier: Apache-2.0
// The index form and the way back with weights at the ends of what sizes can be: empty tensors
// without memory, sizes beside none, row numbers past 32 bits. UndefinedBehaviorSanitizer watches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "moeperm/permute.hpp"
#include "moeperm/unpermute.hpp"
#include "moeperm/unpermute_with_routing_map.hpp"

namespace moeperm::test {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMost32 = std::numeric_limits<std::int32_t>::max();
constexpr float* kNull = nullptr;

template <class T>
ConstTensorView In(const T* data, std::initializer_list<std::int64_t> shape) {
  return ConstTensorView(data, shape);
}
ConstTensorView None(std::initializer_list<std::int64_t> shape) {
  return ConstTensorView(static_cast<const float*>(nullptr), shape);
}
ConstTensorView NoIndices(std::initializer_list<std::int64_t> shape) {
  return ConstTensorView(static_cast<const std::int32_t*>(nullptr), shape);
}
TensorView NoOutput(std::initializer_list<std::int64_t> shape) { return TensorView(kNull, shape); }

// No tokens; any number of slots a token, of which nothing but the shape of the probs tells.
TEST(FamilyExtremes, NoTokens) {
  for (const std::int64_t top_k : {std::int64_t{0}, std::int64_t{1}, std::int64_t{8}, kMost}) {
    for (const std::int64_t hidden : {std::int64_t{0}, std::int64_t{3}, kMost}) {
      std::array<std::int64_t, 2> counts{-1, -1};
      PermuteArgs permute;
      permute.tokens = None({0, hidden});
      permute.indices = NoIndices({0, top_k});
      permute.probs = None({0, top_k});
      permute.num_experts = 2;
      permute.permuted_tokens = NoOutput({0, hidden});
      permute.permuted_probs = NoOutput({0});
      permute.sorted_indices = TensorView(static_cast<std::int32_t*>(nullptr), {0});
      permute.tokens_per_expert = TensorView(counts.data(), {2});
      EXPECT_EQ(Permute(permute).message(), "");
      EXPECT_THAT(counts, Each(0));

      PermuteGradArgs grad;
      grad.permuted_tokens_grad = None({0, hidden});
      grad.permuted_probs_grad = None({0});
      grad.sorted_indices = NoIndices({0});
      grad.tokens_grad = NoOutput({0, hidden});
      grad.probs_grad = NoOutput({0, top_k});
      EXPECT_EQ(PermuteGrad(grad).message(), "");

      UnpermuteArgs back;
      back.permuted_tokens = None({0, hidden});
      back.sorted_indices = NoIndices({0});
      back.probs = None({0, top_k});
      back.tokens = NoOutput({0, hidden});
      EXPECT_EQ(Unpermute(back).message(), "");

      UnpermuteGradArgs back_grad;
      back_grad.tokens_grad = None({0, hidden});
      back_grad.permuted_tokens = None({0, hidden});
      back_grad.sorted_indices = NoIndices({0});
      back_grad.probs = None({0, top_k});
      back_grad.permuted_tokens_grad = NoOutput({0, hidden});
      back_grad.probs_grad = NoOutput({0, top_k});
      EXPECT_EQ(UnpermuteGrad(back_grad).message(), "");
    }
  }
}

// Rows that no slot names are zero, even where there is no token to come from.
TEST(FamilyExtremes, RowsOfNoTokens) {
  std::array<float, 4> rows{9, 9, 9, 9};
  PermuteArgs permute;
  permute.tokens = None({0, 2});
  permute.indices = NoIndices({0, 3});
  permute.num_out_tokens = 2;
  permute.permuted_tokens = TensorView(rows.data(), {2, 2});
  permute.sorted_indices = TensorView(static_cast<std::int32_t*>(nullptr), {0});
  EXPECT_EQ(Permute(permute).message(), "");
  EXPECT_THAT(rows, Each(0));
  rows.fill(9);
  UnpermuteGradArgs grad;
  grad.tokens_grad = None({0, 2});
  grad.sorted_indices = NoIndices({0});
  grad.permuted_tokens_grad = TensorView(rows.data(), {2, 2});
  EXPECT_EQ(UnpermuteGrad(grad).message(), "");
  EXPECT_THAT(rows, Each(0));
}

// Nothing is touched, and no memory is taken for rows without elements.
TEST(FamilyExtremes, HiddenZero) {
  const std::array<std::int32_t, 4> indices{1, -1, 0, 1};
  const std::array<float, 4> probs{1, 2, 3, 4};
  std::array<float, 4> dots{9, 9, 9, 9};
  for (const std::int64_t rows : {std::int64_t{2}, kMost32}) {
    UnpermuteGradArgs args;
    args.tokens_grad = None({2, 0});
    args.permuted_tokens = None({rows, 0});
    args.sorted_indices = In(indices.data(), {4});
    args.probs = In(probs.data(), {2, 2});
    args.permuted_tokens_grad = NoOutput({rows, 0});
    args.probs_grad = TensorView(dots.data(), {2, 2});
    EXPECT_EQ(UnpermuteGrad(args).message(), "");
    EXPECT_THAT(dots, Each(0));
    args.probs.reset();
    args.probs_grad.reset();
    EXPECT_EQ(UnpermuteGrad(args).message(), "");

    UnpermuteArgs back;
    back.permuted_tokens = None({rows, 0});
    back.sorted_indices = In(indices.data(), {4});
    back.probs = In(probs.data(), {2, 2});
    back.tokens = NoOutput({2, 0});
    EXPECT_EQ(Unpermute(back).message(), "");

    std::array<std::int32_t, 4> sorted_indices{};
    PermuteArgs permute;
    permute.tokens = None({2, 0});
    permute.indices = In(indices.data(), {2, 2});
    permute.num_out_tokens = rows;
    permute.permuted_tokens = NoOutput({rows, 0});
    permute.sorted_indices = TensorView(sorted_indices.data(), {4});
    EXPECT_EQ(Permute(permute).message(), "");
    EXPECT_THAT(sorted_indices, ElementsAre(1, -1, 0, 2));
  }
}

// No expert at all: every slot is one without, and weighs nothing.
TEST(FamilyExtremes, NoExperts) {
  const std::array<std::int32_t, 4> indices{1, -1, 0, 1};
  const std::array<float, 2> rows{5, 7};
  std::array<float, 2> tokens{9, 9};
  std::array<float, 4> gathered{9, 9, 9, 9};
  const ConstTensorView map(static_cast<const bool*>(nullptr), {2, 0});
  UnpermuteWithRoutingMapArgs args;
  args.permuted_tokens = In(rows.data(), {2, 1});
  args.sorted_indices = In(indices.data(), {4});
  args.routing_map = map;
  args.probs = None({2, 0});
  args.tokens = TensorView(tokens.data(), {2, 1});
  args.gathered_probs = TensorView(gathered.data(), {4});
  EXPECT_EQ(UnpermuteWithRoutingMap(args).message(), "");
  EXPECT_THAT(tokens, Each(0));
  EXPECT_THAT(gathered, Each(0));

  std::array<float, 2> rows_grad{9, 9};
  const std::array<float, 2> tokens_grad{-1, std::numeric_limits<float>::quiet_NaN()};
  UnpermuteWithRoutingMapGradArgs grad;
  grad.tokens_grad = In(tokens_grad.data(), {2, 1});
  grad.permuted_tokens = args.permuted_tokens;
  grad.sorted_indices = args.sorted_indices;
  grad.routing_map = map;
  grad.probs = None({2, 0});
  grad.permuted_tokens_grad = TensorView(rows_grad.data(), {2, 1});
  grad.probs_grad = NoOutput({2, 0});
  EXPECT_EQ(UnpermuteWithRoutingMapGrad(grad).message(), "");
  EXPECT_THAT(rows_grad, Each(0));

  args.drop_and_pad = true;
  args.permuted_tokens = None({0, 1});
  args.sorted_indices = NoIndices({0});
  args.gathered_probs = NoOutput({0});
  tokens.fill(9);
  EXPECT_EQ(UnpermuteWithRoutingMap(args).message(), "");
  EXPECT_THAT(tokens, Each(0));
}

// No slots, with tokens: sums and gradients of nothing.
TEST(FamilyExtremes, NoSlots) {
  std::array<float, 2> tokens{9, 9};
  UnpermuteArgs back;
  back.permuted_tokens = None({0, 1});
  back.sorted_indices = NoIndices({0});
  back.probs = None({2, 0});
  back.tokens = TensorView(tokens.data(), {2, 1});
  EXPECT_EQ(Unpermute(back).message(), "");
  EXPECT_THAT(tokens, Each(0));
  tokens.fill(9);
  PermuteGradArgs grad;
  grad.permuted_tokens_grad = None({0, 1});
  grad.permuted_probs_grad = None({0});
  grad.sorted_indices = NoIndices({0});
  grad.num_tokens = 2;
  grad.tokens_grad = TensorView(tokens.data(), {2, 1});
  grad.probs_grad = NoOutput({2, 0});
  EXPECT_EQ(PermuteGrad(grad).message(), "");
  EXPECT_THAT(tokens, Each(0));
}

// Far row numbers are compared as they are, whatever they are kept in.
TEST(FamilyExtremes, FarRowNumbers) {
  const std::array<float, 2> rows{5, 7};
  const std::array<std::int64_t, 4> indices{kMost32, std::int64_t{1} << 40, kMost,
                                            std::numeric_limits<std::int64_t>::min()};
  std::array<float, 4> tokens{};
  UnpermuteArgs args;
  args.permuted_tokens = In(rows.data(), {2, 1});
  args.sorted_indices = In(indices.data(), {4});
  args.first_row = kMost32;  // rows 2^31 - 1 and 2^31
  args.tokens = TensorView(tokens.data(), {4, 1});
  EXPECT_EQ(Unpermute(args).message(), "");
  EXPECT_THAT(tokens, ElementsAre(5, 0, 0, 0));
  args.first_row = 0;
  EXPECT_EQ(Unpermute(args).message(), "");
  EXPECT_THAT(tokens, Each(0));
}

// Expert numbers cost memory only where they are counted.
TEST(FamilyExtremes, FarExpertNumbers) {
  const std::array<std::int64_t, 4> experts{kMost32 - 1, 5, kMost32 - 1, 0};
  std::array<std::int32_t, 4> sorted_indices{};
  PermuteArgs args;
  args.tokens = None({4, 0});
  args.indices = In(experts.data(), {4});
  args.permuted_tokens = NoOutput({0, 0});
  args.sorted_indices = TensorView(sorted_indices.data(), {4});
  for (const std::int64_t num_experts : {std::int64_t{0}, kMost32}) {
    args.num_experts = num_experts;
    EXPECT_EQ(Permute(args).message(), "");
    EXPECT_THAT(sorted_indices, ElementsAre(2, 1, 3, 0));
  }
}

TEST(FamilyExtremes, MoreSlotsThanFit) {
  const std::int32_t index = 0;
  PermuteArgs args;
  PermuteSpecs specs;
  for (const auto& [tokens, top_k] :
       {std::pair<std::int64_t, std::int64_t>{std::int64_t{1} << 20, std::int64_t{1} << 11},
        {kMost32, std::int64_t{1} << 29}}) {
    const std::array<std::int64_t, 2> shape{tokens, top_k};
    const std::array<std::int64_t, 2> strides{0, 0};
    args.tokens = None({tokens, 0});
    args.indices = ConstTensorView(&index, DType::kInt32, shape, strides);
    const Status status = InferPermute(args, &specs);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), testing::HasSubstr(std::to_string(tokens * top_k)));
    EXPECT_THAT(status.message(), testing::HasSubstr("indices"));
    EXPECT_EQ(Permute(args).message(), status.message());
  }
}

TEST(FamilyExtremes, StridesThatAreNeverStepped) {
  for (const std::int64_t stride : {kMost, std::numeric_limits<std::int64_t>::min()}) {
    const float row = 3;
    const float prob = 2;
    const std::int32_t index = 0;
    float token = 0;
    UnpermuteArgs args;
    args.permuted_tokens = ConstTensorView(&row, {1, 1}, {stride, stride});
    args.sorted_indices = ConstTensorView(&index, {1}, {stride});
    args.probs = ConstTensorView(&prob, {1, 1}, {stride, stride});
    args.tokens = TensorView(&token, {1, 1}, {stride, stride});
    EXPECT_EQ(Unpermute(args).message(), "");
    EXPECT_EQ(token, 6);
    float row_grad = 0;
    float dot = 0;
    UnpermuteGradArgs grad;
    grad.tokens_grad = args.tokens;
    grad.permuted_tokens = args.permuted_tokens;
    grad.sorted_indices = args.sorted_indices;
    grad.probs = args.probs;
    grad.permuted_tokens_grad = TensorView(&row_grad, {1, 1}, {stride, stride});
    grad.probs_grad = TensorView(&dot, {1, 1}, {stride, stride});
    EXPECT_EQ(UnpermuteGrad(grad).message(), "");
    EXPECT_EQ(row_grad, 12);
    EXPECT_EQ(dot, 18);
  }
}

}  // namespace
}  // namespace moeperm::test
