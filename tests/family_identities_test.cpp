// SPDX-License-Identifier: Apache-2.0
// Identities of the index form and of the way back with weights, which need no reference: there and
// back is nothing, the gradients are adjoint, two forms of one routing agree, parts make the whole.
#include <gtest/gtest.h>

#include <cmath>

#include "support/contexts.hpp"
#include "support/family_random.hpp"
#include "support/fixtures.hpp"

namespace moeperm::test {
namespace {

using Ints = std::vector<std::int64_t>;

// -3 .. 3: their products and sums below are exact in every dtype.
Tensor Small(Random& random, DType dtype, Ints shape) {
  std::vector<float> values;
  std::int64_t size = 1;
  for (const std::int64_t n : shape) size *= n;
  for (std::int64_t i = 0; i < size; ++i) {
    values.push_back(static_cast<float>(random.Below(7) - 3));
  }
  return Tensor::OfFloats(dtype, std::move(shape), values);
}

// <a, b>; exact, since the values are small integers.
std::int64_t Dot(const Tensor& a, const Tensor& b) {
  const std::vector<float> x = a.Floats();
  const std::vector<float> y = b.Floats();
  EXPECT_EQ(x.size(), y.size());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x[i], std::trunc(x[i]));
    sum += static_cast<std::int64_t>(x[i]) * static_cast<std::int64_t>(y[i]);
  }
  return sum;
}

// Any experts, some slots without one, some twice.
Tensor AnyExperts(Random& random, std::int64_t tokens, std::int64_t top_k) {
  Ints values;
  for (std::int64_t i = 0; i < tokens * top_k; ++i) values.push_back(random.Below(8) - 1);
  return Tensor::OfInts(DType::kInt64, {tokens, top_k}, values);
}

// Every pattern of the 16-bit types that is no NaN, and its like in float32, there and back with
// weights whose products and partial sums are exact. The last two slots weigh nothing.
TEST(FamilyIdentities, ThereAndBackIsNothing) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    Tensor tokens(dtype, {64, 1024});
    for (std::int64_t i = 0; i < 65536; ++i) {
      std::uint64_t bits = static_cast<std::uint64_t>(i) << (dtype == DType::kFloat32 ? 16 : 0);
      const float value = moeperm_reference::Widen(ToType(dtype), static_cast<std::uint32_t>(bits));
      tokens.SetBits(i / 1024, i % 1024, std::isnan(value) ? 0 : bits);
    }
    tokens.Freeze();
    Random random(31);
    Ints experts;
    std::vector<float> weights;
    for (std::int64_t t = 0; t < 64; ++t) {
      for (const float weight : {0.5F, 0.125F, 0.25F, 0.125F, 0.0F, -0.0F}) {
        weights.push_back(weight);
        experts.push_back(random.Below(9));
      }
    }
    TableInputs table{Copy(tokens), Tensor::OfInts(DType::kInt32, {64, 6}, experts)};
    table.num_out_tokens = 64 * 6;
    for (const Context& context : EveryContext({1, 2})) {
      TableOutputs permuted = RunCall(table, context);
      permuted.permuted_tokens.Freeze();
      permuted.sorted_indices.Freeze();
      const BackInputs back{std::move(permuted.permuted_tokens), Copy(tokens),
                            std::move(permuted.sorted_indices),
                            Tensor::OfFloats(DType::kBFloat16, {64, 6}, weights)};
      EXPECT_TRUE(Equals("tokens", RunCall(back, context).tokens, tokens)) << Describe(context);
    }
  }
}

class FamilyAdjoint : public testing::TestWithParam<DType> {};

// <P x, y> == <x, P' y>, of all rows or a part of them, for tokens and probs.
TEST_P(FamilyAdjoint, Permute) {
  Random random(32);
  for (const Context& context : EveryContext({1, 3})) {
    for (const auto& [first_row, rows] :
         {std::pair<std::int64_t, std::int64_t>{0, 200}, {0, 60}, {17, 90}, {100, 150}}) {
      TableInputs table{Small(random, GetParam(), {30, 27}), AnyExperts(random, 30, 5),
                        Small(random, GetParam(), {30, 5})};
      table.num_out_tokens = rows;
      table.first_row = first_row;
      const TableOutputs permuted = RunCall(table, context);
      TableGradInputs grad{Small(random, GetParam(), {rows, 27}), Small(random, GetParam(), {rows}),
                           Copy(permuted.sorted_indices), 30, first_row};
      const TableGrads grads = RunCall(grad, context);
      const std::int64_t tokens = Dot(permuted.permuted_tokens, *grad.permuted_tokens_grad);
      EXPECT_NE(Dot(permuted.permuted_tokens, permuted.permuted_tokens), 0);
      EXPECT_EQ(tokens, Dot(table.tokens, *grads.tokens_grad)) << Describe(context);
      EXPECT_EQ(Dot(*permuted.permuted_probs, *grad.permuted_probs_grad),
                Dot(*table.probs, *grads.probs_grad))
          << Describe(context);
    }
  }
}

