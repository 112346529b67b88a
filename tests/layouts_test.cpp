// SPDX-License-Identifier: Apache-2.0
// Row maps beyond the original's two modes: a capacity without padding, the choice of the routes
// that keep their row, masked pad rows, experts' rows aligned. Against a plain list of what each
// expert holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/random.hpp"

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

struct Expected {
  Ints row_tokens;
  Ints offsets = {0};
  std::int64_t dropped = 0;
};

// What the options mean, expert by expert.
Expected Plain(const Tensor& map, const RowMapOptions& options, const Tensor& probs) {
  Expected expected;
  const std::vector<float> values = probs.Floats();
  for (std::int64_t e = 0; e < map.cols(); ++e) {
    Ints tokens;
    Ints others;
    for (std::int64_t t = 0; t < map.rows(); ++t) {
      ((map.Bits(t, e) & 0xFF) != 0 ? tokens : others).push_back(t);
    }
    const bool limited = options.drop_and_pad || options.capacity > 0;
    if (limited && static_cast<std::int64_t>(tokens.size()) > options.capacity) {
      expected.dropped += static_cast<std::int64_t>(tokens.size()) - options.capacity;
      if (options.keep == KeepPolicy::kHighestProb) {
        std::stable_sort(tokens.begin(), tokens.end(), [&](std::int64_t a, std::int64_t b) {
          return values[static_cast<std::size_t>(a * map.cols() + e)] >
                 values[static_cast<std::size_t>(b * map.cols() + e)];
        });
      }
      tokens.resize(static_cast<std::size_t>(options.capacity));
      std::sort(tokens.begin(), tokens.end());
    }
    if (options.drop_and_pad) {
      for (std::size_t i = 0; tokens.size() < static_cast<std::size_t>(options.capacity); ++i) {
        tokens.push_back(options.mask_pads ? -1 : others[i]);
      }
    } else {
      if (tokens.empty() && options.pad_empty_experts) tokens.push_back(-1);
      while (static_cast<std::int64_t>(tokens.size()) % options.align != 0) tokens.push_back(-1);
    }
    expected.row_tokens.insert(expected.row_tokens.end(), tokens.begin(), tokens.end());
    expected.offsets.push_back(static_cast<std::int64_t>(expected.row_tokens.size()));
  }
  return expected;
}

TEST(Layouts, AnyOptionsAsThePlainListSays) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::int64_t tokens = random.Below(40);
    const std::int64_t experts = 1 + random.Below(9);
    const std::int64_t hidden = 1 + random.Below(40);
    const Tensor map = MapTensor(DType::kInt8, tokens, experts,
                                 RandomRouting(random, tokens, experts, 1 + random.Below(experts)),
                                 Layout::kDense);
    Tensor probs(DType::kFloat32, {tokens, experts});
    FillSmallIntegers(random, probs);  // many ties
    RowMapOptions options;
    options.drop_and_pad = random.Chance(50);
    options.capacity = random.Below(tokens + 1);
    options.keep = random.Chance(50) ? KeepPolicy::kHighestProb : KeepPolicy::kFirst;
    options.probs = probs.in();
    if (options.drop_and_pad) {
      options.mask_pads = random.Chance(50);
    } else {
      options.align = random.OneOf<std::int64_t>({1, 2, 3, 8, 16});
      options.pad_empty_experts = random.Chance(50);
    }
    const Expected expected = Plain(map, options, probs);
    const Context context = ContextOf(AvailableIsas().front(), random.OneOf({1, 2, 3}));
    const RowMap row_map = Build(map, options, context);
    ASSERT_EQ(List(row_map.row_tokens()), expected.row_tokens);
    ASSERT_EQ(List(row_map.expert_offsets()), expected.offsets);
    ASSERT_EQ(row_map.num_dropped(), expected.dropped);

    // Forward: the token of each row, or zeros. Backward: each row's gradient to its token.
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
    std::vector<float> sums(static_cast<std::size_t>(tokens * hidden), 0.0F);
    const std::vector<float> from = x.Floats();
    const std::vector<float> grads = dy.Floats();
    std::vector<float> want(static_cast<std::size_t>(rows * hidden), 0.0F);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t token = expected.row_tokens[static_cast<std::size_t>(row)];
      for (std::int64_t h = 0; token >= 0 && h < hidden; ++h) {
        const auto to = static_cast<std::size_t>(row * hidden + h);
        want[to] = from[static_cast<std::size_t>(token * hidden + h)];
        sums[static_cast<std::size_t>(token * hidden + h)] += grads[to];
      }
    }
    ASSERT_EQ(y.Floats(), want);
    ASSERT_EQ(dx.Floats(), sums);
    ASSERT_TRUE(y.GuardsIntact("y"));
    ASSERT_TRUE(dx.GuardsIntact("dx"));
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
