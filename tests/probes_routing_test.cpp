// SPDX-License-Identifier: Apache-2.0
// Probes of where rows go: routing, counts, slots, capacity. The numbers are those of the faults
// they were met with; index-map inputs are given as masks where a mask can say the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/random.hpp"

namespace moeperm::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<std::int64_t>;

ForwardInputs OneRoute(std::int64_t experts, std::int64_t expert) {
  Literal literal{
      .num_experts = experts, .map = Ints(static_cast<std::size_t>(experts), 0), .tokens = {7}};
  literal.map[static_cast<std::size_t>(expert)] = 1;
  return NotPadded(literal);
}

Ints RowTokens(const ForwardInputs& inputs) {
  RowMap row_map;
  const Status status =
      RowMap::FromRoutingMap(inputs.routing_map.in(), RowMapOptionsOf(inputs), &row_map);
  EXPECT_TRUE(status.ok()) << status.message();
  return {row_map.row_tokens().begin(), row_map.row_tokens().end()};
}

TEST(Probes, P013_ExpertNumbersAreNotNarrowed) {
  const ForwardInputs inputs = OneRoute(301, 300);
  const Ints counts = RunForward(inputs).tokens_per_expert.Ints();
  EXPECT_EQ(counts[300], 1);
  EXPECT_EQ(counts[44], 0);
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 0), 300);
}

TEST(Probes, P014_SlotsWithoutARoute) {
  const ForwardInputs inputs =
      NotPadded({.num_experts = 2, .map = {1, 0, 0, 1, 1, 1}, .tokens = {1, 2, 3}});
  const ForwardOutputs outputs = RunForward(inputs);
  EXPECT_EQ(RowTokens(inputs), (Ints{0, 2, 1, 2}));
  EXPECT_EQ(outputs.permuted_tokens.Floats(), (Floats{1, 3, 2, 3}));
  EXPECT_EQ(outputs.sorted_indices.Ints(), (Ints{0, -1, 2, -1, 1, 3}));
  EXPECT_EQ(RunGrad(GradOf(inputs, outputs, {1, 2, 4, 8})).tokens_grad->Floats(),
            (Floats{1, 4, 10}));

  // The index map of the fault has its -1 in front of a route.
  GradInputs grad = GradOf(inputs, outputs, {1, 2, 4, 8});
  grad.sorted_indices = Tensor::OfInts(DType::kInt32, {6}, {0, -1, -1, 2, 3, 1});
  EXPECT_EQ(RunGrad(grad).tokens_grad->Floats(), (Floats{1, 4, 10}));
}

TEST(Probes, P016_RowNumberPastTheEnd) {
  const ForwardInputs f1 = NotPadded(F1());
  GradInputs inputs = GradOf(f1, RunForward(f1), kF1TokensGrad);
  inputs.sorted_indices.SetBits(0, 1, 6);
  inputs.sorted_indices.Freeze();
  for (const Context& context : EveryContext()) {
    GradOutputs outputs = MakeOutputs(inputs);
    const Status status = PermuteWithRoutingMapGrad(ArgsOf(inputs, outputs), context);
    EXPECT_EQ(status.code(), Code::kIndexOutOfRange);
    EXPECT_THAT(status.message(), testing::HasSubstr("sorted_indices[1] = 6"));
    EXPECT_THAT(status.message(), testing::HasSubstr(" 6 permuted rows"));
    EXPECT_TRUE(outputs.tokens_grad->GuardsIntact("tokens_grad"));
  }
  inputs.skip_rows_out_of_range = true;
  for (const Context& context : EveryContext()) {
    EXPECT_EQ(RunGrad(inputs, context).tokens_grad->Floats(), (Floats{1, -1, 6, -6, 40, -40}));
  }
}

TEST(Probes, P017_ATokenWithoutRoutesBetweenOthers) {
  const ForwardInputs inputs =
      NotPadded({.num_experts = 2, .map = {1, 1, 0, 0, 1, 1}, .tokens = {1, 2, 3}});
  ForwardOutputs outputs = MakeOutputs(inputs);
  for (std::int64_t i = 0; i < 6; ++i) {
    outputs.sorted_indices.SetBits(0, i, 0x7FFFFFFF);  // what the fault left in place
  }
  ASSERT_TRUE(PermuteWithRoutingMap(ArgsOf(inputs, outputs)).ok());
  EXPECT_EQ(outputs.sorted_indices.Ints(), (Ints{0, 2, -1, -1, 1, 3}));
  EXPECT_EQ(RowTokens(inputs), (Ints{0, 2, 0, 2}));
  EXPECT_EQ(RunGrad(GradOf(inputs, outputs, {1, 2, 4, 8})).tokens_grad->Floats(),
            (Floats{5, 0, 10}));
}

