// SPDX-License-Identifier: Apache-2.0
// Sizes at which one way of working hands over to another, for the index form and the way back with
// weights: outputs that are streamed at any alignment, tiles and what is left of them, groups of
// slots, very many slots, expert numbers that are not counted, empty tensors without memory.
#include <gtest/gtest.h>

#include <cfenv>
#include <limits>

#include "support/contexts.hpp"
#include "support/family_random.hpp"

namespace moeperm::test {
namespace {

using Ints = std::vector<std::int64_t>;

struct Shape {
  std::int64_t tokens;
  std::int64_t hidden;
  std::int64_t top_k;
};

Tensor Ordinary(Random& random, DType dtype, Ints shape, Layout layout = Layout::kDense) {
  Tensor tensor(dtype, std::move(shape), layout);
  FillOrdinary(random, tensor);
  return tensor;
}

// Expert numbers, every eleventh none.
Tensor Experts(const Shape& shape, std::int64_t experts) {
  Ints values;
  for (std::int64_t slot = 0; slot < shape.tokens * shape.top_k; ++slot) {
    values.push_back(slot % 11 == 5 ? -1 : slot * 7919 % experts);
  }
  return Tensor::OfInts(DType::kInt32, {shape.tokens, shape.top_k}, values);
}

// Forward by table, its gradient, and the way back and its gradient, in all `contexts`.
void Check(const Shape& shape, DType dtype, const std::vector<Context>& contexts, Layout layout) {
  const AnyLayout as = [layout] { return layout; };
  Random random(21);
  TableInputs table{Ordinary(random, dtype, {shape.tokens, shape.hidden}, layout),
                    Experts(shape, 9)};
  const std::int64_t rows = shape.tokens * shape.top_k;
  table.num_out_tokens = rows;
  table.probs = Ordinary(random, DType::kFloat32, {shape.tokens, shape.top_k});
  const moeperm_reference::TablePermuted permuted = Reference(table);

  TableGradInputs table_grad{.sorted_indices =
                                 Tensor::OfInts(DType::kInt32, {rows}, permuted.sorted_indices)};
  table_grad.permuted_tokens_grad = Ordinary(random, dtype, {rows, shape.hidden}, layout);
  table_grad.num_tokens = shape.tokens;
  const ExpectedPair expected_grads = Reference(table_grad);

  BackInputs back{Ordinary(random, dtype, {rows, shape.hidden}, layout),
                  Ordinary(random, dtype, {shape.tokens, shape.hidden}, layout),
                  Tensor::OfInts(DType::kInt32, {rows}, permuted.sorted_indices),
                  Ordinary(random, DType::kFloat16, {shape.tokens, shape.top_k})};
  const ExpectedPair expected_back = Reference(back);
  const ExpectedPair expected_back_grads = ReferenceOfGrads(back);
  for (const Context& context : contexts) {
    SCOPED_TRACE(Describe(context));
    TableOutputs permuted_outputs = MakeOutputs(table, as);
    ASSERT_TRUE(Permute(ArgsOf(table, permuted_outputs), context).ok());
    EXPECT_TRUE(Matches(table, permuted_outputs, permuted));
    TableGrads grads = MakeOutputs(table_grad, as);
    ASSERT_TRUE(PermuteGrad(ArgsOf(table_grad, grads), context).ok());
    EXPECT_TRUE(Matches(table_grad, grads, expected_grads));
    BackOutputs tokens = MakeOutputs(back, as);
    ASSERT_TRUE(Call(back, tokens, context).ok());
    EXPECT_TRUE(Matches(back, tokens, expected_back));
    for (const Wanted& wanted : {Wanted{true, true}, Wanted{true, false}, Wanted{false, true}}) {
      BackGrads back_grads = MakeGrads(back, wanted, as);
      ASSERT_TRUE(Call(back, back_grads, context).ok());
      EXPECT_TRUE(Matches(back, back_grads, expected_back_grads));
    }
  }
}

class FamilyEdges : public testing::TestWithParam<DType> {};

// Above 2 MiB outputs are written past the caches: where every row is aligned, and where none is.
TEST_P(FamilyEdges, StreamedOutputs) {
  const auto elements = static_cast<std::int64_t>(SizeOf(GetParam()));
  const std::int64_t tokens = 560 * 4 / elements;
  Check({tokens, 1024, 2}, GetParam(), EveryContext({2}), Layout::kDense);  // tiles alone
  Check({tokens, 1056, 1}, GetParam(), EveryContext({2}), Layout::kDense);  // and a rest
  Check({tokens, 1024, 1}, GetParam(), EveryContext({2}), Layout::kShiftedRowGaps);
  Check({tokens, 1021, 2}, GetParam(), EveryContext({3}), Layout::kShifted);
  Check({tokens, 1037, 1}, GetParam(), EveryContext({1}), Layout::kReversedRows);
}

// Weighted sums in drop-and-pad mode, products rounded and not, streamed.
TEST_P(FamilyEdges, StreamedDropAndPad) {
  const auto elements = static_cast<std::int64_t>(SizeOf(GetParam()));
  const std::int64_t tokens = 2400 * 4 / elements;
  for (const bool round_products : {false, true}) {
    Random random(22);
    Ints row_tokens;
    for (std::int64_t row = 0; row < tokens / 2 * 3; ++row) row_tokens.push_back(row % tokens);
    const auto rows = static_cast<std::int64_t>(row_tokens.size());
    BackInputs back{Ordinary(random, GetParam(), {rows, 243}),
                    Ordinary(random, GetParam(), {tokens, 243}),
                    Tensor::OfInts(DType::kInt32, {rows}, row_tokens),
                    Ordinary(random, DType::kBFloat16, {tokens, 3})};
    back.with_map = true;
    back.drop_and_pad = true;
    back.round_products = round_products;
    const ExpectedPair expected = Reference(back);
    const ExpectedPair expected_grads = ReferenceOfGrads(back);
    for (const Context& context : EveryContext({2})) {
      BackOutputs outputs = MakeOutputs(back, [] { return Layout::kShifted; });
      ASSERT_TRUE(Call(back, outputs, context).ok());
      EXPECT_TRUE(Matches(back, outputs, expected)) << Describe(context);
      BackGrads grads = MakeGrads(back, {}, [] { return Layout::kShifted; });
      ASSERT_TRUE(Call(back, grads, context).ok());
      EXPECT_TRUE(Matches(back, grads, expected_grads)) << Describe(context);
    }
  }
}

TEST_P(FamilyEdges, TilesAndWhatIsLeftOfThem) {
  for (const std::int64_t hidden :
       {1, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 127, 128, 129, 191}) {
    Check({9, hidden, 3}, GetParam(), EveryContext({1}), Layout::kShifted);
  }
}

TEST_P(FamilyEdges, SlotsOfOneToken) {
  for (const std::int64_t top_k : {1, 31, 32, 33, 64, 65, 511, 512, 513, 700}) {
    Check({3, 70, top_k}, GetParam(), EveryContext({1, 2}), Layout::kDense);
  }
}

// A few tokens share the threads by columns where sums allow it.
TEST_P(FamilyEdges, FewTokensOfManyColumns) {
  for (const std::int64_t tokens : {1, 2}) {
    Check({tokens, 100003, 2}, GetParam(), EveryContext({1, 3, 7}), Layout::kShiftedRowGaps);
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, FamilyEdges,
                         testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16),
                         [](const auto& test) { return std::string(Name(test.param)); });

// The same order of rows where experts are counted by blocks, in one, and not at all.
TEST(FamilyEdges, CountedAndSortedExperts) {
  for (const std::int64_t experts : {1, 5, 300, 65536, 65537, 70001, 2000000011}) {
    const Shape shape{30011, 1, 3};
    TableInputs table{Tensor::OfFloats(DType::kFloat32, {shape.tokens, 1},
                                       std::vector<float>(static_cast<std::size_t>(shape.tokens))),
                      Experts(shape, experts)};
    const moeperm_reference::TablePermuted expected = Reference(table);
    for (const Context& context : EveryContext({1, 2, 7})) {
      for (const bool counted : {false, true}) {
        // Far more experts than slots are accepted, but not counted for want of memory.
        table.num_experts = counted && experts <= 100000 ? experts : 0;
        TableOutputs outputs = MakeOutputs(table);
        if (counted) table.num_experts = experts;
        ASSERT_TRUE(Permute(ArgsOf(table, outputs), context).ok()) << experts;
        EXPECT_TRUE(Equals("sorted_indices", outputs.sorted_indices, expected.sorted_indices));
        if (outputs.tokens_per_expert) {
          Ints counts = expected.tokens_per_expert;
          counts.resize(static_cast<std::size_t>(experts));
          EXPECT_TRUE(Equals("tokens_per_expert", *outputs.tokens_per_expert, counts));
        }
      }
    }
  }
}

// The caller's rounding mode reaches no product and no sum.
TEST(FamilyEdges, TheRoundingModeOfTheHost) {
  Random random(23);
  BackInputs back{Ordinary(random, DType::kFloat16, {40, 77}),
                  Ordinary(random, DType::kFloat16, {10, 77}),
                  Tensor::OfInts(DType::kInt32, {40}, Experts({10, 1, 4}, 40).Ints()),
                  Ordinary(random, DType::kFloat32, {10, 4})};
  const ExpectedPair expected = Reference(back);
  const ExpectedPair expected_grads = ReferenceOfGrads(back);
  for (const Context& context : EveryContext({1, 3})) {
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      BackOutputs outputs = MakeOutputs(back);
      BackGrads grads = MakeGrads(back, {}, Dense);
      std::fesetround(mode);
      const Status forward = Call(back, outputs, context);
      const Status backward = Call(back, grads, context);
      const int after = std::fegetround();
      std::fesetround(FE_TONEAREST);
      EXPECT_EQ(after, mode);
      ASSERT_TRUE(forward.ok() && backward.ok());
      EXPECT_TRUE(Matches(back, outputs, expected)) << Describe(context);
      EXPECT_TRUE(Matches(back, grads, expected_grads)) << Describe(context);
    }
  }
}

}  // namespace
}  // namespace moeperm::test