// tokens = U(rows, probs) is linear in each: <U(r, p), y> == <r, dU/dr y> == <p, dU/dp y>.
void CheckAdjoint(const BackInputs& back, const Context& context) {
  const BackOutputs outputs = RunCall(back, context);
  const BackGrads grads = RunGrad(back, context);
  const std::int64_t product = Dot(outputs.tokens, back.tokens);
  EXPECT_NE(Dot(outputs.tokens, outputs.tokens), 0);
  EXPECT_EQ(product, Dot(back.rows, *grads.permuted_tokens_grad)) << Describe(context);
  if (back.probs) {
    EXPECT_EQ(product, Dot(*back.probs, *grads.probs_grad)) << Describe(context);
  }
}

TEST_P(FamilyAdjoint, Unpermute) {
  Random random(33);
  for (const Context& context : EveryContext({1, 3})) {
    for (const auto& [first_row, rows] :
         {std::pair<std::int64_t, std::int64_t>{0, 150}, {0, 60}, {17, 90}}) {
      TableInputs table{Small(random, GetParam(), {30, 1}), AnyExperts(random, 30, 5)};
      BackInputs back{Small(random, GetParam(), {rows, 27}), Small(random, GetParam(), {30, 27}),
                      Copy(RunCall(table, context).sorted_indices),
                      Small(random, GetParam(), {30, 5})};
      back.first_row = first_row;
      CheckAdjoint(back, context);
      back.probs.reset();
      CheckAdjoint(back, context);
    }
  }
}

// With the forward of the routing map, both modes. Without probs the way back is the gradient of
// the forward; the weights gathered are the probs it permuted.
TEST_P(FamilyAdjoint, UnpermuteWithRoutingMap) {
  Random random(34);
  for (const bool drop_and_pad : {false, true}) {
    const auto routing = RandomRouting(random, 30, 6, 4);
    ForwardInputs forward{Small(random, GetParam(), {30, 27}),
                          MapTensor(DType::kInt8, 30, 6, routing),
                          Small(random, GetParam(), {30, 6})};
    forward.drop_and_pad = drop_and_pad;
    forward.top_k = 4;
    forward.num_out_tokens = drop_and_pad ? 6 * 12 : 50;  // some are cut off
    for (const Context& context : EveryContext({1, 3})) {
      const ForwardOutputs permuted = RunForward(forward, context);
      BackInputs back{Small(random, GetParam(), {forward.rows(), 27}),
                      Small(random, GetParam(), {30, 27}), Copy(permuted.sorted_indices),
                      Copy(*forward.probs)};
      back.with_map = true;
      back.drop_and_pad = drop_and_pad;
      if (!drop_and_pad) back.routing_map = Copy(forward.routing_map);
      CheckAdjoint(back, context);
      const BackOutputs weighted = RunCall(back, context);
      for (std::int64_t i = 0; i < back.sorted_indices.size(); ++i) {
        const std::int64_t row =
            drop_and_pad ? i : back.sorted_indices.Ints()[static_cast<std::size_t>(i)];
        if (row >= 0) {
          EXPECT_EQ(weighted.gathered_probs->Bits(0, i), permuted.permuted_probs->Bits(0, row));
        }
      }
      back.probs.reset();
      CheckAdjoint(back, context);
      GradInputs grad{.sorted_indices = Copy(permuted.sorted_indices)};
      grad.permuted_tokens_grad = Copy(back.rows);
      grad.num_tokens = 30;
      grad.drop_and_pad = drop_and_pad;
      EXPECT_TRUE(
          Equals("tokens", RunCall(back, context).tokens, *RunGrad(grad, context).tokens_grad));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, FamilyAdjoint,
                         testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16),
                         [](const auto& test) { return std::string(Name(test.param)); });

// A table made of a routing map: token t's k-th expert, the prob of it; -1 and `fill` where it has
// fewer.
TableInputs TableOf(const ForwardInputs& forward) {
  Ints experts;
  Tensor probs(forward.probs->dtype(), {forward.num_tokens(), forward.top_k});
  const RoutingMap map = forward.routing_map.ToRoutingMap();
  for (std::int64_t t = 0; t < map.tokens; ++t) {
    std::int64_t k = 0;
    for (std::int64_t e = 0; e < map.experts; ++e) {
      if (map.bytes[static_cast<std::size_t>(t * map.experts + e)] == 0) continue;
      experts.push_back(e);
      probs.SetBits(t, k++, forward.probs->Bits(t, e));
    }
    for (; k < forward.top_k; ++k) {
      experts.push_back(-1);
      probs.SetBits(t, k, 0);
    }
  }
  probs.Freeze();
  TableInputs table{Copy(forward.tokens),
                    Tensor::OfInts(DType::kInt32, {map.tokens, forward.top_k}, experts),
                    std::move(probs)};
  table.num_experts = map.experts;
  table.num_out_tokens = forward.num_out_tokens;
  return table;
}

TEST(FamilyIdentities, ATableOfAMapIsTheMap) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const std::int64_t rows : {100, 40, 130}) {
      Random random(35);
      ForwardInputs forward{Tensor(dtype, {40, 33}),
                            MapTensor(DType::kBool, 40, 7, RandomRouting(random, 40, 7, 4)),
                            Tensor(DType::kFloat32, {40, 7})};
      FillRandom(random, forward.tokens);
      FillRandom(random, *forward.probs);
      forward.top_k = 5;
      forward.num_out_tokens = rows;
      const TableInputs table = TableOf(forward);
      BackInputs by_map{Tensor(dtype, {rows, 33}), Tensor(dtype, {40, 33}),
                        Copy(RunForward(forward).sorted_indices), Copy(*forward.probs)};
      FillOrdinary(random, by_map.rows);
      FillOrdinary(random, by_map.tokens);
      BackInputs by_table{Copy(by_map.rows), Copy(by_map.tokens),
                          Copy(RunCall(table).sorted_indices), Copy(*table.probs)};
      by_map.with_map = true;
      by_map.routing_map = Copy(forward.routing_map);
      for (const Context& context : EveryContext({1, 3})) {
        SCOPED_TRACE(Describe(context));
        const ForwardOutputs a = RunForward(forward, context);
        const TableOutputs b = RunCall(table, context);
        EXPECT_TRUE(Equals("permuted_tokens", b.permuted_tokens, a.permuted_tokens));
        EXPECT_TRUE(Equals("permuted_probs", *b.permuted_probs, *a.permuted_probs));
        EXPECT_EQ(b.tokens_per_expert->Ints(), a.tokens_per_expert.Ints());
        Ints cut = b.sorted_indices.Ints();
        for (std::int64_t& row : cut) row = row < rows ? row : -1;  // the table keeps the number
        EXPECT_EQ(cut, a.sorted_indices.Ints());
        EXPECT_TRUE(
            Equals("tokens", RunCall(by_table, context).tokens, RunCall(by_map, context).tokens));
        const BackGrads map_grads = RunGrad(by_map, context);
        const BackGrads table_grads = RunGrad(by_table, context);
        EXPECT_TRUE(Equals("permuted_tokens_grad", *table_grads.permuted_tokens_grad,
                           *map_grads.permuted_tokens_grad));
        const Ints experts = table.indices.Ints();
        for (std::int64_t slot = 0; slot < 40 * 5; ++slot) {
          const std::int64_t expert = experts[static_cast<std::size_t>(slot)];
          EXPECT_EQ(table_grads.probs_grad->Bits(slot / 5, slot % 5),
                    expert < 0 ? 0 : map_grads.probs_grad->Bits(slot / 5, expert));
        }
      }
    }
  }
}