TEST(Probes, P019_OnlySomeTokensHaveRoutes) {
  for (const std::int64_t tokens : {3, 257}) {
    Literal literal{.num_experts = 1};
    Floats grads;
    Floats expected;
    for (std::int64_t token = 0; token < tokens; ++token) {
      literal.map.push_back(token % 3 == 2 ? 0 : 1);
      literal.tokens.push_back(static_cast<float>(token));
      expected.push_back(token % 3 == 2 ? 0.0F : static_cast<float>(token + 5));
      if (token % 3 != 2) {
        grads.push_back(static_cast<float>(token + 5));
      }
    }
    EXPECT_EQ(GradAfterForward(NotPadded(literal), grads).tokens_grad->Floats(), expected);
  }
}

TEST(Probes, P026_FewerRowsThanRoutes) {
  ForwardInputs inputs = NotPadded(F1());
  inputs.num_out_tokens = 4;
  for (const Context& context : EveryContext()) {
    const ForwardOutputs outputs = RunForward(inputs, context);
    EXPECT_EQ(outputs.permuted_tokens.Floats(), (Floats{1, 10, 2, 20, 2, 20, 3, 30}));
    EXPECT_EQ(outputs.permuted_probs->Floats(), (Floats{.5, .75, .125, .375}));
    EXPECT_TRUE(outputs.permuted_tokens.GuardsIntact("permuted_tokens"));
    EXPECT_EQ(outputs.sorted_indices.Ints(), (Ints{0, -1, 1, 2, 3, -1}));
    EXPECT_EQ(outputs.tokens_per_expert.Ints(), (Ints{2, 2, 2}));  // the map's, not the rows'
    EXPECT_EQ(outputs.expert_offsets.Ints(), (Ints{0, 2, 4, 4}));
    EXPECT_EQ(RowTokens(inputs), (Ints{0, 1, 1, 2}));
    const GradOutputs grads =
        RunGrad(GradOf(inputs, outputs, {1, -1, 2, -2, 4, -4, 8, -8}, {1, 2, 3, 4}), context);
    EXPECT_EQ(grads.tokens_grad->Floats(), (Floats{1, -1, 6, -6, 8, -8}));
    EXPECT_EQ(grads.probs_grad->Floats(), (Floats{1, 0, 0, 2, 3, 0, 0, 4, 0}));
  }
}

TEST(Probes, P035_CapacityIsKept) {
  Literal literal{.num_experts = 4, .map = Ints(20, 0), .tokens = {1, 2, 3, 4, 5}};
  literal.probs = Floats(20, 1);
  for (std::size_t token = 0; token < 5; ++token) {
    literal.map[token * 4] = 1;
  }
  const ForwardInputs inputs = DropAndPad(literal, 4);
  const ForwardOutputs outputs = RunForward(inputs);
  const Ints indices = outputs.sorted_indices.Ints();
  EXPECT_EQ(Ints(indices.begin(), indices.begin() + 4), (Ints{0, 1, 2, 3}));
  EXPECT_EQ(outputs.tokens_per_expert.Ints(), (Ints{5, 0, 0, 0}));
  const GradOutputs grads = RunGrad(GradOf(inputs, outputs, Floats(16, 1), Floats(16, 1)));
  EXPECT_EQ(grads.tokens_grad->Floats(), (Floats{4, 4, 4, 4, 0}));
  Floats probs(16, 1);
  probs.resize(20, 0);
  EXPECT_EQ(grads.probs_grad->Floats(), probs);
}

TEST(Probes, P037_DroppingWithEnoughCapacityIsNotDropping) {
  const ForwardInputs padded = DropAndPad(F1(), 2);
  const ForwardInputs plain = NotPadded(F1());
  const ForwardOutputs outputs = RunForward(padded);
  EXPECT_TRUE(Equals("permuted_tokens", outputs.permuted_tokens, Reference(plain).tokens));
  EXPECT_EQ(outputs.sorted_indices.Ints(), (Ints{0, 1, 1, 2, 0, 2}));
  const GradOutputs grads = RunGrad(GradOf(padded, outputs, kF1TokensGrad, kF1ProbsGrad));
  EXPECT_EQ(grads.tokens_grad->Floats(), (Floats{17, -17, 6, -6, 40, -40}));
  EXPECT_EQ(grads.probs_grad->Floats(), (Floats{1, 0, 5, 2, 3, 0, 0, 4, 6}));
}

