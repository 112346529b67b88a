// SPDX-License-Identifier: Apache-2.0
// Row maps beyond the original's two modes: a capacity without padding, the choice of the routes
// that keep their row, masked pad rows, experts' rows aligned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/row_map.hpp"

namespace moeperm::test {
namespace {

using Ints = std::vector<std::int64_t>;

template <class T>
Ints List(std::span<const T> values) {
  return Ints(values.begin(), values.end());
}

RowMap Build(const Tensor& map, const RowMapOptions& options,
             const Context& context = Context::Default()) {
  RowMap row_map;
  const Status status = RowMap::FromRoutingMap(map.in(), options, &row_map, context);
  EXPECT_TRUE(status.ok()) << status.message();
  return row_map;
}

Tensor F1Map() { return Copy(NotPadded(F1()).routing_map); }

TEST(Layouts, AlignedRowsAreFilledUpWithZeros) {
  const Tensor map = F1Map();
  RowMapOptions options;
  options.align = 4;
  const RowMap row_map = Build(map, options);
  EXPECT_EQ(List(row_map.row_tokens()), (Ints{0, 1, -1, -1, 1, 2, -1, -1, 0, 2, -1, -1}));
  EXPECT_EQ(List(row_map.expert_offsets()), (Ints{0, 4, 8, 12}));
  EXPECT_EQ(List(row_map.tokens_per_expert()), (Ints{2, 2, 2}));
  EXPECT_EQ(List(row_map.kept_per_expert()), (Ints{2, 2, 2}));
  EXPECT_EQ(row_map.num_dropped(), 0);

  const ForwardInputs inputs = NotPadded(F1());
  Tensor permuted(DType::kFloat32, {12, 2});
  Tensor probs(DType::kFloat32, {12});
  ASSERT_TRUE(PermuteByRowMap(row_map,
                              {inputs.tokens.in(), inputs.probs->in(), permuted.out(), probs.out()})
                  .ok());
  EXPECT_EQ(permuted.Floats(), (std::vector<float>{1, 10, 2, 20, 0, 0,  0, 0,  2, 20, 3, 30,
                                                   0, 0,  0, 0,  1, 10, 3, 30, 0, 0,  0, 0}));
  EXPECT_EQ(probs.Floats(), (std::vector<float>{.5, .75, 0, 0, .125, .375, 0, 0, .25, .625, 0, 0}));

  // NaN gradients of pad rows go nowhere.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor dy = Tensor::OfFloats(DType::kFloat32, {12, 2},
                                     {1,   -1,  2,   -2,  nan, nan, nan, nan, 4,   -4,  8,   -8,
                                      nan, nan, nan, nan, 16,  -16, 32,  -32, nan, nan, nan, nan});
  Tensor dx(DType::kFloat32, {3, 2});
  ASSERT_TRUE(PermuteByRowMapGrad(row_map, {dy.in(), std::nullopt, dx.out(), std::nullopt}).ok());
  EXPECT_EQ(dx.Floats(), (std::vector<float>{17, -17, 6, -6, 40, -40}));

