// SPDX-License-Identifier: Apache-2.0
// Probes of the index form and of the way back with weights: small inputs with their right values,
// each from a fault that people met elsewhere. Outputs hold 0xFF bytes before each call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/contexts.hpp"
#include "support/family.hpp"
#include "support/fixtures.hpp"

namespace moeperm::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<std::int64_t>;

TableInputs Table(Ints shape, const Ints& experts, std::int64_t num_experts, std::int64_t rows,
                  Layout layout = Layout::kDense) {
  Tensor tokens = Counting(DType::kFloat32, {shape[0], 1});  // 0, 1, 2, ...
  TableInputs inputs{std::move(tokens),
                     Tensor::OfInts(DType::kInt32, std::move(shape), experts, layout)};
  inputs.num_experts = num_experts;
  inputs.num_out_tokens = rows;
  return inputs;
}

struct Expected {
  Floats row_tokens;
  Ints sorted_indices;
  Ints counts;
  Floats permuted_grad;
  Floats tokens_grad;
};

// Forward, then the gradient of literal rows, everywhere.
void Check(const TableInputs& inputs, const Expected& expected) {
  for (const Context& context : EveryContext()) {
    SCOPED_TRACE(Describe(context));
    const TableOutputs outputs = RunCall(inputs, context);
    EXPECT_EQ(outputs.permuted_tokens.Floats(), expected.row_tokens);
    EXPECT_EQ(outputs.sorted_indices.Ints(), expected.sorted_indices);
    EXPECT_EQ(outputs.tokens_per_expert->Ints(), expected.counts);
    TableGradInputs grad{.sorted_indices = Copy(outputs.sorted_indices)};
    grad.permuted_tokens_grad =
        Tensor::OfFloats(DType::kFloat32, {inputs.num_out_tokens, 1}, expected.permuted_grad);
    grad.num_tokens = inputs.tokens.rows();
    EXPECT_EQ(RunCall(grad, context).tokens_grad->Floats(), expected.tokens_grad);
  }
}

// The sum of these rows, one token, weights of one (none: no probs).
float SumOf(DType dtype, const Floats& rows, bool weighted, bool drop_and_pad,
            const Context& context) {
  const auto n = static_cast<std::int64_t>(rows.size());
  Ints indices(rows.size(), 0);
  for (std::int64_t i = 0; i < n && !drop_and_pad; ++i) indices[static_cast<std::size_t>(i)] = i;
  BackInputs back{Tensor::OfFloats(dtype, {n, 1}, rows), Tensor::OfFloats(dtype, {1, 1}, {1}),
                  Tensor::OfInts(DType::kInt32, {n}, indices)};
  if (weighted) back.probs = Tensor::OfFloats(DType::kFloat32, {1, n}, Floats(rows.size(), 1));
  back.with_map = drop_and_pad;
  back.drop_and_pad = drop_and_pad;
  return RunCall(back, context).tokens.Floats()[0];
}

void ExpectSum(DType dtype, const Floats& rows, float want) {
  for (const Context& context : EveryContext()) {
    for (const bool weighted : {false, true}) {
      for (const bool drop_and_pad : {false, true}) {
        EXPECT_EQ(SumOf(dtype, rows, weighted, drop_and_pad, context), want) << Describe(context);
      }
    }
  }
}

TEST(FamilyProbes, P014_SlotsWithoutAnExpert) {
  TableInputs inputs = Table({3, 2}, {0, -1, -1, 1, 1, 0}, 2, 4);
  inputs.tokens = Tensor::OfFloats(DType::kFloat32, {3, 1}, {1, 2, 3});
  Check(inputs, {{1, 3, 2, 3}, {0, -1, -1, 2, 3, 1}, {2, 2}, {1, 2, 4, 8}, {1, 4, 10}});
}

TEST(FamilyProbes, P017_ATokenWithoutExperts) {
  const TableInputs inputs = Table({3, 2}, {0, 1, -1, -1, 1, 0}, 2, 4);
  Check(inputs, {{0, 2, 0, 2}, {0, 2, -1, -1, 3, 1}, {2, 2}, {1, 2, 4, 8}, {5, 0, 10}});
  for (const Context& context : EveryContext()) {
    const BackInputs back{Tensor::OfFloats(DType::kFloat32, {4, 1}, {1, 2, 4, 8}),
                          Counting(DType::kFloat32, {3, 1}),
                          Tensor::OfInts(DType::kInt64, {6}, {0, 2, -1, -1, 3, 1}),
                          Tensor::OfFloats(DType::kFloat32, {3, 2}, Floats(6, 2))};
    EXPECT_EQ(RunCall(back, context).tokens.Floats(), (Floats{10, 0, 20}));
  }
}