TEST(Probes, P038_SkewedLoadWithoutDropping) {
  Literal literal{.num_experts = 8, .map = Ints(64 * 8, 0)};
  for (std::size_t token = 0; token < 64; ++token) {
    literal.map[token * 8 + 3] = 1;
    literal.tokens.push_back(static_cast<float>(token));
  }
  const ForwardInputs inputs = NotPadded(literal);
  ASSERT_EQ(inputs.rows(), 64);
  const ForwardOutputs outputs = RunForward(inputs);
  EXPECT_EQ(outputs.permuted_tokens.Floats(), literal.tokens);
  EXPECT_EQ(outputs.tokens_per_expert.Ints(), (Ints{0, 0, 0, 64, 0, 0, 0, 0}));
}

TEST(Probes, P040_RealLoadAndRowsOfAnExpert) {
  const ForwardOutputs outputs = RunForward(DropAndPad(F4(), 2));
  EXPECT_EQ(outputs.tokens_per_expert.Ints(), (Ints{3, 1}));
  EXPECT_EQ(outputs.expert_offsets.Ints(), (Ints{0, 2, 4}));
}

TEST(Probes, P046_MoreRowsThanRoutes) {
  ForwardInputs inputs =
      NotPadded({.num_experts = 2, .map = {0, 1, 1, 1}, .tokens = {5, 6}, .probs = {.5, 1, 2, 4}});
  ASSERT_EQ(inputs.num_out_tokens, 3);
  EXPECT_EQ(RowTokens(inputs), (Ints{1, 0, 1}));
  inputs.num_out_tokens = 4;
  for (const Context& context : EveryContext()) {
    const ForwardOutputs outputs = RunForward(inputs, context);
    EXPECT_TRUE(Equals("permuted_tokens", outputs.permuted_tokens,
                       Tensor::OfFloats(DType::kFloat32, {4, 1}, {6, 5, 6, 0})));
    EXPECT_TRUE(Equals("permuted_probs", *outputs.permuted_probs,
                       Tensor::OfFloats(DType::kFloat32, {4}, {2, 1, 4, 0})));
    EXPECT_EQ(outputs.tokens_per_expert.Ints(), (Ints{1, 2}));
    EXPECT_EQ(outputs.expert_offsets.Ints(), (Ints{0, 1, 3}));
    EXPECT_EQ(outputs.sorted_indices.Ints(), (Ints{1, -1, 0, 2}));
  }
  EXPECT_EQ(RowTokens(inputs), (Ints{1, 0, 1, -1}));
}

// Row of a slot, slot of a row and token of a row are three different lists on F1. The operator
// returns the first; the row map has the first and the third.
TEST(Probes, P047_WhichIndexIsReturned) {
  const ForwardInputs inputs = NotPadded(F1());
  const Ints row_of_slot = RunForward(inputs).sorted_indices.Ints();
  EXPECT_EQ(row_of_slot, (Ints{0, 4, 1, 2, 3, 5}));
  EXPECT_NE(row_of_slot, (Ints{0, 2, 3, 4, 1, 5}));
  EXPECT_EQ(RowTokens(inputs), (Ints{0, 1, 1, 2, 0, 2}));
}

TEST(Probes, P056_EmptyExpertsHaveNoRows) {
  const ForwardOutputs outputs = RunForward(NotPadded(F3()));
  EXPECT_EQ(outputs.expert_offsets.Ints(), (Ints{0, 0, 2, 2, 2}));
}

TEST(Probes, P058_TwoRows) {
  const ForwardInputs inputs = NotPadded({.num_experts = 2, .map = {0, 1, 1, 0}, .tokens = {1, 2}});
  const ForwardOutputs outputs = RunForward(inputs);
  EXPECT_EQ(RowTokens(inputs), (Ints{1, 0}));
  EXPECT_EQ(outputs.sorted_indices.Ints(), (Ints{1, 0}));
  EXPECT_EQ(RunGrad(GradOf(inputs, outputs, {1, 2})).tokens_grad->Floats(), (Floats{2, 1}));
}

