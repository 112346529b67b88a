// SPDX-License-Identifier: Apache-2.0
// Chunks of rows in another order, against a plain list of source rows, on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "moeperm/sort_chunks.hpp"
#include "support/contexts.hpp"
#include "support/family_random.hpp"
#include "support/fixtures.hpp"
#include "support/refusal.hpp"

namespace moeperm::test {
namespace {

using Ints = std::vector<std::int64_t>;

// The source row of each sorted row.
Ints SourceRows(const Ints& sizes, const Ints& order) {
  Ints rows;
  for (const std::int64_t chunk : order) {
    const std::int64_t begin =
        std::accumulate(sizes.begin(), sizes.begin() + chunk, Ints::value_type{});
    for (std::int64_t i = 0; i < sizes[static_cast<std::size_t>(chunk)]; ++i) {
      rows.push_back(begin + i);
    }
  }
  return rows;
}

struct Chunks {
  Tensor rows;
  std::optional<Tensor> probs;
  Tensor split_sizes;
  Tensor order;
  Ints sources;
};

SortChunksArgs Forward(const Chunks& c, Tensor& rows, std::optional<Tensor>& probs) {
  SortChunksArgs args;
  args.rows = c.rows.in();
  args.split_sizes = c.split_sizes.in();
  args.order = c.order.in();
  args.sorted_rows = rows.out();
  if (c.probs) {
    args.probs = c.probs->in();
    args.sorted_probs = probs->out();
  }
  return args;
}

SortChunksGradArgs Backward(const Chunks& c, Tensor& rows, std::optional<Tensor>& probs) {
  const SortChunksArgs args = Forward(c, rows, probs);
  return {args.rows, args.probs, args.split_sizes, args.order, args.sorted_rows, args.sorted_probs};
}

// Expected row i is row sources[i] of `from`, or backward the other way round.
Matrix Moved(const Tensor& from, const Ints& sources, bool backward) {
  const Matrix in = from.ToMatrix();
  Matrix out(in.type, in.rows, in.cols);
  for (std::int64_t i = 0; i < in.rows; ++i) {
    const std::int64_t source = sources[static_cast<std::size_t>(i)];
    for (std::int64_t h = 0; h < in.cols; ++h) {
      out.Set(backward ? source : i, h, in.Get(backward ? i : source, h));
    }
  }
  return out;
}

TEST(SortChunks, WorkedExample) {
  const Chunks c{Counting(DType::kFloat32, {6, 1}),
                 std::nullopt,
                 Tensor::OfInts(DType::kInt32, {4}, {2, 0, 3, 1}),
                 Tensor::OfInts(DType::kInt64, {4}, {2, 0, 3, 1}),
                 {}};
  Tensor out(DType::kFloat32, {6, 1});
  std::optional<Tensor> none;
  ASSERT_TRUE(SortChunks(Forward(c, out, none)).ok());
  EXPECT_EQ(out.Floats(), (std::vector<float>{2, 3, 4, 0, 1, 5}));
  ASSERT_TRUE(SortChunksGrad(Backward(c, out, none)).ok());  // of 0 .. 5
  EXPECT_EQ(out.Floats(), (std::vector<float>{3, 4, 0, 1, 2, 5}));
}

TEST(SortChunks, AnyChunksEveryIsaAndThreadCount) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Ints sizes(static_cast<std::size_t>(random.Below(12)));
    Ints order(sizes.size());
    for (std::int64_t& size : sizes) size = random.Chance(30) ? 0 : random.Below(9);
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = 1; i < order.size(); ++i) {
      std::swap(order[i],
                order[static_cast<std::size_t>(random.Below(static_cast<std::int64_t>(i) + 1))]);
    }
    const auto chunks = static_cast<std::int64_t>(sizes.size());
    const std::int64_t rows = std::accumulate(sizes.begin(), sizes.end(), Ints::value_type{});
    // Big enough for several threads now and then.
    const std::int64_t hidden = random.Chance(10) ? 3000 : random.Below(70);
    Chunks c{Tensor(AnyFloat(random), {rows, hidden}, AnyInputLayout(random)), std::nullopt,
             Tensor::OfInts(AnyIndex(random), {chunks}, sizes),
             Tensor::OfInts(AnyIndex(random), {chunks}, order, Layout::kReversedWithGaps),
             SourceRows(sizes, order)};
    FillRandom(random, c.rows);
    if (random.Chance(50)) {
      c.probs.emplace(AnyFloat(random), Ints{rows});
      FillRandom(random, *c.probs);
    }
    for (const Context& context : EveryContext({1, 2, 3, 7})) {
      for (const bool backward : {false, true}) {
        Tensor out(c.rows.dtype(), {rows, hidden}, AnyOutputLayout(random));
        std::optional<Tensor> probs;
        if (c.probs) probs.emplace(c.probs->dtype(), Ints{rows}, AnyOutputLayout(random));
        const Status status = backward ? SortChunksGrad(Backward(c, out, probs), context)
                                       : SortChunks(Forward(c, out, probs), context);
        ASSERT_TRUE(status.ok()) << status.message();
        ASSERT_TRUE(Equals("rows", out, Moved(c.rows, c.sources, backward))) << Describe(context);
        if (probs) {
          ASSERT_TRUE(Equals("probs", *probs, Moved(*c.probs, c.sources, backward)));
        }
        ASSERT_TRUE(c.rows.Unchanged("rows"));
      }
    }
  }
}