// Two processes that hold the rows [0, 61) and [61, 150): their parts, put together, are the whole.
TEST(FamilyIdentities, PartsMakeTheWhole) {
  constexpr std::int64_t kCut = 61;
  constexpr std::int64_t kRows = 150;
  Random random(36);
  TableInputs table{Small(random, DType::kBFloat16, {30, 35}), AnyExperts(random, 30, 5),
                    Small(random, DType::kFloat32, {30, 5})};
  table.num_out_tokens = kRows;
  const TableOutputs whole = RunCall(table);
  BackInputs back{Copy(whole.permuted_tokens), Small(random, DType::kBFloat16, {30, 35}),
                  Copy(whole.sorted_indices), Copy(*table.probs)};
  const std::vector<float> all_tokens = RunCall(back).tokens.Floats();
  const BackGrads all_grads = RunGrad(back);
  std::vector<float> tokens(all_tokens.size(), 0);
  std::vector<float> probs_grad(30 * 5, 0);
  for (const auto& [first_row, rows] :
       {std::pair<std::int64_t, std::int64_t>{0, kCut}, {kCut, kRows - kCut}}) {
    table.first_row = first_row;
    table.num_out_tokens = rows;
    TableOutputs part = RunCall(table);
    EXPECT_EQ(part.sorted_indices.Ints(), whole.sorted_indices.Ints());
    for (std::int64_t row = 0; row < rows; ++row) {
      EXPECT_EQ(part.permuted_probs->Bits(0, row), whole.permuted_probs->Bits(0, first_row + row));
    }
    BackInputs part_back{Copy(part.permuted_tokens), Copy(back.tokens), Copy(part.sorted_indices),
                         Copy(*table.probs), first_row};
    const std::vector<float> part_tokens = RunCall(part_back).tokens.Floats();
    const BackGrads part_grads = RunGrad(part_back);
    const std::vector<float> part_probs = part_grads.probs_grad->Floats();
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] += part_tokens[i];
    for (std::size_t i = 0; i < probs_grad.size(); ++i) probs_grad[i] += part_probs[i];
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t h = 0; h < 35; ++h) {
        EXPECT_EQ(part.permuted_tokens.Bits(row, h),
                  whole.permuted_tokens.Bits(first_row + row, h));
        EXPECT_EQ(part_grads.permuted_tokens_grad->Bits(row, h),
                  all_grads.permuted_tokens_grad->Bits(first_row + row, h));
      }
    }
  }
  EXPECT_EQ(tokens, all_tokens);
  EXPECT_EQ(probs_grad, all_grads.probs_grad->Floats());
}

}  // namespace
}  // namespace moeperm::test
