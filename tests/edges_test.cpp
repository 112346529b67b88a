// SPDX-License-Identifier: Apache-2.0
// Sizes at which one way of working hands over to another: very many routes of a token, rows cut
// into columns among threads, rows hardly longer than a vector, very many experts, dense maps.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/random.hpp"

namespace moeperm::test {
namespace {

struct Shape {
  std::int64_t tokens;
  std::int64_t hidden;
  std::int64_t experts;
  std::int64_t routes;  // each token has as many
};

// Both modes, forward and gradient, in all `contexts`, against the reference.
void Check(const Shape& shape, DType dtype, const std::vector<Context>& contexts,
           Layout layout = Layout::kDense) {
  for (const bool drop_and_pad : {false, true}) {
    Random random(14);
    ForwardInputs forward{Tensor(dtype, {shape.tokens, shape.hidden}, layout),
                          MapTensor(DType::kInt8, shape.tokens, shape.experts,
                                    RandomTopK(random, shape.tokens, shape.experts, shape.routes)),
                          Tensor(DType::kFloat16, {shape.tokens, shape.experts})};
    FillRandom(random, forward.tokens);
    FillRandom(random, *forward.probs);
    forward.drop_and_pad = drop_and_pad;
    forward.top_k = shape.routes;
    forward.num_out_tokens =
        drop_and_pad ? std::min(shape.tokens, shape.tokens * shape.routes / shape.experts + 1) *
                           shape.experts
                     : shape.tokens * shape.routes;
    const Permuted expected = Reference(forward);

    GradInputs grad{.sorted_indices = Tensor::OfInts(
                        DType::kInt32, {static_cast<std::int64_t>(expected.sorted_indices.size())},
                        expected.sorted_indices)};
    grad.permuted_tokens_grad.emplace(dtype, std::vector{forward.rows(), shape.hidden}, layout);
    FillRandom(random, *grad.permuted_tokens_grad);
    grad.permuted_probs_grad.emplace(DType::kFloat32, std::vector{forward.rows()});
    FillRandom(random, *grad.permuted_probs_grad);
    if (!drop_and_pad) {
      grad.routing_map = Copy(forward.routing_map);
    }
    grad.num_tokens = shape.tokens;
    grad.num_experts = shape.experts;
    grad.drop_and_pad = drop_and_pad;
    const ReferenceGrads expected_grads = Reference(grad);
    for (const Context& context : contexts) {
      EXPECT_TRUE(CheckForward(forward, {.permuted_tokens = layout}, expected, context));
      EXPECT_TRUE(CheckForwardByRowMap(forward, {}, expected, context)) << Describe(context);
      EXPECT_TRUE(CheckGrad(grad, {.tokens_grad = layout}, expected_grads, context));
      EXPECT_TRUE(CheckGradByRowMap(forward, grad, {}, expected_grads, context))
          << Describe(context);
    }
  }
}

class Edges : public testing::TestWithParam<DType> {};

TEST_P(Edges, RoutesOfOneToken) {
  for (const std::int64_t routes : {33, 511, 512, 513, 700}) {
    Check({3, 131, 700, routes}, GetParam(), EveryContext({1, 2}));
  }
}

// A large output of few tokens: threads share the rows by columns.
TEST_P(Edges, FewTokensOfManyColumns) {
  for (const std::int64_t tokens : {1, 2, 5}) {
    Check({tokens, 200003, 3, 2}, GetParam(), EveryContext(), Layout::kShiftedRowGaps);
  }
}

// Streamed rows about as long as one or two vectors: the parts before and behind what is streamed
// touch, or are all there is.
TEST_P(Edges, ShortRowsOfLargeOutputs) {
  for (const std::int64_t hidden : {15, 16, 17, 31, 33, 64, 65, 129}) {
    const std::int64_t tokens = 2400000 / (hidden * static_cast<std::int64_t>(SizeOf(GetParam())));
    Check({tokens, hidden, 2, 1}, GetParam(), EveryContext({1}), Layout::kShifted);
  }
}

// Large outputs that are zeros almost everywhere, at odd addresses: rows past the routes, tokens
// without a route, experts a token does not go to.
TEST_P(Edges, LargeOutputsOfZeros) {
  constexpr std::int64_t kHidden = 257;
  constexpr std::int64_t kExperts = 129;
  const std::int64_t tokens = 2400000 / (kHidden * static_cast<std::int64_t>(SizeOf(GetParam())));
  Random random(15);
  std::vector<std::uint8_t> map(static_cast<std::size_t>(tokens * kExperts), 0);
  for (const std::int64_t token : {std::int64_t{2}, tokens / 2, tokens - 1}) {
    for (const std::int64_t expert : {0, 64, 128}) {
      map[static_cast<std::size_t>(token * kExperts + expert)] = 1;
    }
  }
  ForwardInputs forward{Tensor(GetParam(), {tokens, kHidden}),
                        MapTensor(DType::kInt8, tokens, kExperts, map),
                        Tensor(DType::kFloat32, {tokens, kExperts}), tokens + 9, 3};
  FillRandom(random, forward.tokens);
  FillRandom(random, *forward.probs);
  const Permuted expected = Reference(forward);
  GradInputs grad{.sorted_indices =
                      Tensor::OfInts(DType::kInt32, {tokens * 3}, expected.sorted_indices)};
  grad.permuted_tokens_grad.emplace(GetParam(), std::vector{tokens + 9, kHidden});
  FillRandom(random, *grad.permuted_tokens_grad);
  grad.permuted_probs_grad.emplace(DType::kFloat32, std::vector{tokens + 9});
  FillRandom(random, *grad.permuted_probs_grad);
  grad.routing_map = Copy(forward.routing_map);
  grad.num_tokens = tokens;
  grad.num_experts = kExperts;
  const ReferenceGrads expected_grads = Reference(grad);
  for (const Layout layout : {Layout::kShifted, Layout::kShiftedRowGaps}) {
    for (const Context& context : EveryContext({1, 2})) {
      EXPECT_TRUE(CheckForward(forward, {.permuted_tokens = layout}, expected, context));
      EXPECT_TRUE(
          CheckGrad(grad, {.tokens_grad = layout, .probs_grad = layout}, expected_grads, context));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Edges,
                         testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16),
                         [](const auto& test) { return std::string(Name(test.param)); });

TEST(ExpertEdges, MoreExpertsThanAScanHoldsAtATime) {
  for (const std::int64_t experts : {131071, 131072, 131073, 270001}) {
    Check({3, 2, experts, 5}, DType::kFloat32, EveryContext({1, 2}));
  }
}

// Every bit of a 64-byte word of the map, every count of columns left over, every token routed to
// all: more routes than memory was set aside for at first.
TEST(ExpertEdges, DenseMaps) {
  for (const std::int64_t experts : {1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 300}) {
    Check({257, 1, experts, experts}, DType::kBFloat16, EveryContext({1, 2}));
  }
  Check({3001, 1, 200, 200}, DType::kBFloat16, EveryContext({1, 3}));
}

TEST(ExpertEdges, FirstTokensSparseLastDense) {
  std::vector<std::uint8_t> bytes(2000 * 100, 0);
  for (std::size_t token = 0; token < 2000; ++token) {
    for (std::size_t expert = 0; expert < 100; ++expert) {
      bytes[token * 100 + expert] = token >= 1500 || expert == token % 100 ? 1 : 0;
    }
  }
  ForwardInputs forward{Counting(DType::kFloat32, {2000, 1}),
                        MapTensor(DType::kBool, 2000, 100, bytes), std::nullopt, 1500 + 500 * 100,
                        100};
  const Permuted expected = Reference(forward);
  for (const Context& context : EveryContext({1, 3})) {
    EXPECT_TRUE(CheckForward(forward, {}, expected, context));
    EXPECT_TRUE(CheckForwardByRowMap(forward, {}, expected, context)) << Describe(context);
  }
}

}  // namespace
}  // namespace moeperm::test