// A process that holds the rows of expert 0 alone, of 3 and of 257 tokens.
TEST(FamilyProbes, P019_ALocalRangeOfRows) {
  for (const std::int64_t tokens : {3, 257}) {
    Ints experts;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const Ints of_token = t % 3 == 0 ? Ints{0, 2} : t % 3 == 1 ? Ints{0, 1} : Ints{1, 2};
      experts.insert(experts.end(), of_token.begin(), of_token.end());
    }
    const std::int64_t local = (tokens + 2) / 3 + (tokens + 1) / 3;
    const TableInputs inputs = Table({tokens, 2}, experts, 3, local);
    for (const Context& context : EveryContext()) {
      const TableOutputs outputs = RunCall(inputs, context);
      const BackInputs back{Copy(outputs.permuted_tokens), Counting(DType::kFloat32, {tokens, 1}),
                            Copy(outputs.sorted_indices)};
      const Floats got = RunCall(back, context).tokens.Floats();
      for (std::int64_t t = 0; t < tokens; ++t) {
        EXPECT_EQ(got[static_cast<std::size_t>(t)], t % 3 == 2 ? 0 : static_cast<float>(t));
      }
    }
  }
}

// -1 drops a slot; an expert that there is not is refused where the number of experts is given.
TEST(FamilyProbes, P020_TwoKindsOfBadExperts) {
  Check(Table({2, 2}, {0, -7, -1, 1}, 2, 2), {{0, 1}, {0, -1, -1, 1}, {1, 1}, {1, 2}, {1, 2}});
  const TableInputs inputs = Table({2, 2}, {0, 2, -1, 1}, 2, 2);
  TableOutputs outputs = MakeOutputs(inputs);
  const Status status = Permute(ArgsOf(inputs, outputs));
  EXPECT_EQ(status.code(), Code::kIndexOutOfRange);
  EXPECT_THAT(status.message(), testing::HasSubstr("indices[1] = 2 but num_experts = 2"));
}

TEST(FamilyProbes, P022_MinusOneInTheWayBack) {
  for (const Context& context : EveryContext()) {
    const BackInputs back{Tensor::OfFloats(DType::kFloat32, {2, 1}, {5, 7}),
                          Counting(DType::kFloat32, {2, 1}),
                          Tensor::OfInts(DType::kInt32, {4}, {0, -1, 1, -1}),
                          Tensor::OfFloats(DType::kFloat32, {2, 2}, {.5, 9, 2, 9})};
    EXPECT_EQ(RunCall(back, context).tokens.Floats(), (Floats{2.5, 14}));
  }
}

TEST(FamilyProbes, P046_FewerRowsThanSlots) {
  Check(Table({2, 2}, {1, -1, 0, 1}, 2, 4),
        {{1, 0, 1, 0}, {1, -1, 0, 2}, {1, 2}, {1, 2, 4, 8}, {2, 5}});
}

TEST(FamilyProbes, P047_SortedIndicesAreSlotToRow) {
  const TableOutputs outputs = RunCall(Table({3, 2}, {0, 2, 0, 1, 1, 2}, 3, 6));
  EXPECT_EQ(outputs.sorted_indices.Ints(), (Ints{0, 4, 1, 2, 3, 5}));
}

TEST(FamilyProbes, P050_NoRowsAtAll) {
  for (const Context& context : EveryContext()) {
    const TableOutputs outputs = RunCall(Table({3, 2}, Ints(6, -1), 2, 0), context);
    EXPECT_EQ(outputs.sorted_indices.Ints(), Ints(6, -1));
    for (const bool with_map : {false, true}) {
      BackInputs back{Tensor::OfFloats(DType::kFloat32, {0, 2}, {}),
                      Counting(DType::kFloat32, {3, 2}), Copy(outputs.sorted_indices),
                      Tensor::OfFloats(DType::kFloat32, {3, 2}, Floats(6, 1))};
      back.with_map = with_map;
      if (with_map) back.routing_map = Tensor::OfInts(DType::kBool, {3, 2}, Ints(6, 1));
      EXPECT_EQ(RunCall(back, context).tokens.Floats(), Floats(6, 0));
      const BackGrads grads = RunGrad(back, context);
      EXPECT_EQ(grads.permuted_tokens_grad->size(), 0);
      EXPECT_EQ(grads.probs_grad->Floats(), Floats(6, 0));
    }
  }
}