  // Rows laid out otherwise are refused.
  const Tensor six(DType::kFloat32, {6, 2});
  const Status status =
      PermuteByRowMapGrad(row_map, {six.in(), std::nullopt, dx.out(), std::nullopt});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("6"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("12"), std::string::npos) << status.message();
}

TEST(Layouts, EmptyExpertsArePaddedOnRequest) {
  const Tensor map = Copy(NotPadded(F3()).routing_map);
  RowMapOptions options;
  options.align = 4;
  EXPECT_EQ(List(Build(map, options).expert_offsets()), (Ints{0, 0, 4, 4, 4}));
  options.pad_empty_experts = true;
  const RowMap row_map = Build(map, options);
  EXPECT_EQ(List(row_map.expert_offsets()), (Ints{0, 4, 8, 12, 16}));
  EXPECT_EQ(row_map.row_tokens()[4], 0);
  EXPECT_EQ(row_map.row_tokens()[5], 1);
}

TEST(Layouts, CapacityWithoutPaddingDrops) {
  // Five tokens, all to expert 0 of four.
  Ints map(20, 0);
  for (std::size_t token = 0; token < 5; ++token) map[token * 4] = 1;
  const Tensor tensor = Tensor::OfInts(DType::kInt8, {5, 4}, map);
  RowMapOptions options;
  options.capacity = 4;
  const RowMap row_map = Build(tensor, options);
  EXPECT_EQ(List(row_map.row_tokens()), (Ints{0, 1, 2, 3}));
  EXPECT_EQ(List(row_map.slot_rows()), (Ints{0, 1, 2, 3, -1}));
  EXPECT_EQ(row_map.num_routes(), 5);
  EXPECT_EQ(row_map.num_dropped(), 1);
  // F1 with room enough: the same rows as without a capacity.
  options.capacity = 2;
  EXPECT_EQ(List(Build(F1Map(), options).row_tokens()), List(Build(F1Map(), {}).row_tokens()));
}

TEST(Layouts, TheHighestProbsKeepTheirRows) {
  const Tensor map = Tensor::OfInts(DType::kBool, {5, 1}, {1, 1, 0, 1, 1});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  RowMapOptions options;
  options.keep = KeepPolicy::kHighestProb;
  options.capacity = 2;
  const auto kept = [&](const std::vector<float>& values) {
    const Tensor probs = Tensor::OfFloats(DType::kBFloat16, {5, 1}, values);
    options.probs = probs.in();
    return List(Build(map, options).row_tokens());
  };
  EXPECT_EQ(kept({1, 4, 9, 2, 3}), (Ints{1, 4}));
  EXPECT_EQ(kept({1, 1, 9, 1, 1}), (Ints{0, 1}));
  EXPECT_EQ(kept({nan, -5, 9, nan, -6}), (Ints{1, 4}));
  EXPECT_EQ(kept({nan, nan, 9, nan, nan}), (Ints{0, 1}));
}

TEST(Layouts, MaskedPadsAreZeroAndGiveNoGradient) {
  const ForwardInputs inputs = DropAndPad(F4(), 2);
  RowMapOptions options = RowMapOptionsOf(inputs);
  options.mask_pads = true;
  const RowMap row_map = Build(inputs.routing_map, options);
  EXPECT_EQ(List(row_map.row_tokens()), (Ints{0, 1, 1, -1}));
  EXPECT_EQ(List(row_map.tokens_per_expert()), (Ints{3, 1}));
  EXPECT_EQ(List(row_map.kept_per_expert()), (Ints{2, 1}));
  EXPECT_EQ(row_map.num_dropped(), 1);
  Tensor permuted(DType::kFloat32, {4, 1});
  Tensor probs(DType::kFloat32, {4});
  ASSERT_TRUE(PermuteByRowMap(row_map,
                              {inputs.tokens.in(), inputs.probs->in(), permuted.out(), probs.out()})
                  .ok());
  EXPECT_EQ(permuted.Floats(), (std::vector<float>{1, 2, 2, 0}));
  EXPECT_EQ(probs.Floats(), (std::vector<float>{.5, .25, .75, 0}));
  const Tensor dy = Tensor::OfFloats(DType::kFloat32, {4, 1}, {1, 2, 4, 8});
  const Tensor dp = Tensor::OfFloats(DType::kFloat32, {4}, {1, 2, 3, 4});
  Tensor dx(DType::kFloat32, {4, 1});
  Tensor dprobs(DType::kFloat32, {4, 2});
  ASSERT_TRUE(PermuteByRowMapGrad(row_map, {dy.in(), dp.in(), dx.out(), dprobs.out()}).ok());
  EXPECT_EQ(dx.Floats(), (std::vector<float>{1, 6, 0, 0}));
  EXPECT_EQ(dprobs.Floats(), (std::vector<float>{1, 0, 2, 3, 0, 0, 0, 0}));
}

// A permuted row is its token's, or zeros; backward a row's gradient goes to its token.
TEST(Layouts, AnyOptionsAsTheReferenceSays) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::int64_t tokens = random.Below(40);
    const std::int64_t hidden = 1 + random.Below(40);
    const MapInputs map = AnyMap(random, tokens, 1 + random.Below(9));
    const moeperm_reference::PlainRowMap expected = map.Reference();
    const Context context = ContextOf(AvailableIsas().front(), random.OneOf({1, 2, 3}));
    const RowMap row_map = map.Build(context);
    ASSERT_EQ(List(row_map.row_tokens()), expected.row_tokens);
    ASSERT_EQ(List(row_map.expert_offsets()), expected.expert_offsets);
    ASSERT_EQ(List(row_map.kept_per_expert()), expected.kept_per_expert);
    ASSERT_EQ(row_map.num_routes(), expected.num_routes);
    ASSERT_EQ(row_map.num_dropped(), expected.num_dropped);
    ASSERT_EQ(row_map.slot_rows().size(), expected.slots.size());
    ASSERT_EQ(row_map.slot_experts().size(), expected.slots.size());

    Tensor x(DType::kFloat32, {tokens, hidden});
    FillSmallIntegers(random, x);
    const auto rows = static_cast<std::int64_t>(expected.row_tokens.size());
    Tensor y(DType::kFloat32, {rows, hidden});
    ASSERT_TRUE(
        PermuteByRowMap(row_map, {x.in(), std::nullopt, y.out(), std::nullopt}, context).ok());
    Tensor dy(DType::kFloat32, {rows, hidden});
    FillSmallIntegers(random, dy);
    Tensor dx(DType::kFloat32, {tokens, hidden});
    ASSERT_TRUE(
        PermuteByRowMapGrad(row_map, {dy.in(), std::nullopt, dx.out(), std::nullopt}, context)
            .ok());
    ASSERT_TRUE(Equals(
        "y", y, moeperm_reference::SpreadSlots(x.ToMatrix(), expected.slots, rows, nullptr)));
    ASSERT_TRUE(Equals(
        "dx", dx, moeperm_reference::SumSlots(dy.ToMatrix(), expected.slots, tokens, nullptr, {})));
  }
}

TEST(Layouts, WhatTheOptionsRefuse) {
  const Tensor map = F1Map();
  const Tensor probs(DType::kFloat32, {3, 2});
  const auto refusal = [&](const RowMapOptions& options) {
    RowMap row_map;
    const Status status = RowMap::FromRoutingMap(map.in(), options, &row_map);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal({.align = 0}), HasSubstr("align = 0"));
  EXPECT_THAT(refusal({.align = std::int64_t{1} << 40}), HasSubstr("1099511627776"));
  EXPECT_THAT(refusal({.align = std::int64_t{1} << 30, .pad_empty_experts = true}),
              HasSubstr("number of rows with padding"));
  EXPECT_THAT(refusal({.capacity = -1}), HasSubstr("capacity = -1"));
  EXPECT_THAT(refusal({.drop_and_pad = true, .capacity = 1, .align = 4}), HasSubstr("align"));
  EXPECT_THAT(refusal({.mask_pads = true}), HasSubstr("mask_pads"));
  EXPECT_THAT(refusal({.keep = KeepPolicy::kHighestProb}), HasSubstr("probs"));
  EXPECT_THAT(refusal({.keep = KeepPolicy::kHighestProb, .probs = probs.in()}),
              HasSubstr("probs.shape[1] = 2"));
}

}  // namespace
}  // namespace moeperm::test
