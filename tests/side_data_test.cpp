// SPDX-License-Identifier: Apache-2.0
// Further arrays that move with the tokens' rows: every dtype, any strides, every row map.
#include <gtest/gtest.h>

#include "support/contexts.hpp"
#include "support/family_random.hpp"
#include "support/fixtures.hpp"
#include "support/refusal.hpp"
#include "support/row_map.hpp"

namespace moeperm::test {
namespace {

constexpr DType kAll[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8,
                          DType::kBool,    DType::kInt32,   DType::kInt64};

// Equal to the tokens of the rows, bit for bit; +0 bits for rows without one.
testing::AssertionResult IsMoved(const Tensor& src, const Tensor& dst,
                                 const std::vector<std::int64_t>& row_tokens) {
  Tensor want(dst.dtype(), dst.shape());
  for (std::int64_t row = 0; row < dst.rows(); ++row) {
    const std::int64_t token = row_tokens[static_cast<std::size_t>(row)];
    for (std::int64_t i = 0; i < dst.cols(); ++i) {
      want.SetBits(row, i, token < 0 ? 0 : src.Bits(token, i));
    }
  }
  return Equals("dst", dst, want);
}

TEST(SideData, AlignedRows) {  // P023
  const MapInputs map{
      Copy(NotPadded(F1()).routing_map), Tensor(DType::kFloat32, {3, 3}), {.align = 4}};
  const Tensor tokens = Counting(DType::kFloat32, {3, 2});
  Tensor permuted(DType::kFloat32, {12, 2});
  const Tensor src = Tensor::OfInts(DType::kInt64, {3, 1}, {10, 20, 30});
  Tensor dst(DType::kInt64, {12, 1});
  const SideData side[] = {{src.in(), dst.out()}};
  PermuteByRowMapArgs args{tokens.in(), std::nullopt, permuted.out(), std::nullopt, side};
  ASSERT_TRUE(PermuteByRowMap(map.Build(), args).ok());
  EXPECT_EQ(dst.Ints(), (std::vector<std::int64_t>{10, 20, 0, 0, 20, 30, 0, 0, 10, 30, 0, 0}));
}

TEST(SideData, AnyRowMapEveryIsaAndThreadCount) {
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::int64_t tokens = random.Below(30);
    const MapInputs map = AnyMap(random, tokens, 1 + random.Below(6));
    const std::vector<std::int64_t> row_tokens = map.Reference().row_tokens;
    const auto rows = static_cast<std::int64_t>(row_tokens.size());
    const Tensor x(DType::kFloat16, {tokens, 3});
    std::vector<Tensor> sources;
    for (const DType dtype : kAll) {
      const std::int64_t columns = random.Chance(2) ? 9000 : random.Below(70);
      Tensor& src =
          sources.emplace_back(dtype, std::vector{tokens, columns}, AnyInputLayout(random));
      for (std::int64_t i = 0; i < src.size(); ++i) {
        src.SetBits(i / columns, i % columns, random.Bits());
      }
      src.Freeze();
    }
    for (const Context& context : EveryContext({1, 2, 3, 7})) {
      Tensor y(DType::kFloat16, {rows, 3});
      std::vector<Tensor> outputs;
      std::vector<SideData> side;
      outputs.reserve(sources.size());
      for (const Tensor& src : sources) {
        outputs.emplace_back(src.dtype(), std::vector{rows, src.cols()}, AnyOutputLayout(random));
        side.push_back({src.in(), outputs.back().out()});
      }
      PermuteByRowMapArgs args{x.in(), std::nullopt, y.out(), std::nullopt, side};
      const Status status = PermuteByRowMap(map.Build(context), args, context);
      ASSERT_TRUE(status.ok()) << status.message();
      for (std::size_t i = 0; i < sources.size(); ++i) {
        ASSERT_TRUE(IsMoved(sources[i], outputs[i], row_tokens)) << Describe(context);
        ASSERT_TRUE(sources[i].Unchanged("src"));
      }
    }
  }
}

TEST(SideData, Refusals) {
  const MapInputs map{Copy(NotPadded(F1()).routing_map), Tensor(DType::kFloat32, {3, 3})};
  const Tensor tokens = Counting(DType::kFloat32, {3, 2});
  Tensor permuted(DType::kFloat32, {6, 2});
  const Tensor src(DType::kInt64, {3, 2});
  Tensor dst(DType::kInt64, {6, 2});
  const auto refused = [&](void (*spoil)(SideData&), const std::vector<std::string>& says) {
    SideData side[] = {{src.in(), dst.out()}};
    PermuteByRowMapArgs args{tokens.in(), std::nullopt, permuted.out(), std::nullopt, side};
    ASSERT_TRUE(PermuteByRowMap(map.Build(), args).ok());
    spoil(side[0]);
    ExpectRefused(PermuteByRowMap(map.Build(), args), Code::kInvalidArgument, says);
  };
  refused([](SideData& s) { s = {}; }, {"side[0].src", "never set"});
  refused([](SideData& s) { s.dst = {}; }, {"side[0].dst", "never set"});
  refused([](SideData& s) { s.src = Reshaped(s.src, {2, 2}); }, {"side[0].src.shape[0] = 2", "3"});
  refused([](SideData& s) { s.dst = Reshaped(s.dst, {5, 2}); }, {"side[0].dst.shape[0] = 5", "6"});
  refused([](SideData& s) { s.dst = Reshaped(s.dst, {6, 1}); }, {"side[0].dst.shape[1] = 1", "2"});
  refused([](SideData& s) { s.dst = Retyped(s.dst, DType::kInt32); },
          {"side[0].dst", "int32", "int64"});
  refused([](SideData& s) { s.src = Retyped(s.src, static_cast<DType>(99)); }, {"side[0].src"});
  refused([](SideData& s) { s.src = AtAddress(s.src, static_cast<const void*>(s.dst.data())); },
          {"side[0].dst", "side[0].src", "overlaps"});
}

}  // namespace
}  // namespace moeperm::test