TEST(FamilyProbes, P055_OneTokenWithoutExperts) {
  Check(Table({1, 2}, {-1, -1}, 2, 0), {{}, {-1, -1}, {0, 0}, {}, {0}});
}

TEST(FamilyProbes, P058_OneSlotAToken) {
  Check(Table({2, 1}, {1, 0}, 2, 2), {{1, 0}, {1, 0}, {1, 1}, {1, 2}, {2, 1}});
  Check(Table({2}, {1, 0}, 2, 2), {{1, 0}, {1, 0}, {1, 1}, {1, 2}, {2, 1}});
}

TEST(FamilyProbes, P059_P061_P062_SumsAreKeptInFloat32) {
  ExpectSum(DType::kBFloat16, {256, 1, 1}, 258);
  ExpectSum(DType::kBFloat16, {256, 1, -256}, 1);
  ExpectSum(DType::kFloat16, {2048, 1, 1}, 2050);
  const float step = 0x1p-8F;
  ExpectSum(DType::kBFloat16, {1, step, step, step, step, step, step, step}, 1.03125F);
}

TEST(FamilyProbes, P064_OrderOfASum) {
  ExpectSum(DType::kFloat32, {1e8F, 1, -1e8F}, 0);
  ExpectSum(DType::kFloat32, {1e8F, -1e8F, 1}, 1);
}

TEST(FamilyProbes, P065_ManyRowsOfOneToken) {
  Floats rows(64, 1);
  rows[0] = 256;
  ExpectSum(DType::kBFloat16, rows, 320);
}

TEST(FamilyProbes, P074_RowsAndPairsOfNoSlot) {
  for (const Context& context : EveryContext()) {
    BackInputs back{Tensor::OfFloats(DType::kFloat16, {4, 1}, {1, 2, 3, 4}),
                    Tensor::OfFloats(DType::kFloat16, {2, 1}, {5, 7}),
                    Tensor::OfInts(DType::kInt32, {4}, {3, -1, 1, 9}),
                    Tensor::OfFloats(DType::kFloat32, {2, 2}, Floats(4, 2))};
    const BackGrads grads = RunGrad(back, context);
    EXPECT_EQ(grads.permuted_tokens_grad->Floats(), (Floats{0, 14, 0, 10}));
    EXPECT_EQ(grads.probs_grad->Floats(), (Floats{20, 0, 14, 0}));
  }
}

TEST(FamilyProbes, P076_P079_AnExpertTwice) {
  TableInputs inputs = Table({2, 2}, {1, 1, 0, 1}, 2, 4);
  Check(inputs, {{1, 0, 0, 1}, {1, 2, 0, 3}, {1, 3}, {1, 2, 4, 8}, {6, 9}});
  TableGradInputs grad{.sorted_indices = Tensor::OfInts(DType::kInt32, {4}, {1, 2, 0, 3})};
  grad.permuted_probs_grad = Tensor::OfFloats(DType::kBFloat16, {4}, {1, 2, 3, 4});
  grad.num_tokens = 2;
  EXPECT_EQ(RunCall(grad).probs_grad->Floats(), (Floats{2, 3, 1, 4}));
}

TEST(FamilyProbes, P080_ManySlotsOfOneExpert) {
  TableInputs inputs = Table({1, 4}, {7, 7, 7, 0}, 8, 4);
  inputs.tokens = Tensor::OfFloats(DType::kFloat32, {1, 1}, {3});
  Check(inputs, {{3, 3, 3, 3}, {1, 2, 3, 0}, {1, 0, 0, 0, 0, 0, 0, 3}, {1, 2, 4, 8}, {15}});
}