TEST(SortChunks, Refusals) {
  const auto refused = [](const Ints& sizes, const Ints& order, Code code,
                          const std::vector<std::string>& says) {
    const Chunks c{Counting(DType::kFloat32, {6, 2}),
                   std::nullopt,
                   Tensor::OfInts(DType::kInt64, {static_cast<std::int64_t>(sizes.size())}, sizes),
                   Tensor::OfInts(DType::kInt64, {static_cast<std::int64_t>(order.size())}, order),
                   {}};
    Tensor out(DType::kFloat32, {6, 2});
    std::optional<Tensor> none;
    ExpectRefused(SortChunks(Forward(c, out, none)), code, says);
    ExpectRefused(SortChunksGrad(Backward(c, out, none)), code, says);
    EXPECT_TRUE(out.GuardsIntact("out"));
  };
  constexpr Code kInvalid = Code::kInvalidArgument;
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  refused({2, -1, 5}, {0, 1, 2}, kInvalid, {"split_sizes[1] = -1"});
  refused({2, 3}, {0, 1}, kInvalid, {"5", "6"});
  refused({2, 5}, {0, 1}, kInvalid, {"split_sizes[1] = 5", "6"});
  refused({kHuge, kHuge, kHuge, kHuge}, {0, 1, 2, 3}, kInvalid, {"split_sizes[0] = 46116860"});
  refused({2, 4}, {0, 1, 2}, kInvalid, {"order.shape[0] = 3", "2"});
  refused({2, 4}, {0, 2}, Code::kIndexOutOfRange, {"order[1] = 2", "2 chunks"});
  refused({2, 4}, {-1, 0}, Code::kIndexOutOfRange, {"order[0] = -1"});
  refused({2, 0, 4}, {2, 0, 2}, kInvalid, {"order[2] = 2", "order[0]"});

  const Chunks c{Counting(DType::kFloat32, {6, 2}),
                 Counting(DType::kFloat16, {6}),
                 Tensor::OfInts(DType::kInt32, {1}, {6}),
                 Tensor::OfInts(DType::kInt32, {1}, {0}),
                 {}};
  Tensor out(DType::kFloat32, {6, 2});
  std::optional<Tensor> probs(std::in_place, DType::kFloat16, Ints{6});
  const auto spoiled = [&](void (*spoil)(SortChunksArgs&), const std::vector<std::string>& says) {
    SortChunksArgs args = Forward(c, out, probs);
    ASSERT_TRUE(SortChunks(args).ok());
    spoil(args);
    ExpectRefused(SortChunks(args), kInvalid, says);
  };
  using Args = SortChunksArgs;
  spoiled([](Args& a) { a = {}; }, {"rows", "never set"});
  spoiled([](Args& a) { a.sorted_probs.reset(); }, {"sorted_probs is missing"});
  spoiled([](Args& a) { a.probs.reset(); }, {"sorted_probs is given"});
  spoiled([](Args& a) { a.sorted_rows = Retyped(a.sorted_rows, DType::kFloat16); },
          {"sorted_rows", "float16", "float32"});
  spoiled(
      [](Args& a) {
        a.sorted_rows = Reshaped(a.sorted_rows, {5, 2});
      },
      {"sorted_rows.shape[0] = 5", "6"});
  spoiled([](Args& a) { a.sorted_probs = Reshaped(*a.sorted_probs, {5}); },
          {"sorted_probs.shape[0] = 5", "6"});
  spoiled([](Args& a) { a.split_sizes = Retyped(a.split_sizes, DType::kFloat32); },
          {"split_sizes", "float32"});
  spoiled([](Args& a) { a.rows = a.sorted_rows; }, {"sorted_rows", "overlaps"});
  EXPECT_EQ(SortChunks({}, Context({.num_threads = -1})).code(), kInvalid);
}

}  // namespace
}  // namespace moeperm::test