// Five runs of one routing: the same tokens of rows, ascending inside each expert.
void CheckOrder(std::int64_t tokens, std::int64_t experts, std::int64_t top_k, int runs) {
  Random random(67);
  const ForwardInputs inputs{
      Counting(DType::kFloat32, {tokens, 1}),
      MapTensor(DType::kInt8, tokens, experts, RandomTopK(random, tokens, experts, top_k)),
      std::nullopt, tokens * top_k, top_k};
  const Ints first = RowTokens(inputs);
  const Ints offsets = RunForward(inputs).expert_offsets.Ints();
  ASSERT_EQ(static_cast<std::int64_t>(first.size()), tokens * top_k);
  for (std::size_t expert = 0; expert + 1 < offsets.size(); ++expert) {
    EXPECT_TRUE(std::is_sorted(first.begin() + offsets[expert], first.begin() + offsets[expert + 1],
                               std::less_equal<>()))  // no token twice
        << "expert " << expert;
  }
  const Context threads = ContextOf(AvailableIsas().front(), 7);
  for (int run = 0; run < runs; ++run) {
    RowMap row_map;
    ASSERT_TRUE(RowMap::FromRoutingMap(inputs.routing_map.in(), RowMapOptionsOf(inputs), &row_map,
                                       run % 2 == 0 ? threads : Context::Default())
                    .ok());
    ASSERT_TRUE(std::equal(first.begin(), first.end(), row_map.row_tokens().begin()));
  }
}

TEST(Probes, P067_RowOrderInsideAnExpert) { CheckOrder(2048, 16, 4, 5); }

TEST(Probes, P068_RowOrderInsideAnExpertSmallAndLarge) {
  CheckOrder(4097, 128, 16, 100);
  CheckOrder(128, 32, 2, 100);
}

TEST(Probes, P095_ExpertsThatAreNoPowerOfTwo) {
  const ForwardInputs inputs = NotPadded({.num_experts = 5,
                                          .map = {1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0},
                                          .tokens = {1, 2, 3}});
  const ForwardOutputs outputs = RunForward(inputs);
  EXPECT_EQ(RowTokens(inputs), (Ints{0, 2, 0, 1}));
  EXPECT_EQ(outputs.tokens_per_expert.Ints(), (Ints{1, 0, 0, 1, 2}));
  EXPECT_EQ(outputs.sorted_indices.Ints(), (Ints{0, 2, 3, -1, 1, -1}));
}

TEST(Probes, P097_RoutesFarApart) {
  Literal literal{.num_experts = 513, .map = Ints(513, 0), .tokens = {9}};
  literal.map.front() = 1;
  literal.map.back() = 1;
  const ForwardInputs inputs = NotPadded(literal);
  const ForwardOutputs outputs = RunForward(inputs);
  EXPECT_EQ(outputs.permuted_tokens.Floats(), (Floats{9, 9}));
  Ints counts(513, 0);
  counts.front() = 1;
  counts.back() = 1;
  EXPECT_EQ(outputs.tokens_per_expert.Ints(), counts);
}

TEST(Probes, P098_ManyExperts) {
  for (const std::int64_t experts : {1025, 2048, 4097}) {
    const ForwardInputs inputs = OneRoute(experts, experts - 1);
    for (const Context& context : EveryContext({1, 7})) {
      const ForwardOutputs outputs = RunForward(inputs, context);
      EXPECT_EQ(outputs.tokens_per_expert.Ints().back(), 1);
      EXPECT_EQ(outputs.permuted_tokens.Floats(), (Floats{7}));
      EXPECT_EQ(outputs.expert_offsets.Ints().back(), 1);
    }
  }
}

TEST(Probes, P100_TopKThatIsNoPowerOfTwo) {
  Random random(100);
  ForwardInputs inputs{Tensor(DType::kBFloat16, {2048, 8}),
                       MapTensor(DType::kInt8, 2048, 64, RandomTopK(random, 2048, 64, 6)),
                       std::nullopt, 2048 * 6, 6};
  for (std::int64_t token = 0; token < 2048; ++token) {
    for (std::int64_t col = 0; col < 8; ++col) {
      inputs.tokens.SetBits(
          token, col, moeperm_reference::Narrow(Type::kBFloat16, static_cast<float>(token % 256)));
    }
  }
  inputs.tokens.Freeze();
  for (const Context& context : EveryContext({1, 3})) {
    EXPECT_TRUE(CheckForward(inputs, {}, Reference(inputs), context));
  }
}

TEST(Probes, P110_AnyTopK) {
  Random random(110);
  const ForwardInputs inputs{Counting(DType::kFloat16, {2, 9}),
                             MapTensor(DType::kInt8, 2, 16, RandomTopK(random, 2, 16, 14)),
                             std::nullopt, 28, 14};
  EXPECT_TRUE(CheckForward(inputs, {}, Reference(inputs), Context::Default()));
}

}  // namespace
}  // namespace moeperm::test