TEST(FamilyProbes, P082_AViewOfAWiderTable) {
  const std::int32_t wide[] = {0, 1, 9, 9, 1, 0, 9, 9};
  const float tokens[] = {1, 2};
  float permuted[4] = {};
  std::int32_t sorted_indices[4] = {};
  std::int64_t counts[2] = {};
  PermuteArgs args;
  args.tokens = ConstTensorView(tokens, {2, 1});
  args.indices = ConstTensorView(wide, {2, 2}, {4, 1});
  args.num_experts = 2;
  args.num_out_tokens = 4;
  args.permuted_tokens = TensorView(permuted, {4, 1});
  args.sorted_indices = TensorView(sorted_indices, {4});
  args.tokens_per_expert = TensorView(counts, {2});
  ASSERT_EQ(Permute(args).message(), "");
  EXPECT_THAT(permuted, testing::ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(sorted_indices, testing::ElementsAre(0, 2, 3, 1));
  EXPECT_THAT(counts, testing::ElementsAre(2, 2));
}

TEST(FamilyProbes, P083_TransposedTablesOfAnyWidth) {
  for (std::int64_t top_k = 1; top_k <= 5; ++top_k) {
    Ints experts;
    for (std::int64_t i = 0; i < 7 * top_k; ++i) experts.push_back(i * 5 % 3);
    const TableOutputs dense = RunCall(Table({7, top_k}, experts, 3, 7 * top_k));
    const TableOutputs transposed =
        RunCall(Table({7, top_k}, experts, 3, 7 * top_k, Layout::kTransposed));
    EXPECT_EQ(dense.sorted_indices.Ints(), transposed.sorted_indices.Ints());
    EXPECT_EQ(dense.permuted_tokens.Floats(), transposed.permuted_tokens.Floats());
  }
}

// bfloat16 tokens with float32 probs: neither is rounded to the other.
TEST(FamilyProbes, P088_MixedDTypes) {
  for (const Context& context : EveryContext()) {
    const BackInputs back{Tensor::OfFloats(DType::kBFloat16, {2, 1}, {3, 1}),
                          Tensor::OfFloats(DType::kBFloat16, {1, 1}, {1}),
                          Tensor::OfInts(DType::kInt32, {2}, {0, 1}),
                          Tensor::OfFloats(DType::kFloat32, {1, 2}, {1.0F / 3, -1})};
    // 1 - 1; with a third in bfloat16 it would be 0.001953125.
    EXPECT_EQ(RunCall(back, context).tokens.Floats()[0], 0);
    TableInputs table{Tensor::OfFloats(DType::kBFloat16, {1, 1}, {3}),
                      Tensor::OfInts(DType::kInt32, {1, 1}, {0}),
                      Tensor::OfFloats(DType::kFloat32, {1, 1}, {1.0F / 3})};
    table.num_out_tokens = 1;
    EXPECT_EQ(RunCall(table, context).permuted_probs->Floats()[0], 0.33333334F);
    EXPECT_EQ(RunGrad(back, context).probs_grad->dtype(), DType::kFloat32);
  }
}

TEST(FamilyProbes, P098_P013_ManyExperts) {
  for (const std::int64_t experts : {301, 1025, 2048, 4097}) {
    Ints counts(static_cast<std::size_t>(experts), 0);
    counts.back() = 1;
    Check(Table({1, 1}, {experts - 1}, experts, 1), {{0}, {0}, counts, {5}, {5}});
  }
}

TEST(FamilyProbes, P103_AdjointOfTheProbs) {
  TableInputs table{Counting(DType::kFloat32, {3, 2}),
                    Tensor::OfInts(DType::kInt32, {3, 2}, {0, 2, 0, 1, 1, 2}),
                    Tensor::OfFloats(DType::kFloat32, {3, 2}, {.5, .25, .75, .125, .375, .625})};
  table.num_out_tokens = 6;
  const TableOutputs outputs = RunCall(table);
  EXPECT_EQ(outputs.permuted_probs->Floats(), (Floats{.5, .75, .125, .375, .25, .625}));
  TableGradInputs grad{.sorted_indices = Copy(outputs.sorted_indices)};
  grad.permuted_probs_grad = Tensor::OfFloats(DType::kFloat32, {6}, {1, 2, 3, 4, 5, 6});
  grad.num_tokens = 3;
  const Floats got = RunCall(grad).probs_grad->Floats();
  EXPECT_EQ(got, (Floats{1, 5, 2, 3, 4, 6}));
  const Floats probs = table.probs->Floats();
  float product = 0;
  for (std::size_t i = 0; i < got.size(); ++i) product += got[i] * probs[i];
  EXPECT_EQ(product, 8.875);
}

TEST(FamilyProbes, P110_FourteenSlots) {
  Ints experts;
  for (std::int64_t i = 0; i < 28; ++i) experts.push_back(i % 14);
  const TableOutputs outputs = RunCall(Table({2, 14}, experts, 16, 28));
  Ints want;
  for (std::int64_t i = 0; i < 28; ++i) want.push_back(i % 14 * 2 + i / 14);
  EXPECT_EQ(outputs.sorted_indices.Ints(), want);
}

}  // namespace
}  // namespace moeperm::test
