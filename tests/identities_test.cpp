// SPDX-License-Identifier: Apache-2.0
// Identities that need no reference: the gradient is the adjoint of the forward, exactly; one
// route forth and back changes no bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/random.hpp"

namespace moeperm::test {
namespace {

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

// <P x, dy> == <x, P' dy> for tokens and probs.
void CheckAdjoint(ForwardInputs forward, Random& random, const Context& context) {
  FillSmallIntegers(random, forward.tokens);
  FillSmallIntegers(random, *forward.probs);
  const ForwardOutputs outputs = RunForward(forward, context);
  GradInputs inputs{.sorted_indices = Copy(outputs.sorted_indices)};
  inputs.permuted_tokens_grad.emplace(forward.tokens.dtype(),
                                      std::vector{forward.rows(), forward.tokens.cols()});
  inputs.permuted_probs_grad.emplace(forward.probs->dtype(), std::vector{forward.rows()});
  FillSmallIntegers(random, *inputs.permuted_tokens_grad);
  FillSmallIntegers(random, *inputs.permuted_probs_grad);
  if (!forward.drop_and_pad) {
    inputs.routing_map = Copy(forward.routing_map);
  }
  inputs.num_tokens = forward.num_tokens();
  inputs.num_experts = forward.num_experts();
  inputs.drop_and_pad = forward.drop_and_pad;
  const GradOutputs grads = RunGrad(inputs, context);
  const std::int64_t tokens = Dot(outputs.permuted_tokens, *inputs.permuted_tokens_grad);
  const std::int64_t probs = Dot(*outputs.permuted_probs, *inputs.permuted_probs_grad);
  EXPECT_NE(tokens, 0);
  EXPECT_NE(probs, 0);
  EXPECT_EQ(tokens, Dot(forward.tokens, *grads.tokens_grad)) << Describe(context);
  EXPECT_EQ(probs, Dot(*forward.probs, *grads.probs_grad)) << Describe(context);
}

class Adjoint : public testing::TestWithParam<DType> {};

TEST_P(Adjoint, NotPadded) {
  for (const Context& context : EveryContext({1, 3})) {
    for (const int rows_of_routes : {100, 60, 130}) {  // percent: all, cut, filled up
      Random random(1);
      const auto routing = RandomRouting(random, 50, 12, 9);
      ForwardInputs forward{Tensor(GetParam(), {50, 35}), MapTensor(DType::kInt8, 50, 12, routing),
                            Tensor(GetParam(), {50, 12})};
      forward.top_k = MostRoutes(forward.routing_map.ToRoutingMap());
      const auto routes =
          static_cast<std::int64_t>(routing.size()) - std::count(routing.begin(), routing.end(), 0);
      forward.num_out_tokens = routes * rows_of_routes / 100;
      CheckAdjoint(std::move(forward), random, context);
    }
  }
}

TEST_P(Adjoint, DropAndPad) {
  for (const Context& context : EveryContext({1, 3})) {
    for (const std::int64_t capacity : {1, 7, 31, 50}) {
      Random random(2);
      ForwardInputs forward{Tensor(GetParam(), {50, 35}),
                            MapTensor(DType::kBool, 50, 12, RandomRouting(random, 50, 12, 9)),
                            Tensor(GetParam(), {50, 12}), capacity * 12};
      forward.drop_and_pad = true;
      CheckAdjoint(std::move(forward), random, context);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Adjoint,
                         testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16),
                         [](const auto& test) { return std::string(Name(test.param)); });

// Every token has one route: what comes back is what went in, whatever the bits are.
void CheckOneRoute(const Tensor& tokens) {
  Random random(3);
  ForwardInputs forward{
      Copy(tokens),
      MapTensor(DType::kInt8, tokens.rows(), 4, RandomTopK(random, tokens.rows(), 4, 1)),
      std::nullopt, tokens.rows(), 1};
  for (const Context& context : EveryContext({1, 2})) {
    const ForwardOutputs outputs = RunForward(forward, context);
    GradInputs grad{.sorted_indices = Copy(outputs.sorted_indices)};
    grad.permuted_tokens_grad = Copy(outputs.permuted_tokens);
    grad.num_tokens = tokens.rows();
    EXPECT_TRUE(Equals("tokens_grad", *RunGrad(grad, context).tokens_grad, tokens))
        << Describe(context);
  }
}

TEST(OneRoute, EveryPatternOfThe16BitTypes) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    Tensor tokens(dtype, {64, 1024});
    for (std::int64_t i = 0; i < 65536; ++i) {
      tokens.SetBits(i / 1024, i % 1024, static_cast<std::uint64_t>(i));
    }
    CheckOneRoute(tokens);
  }
}

TEST(OneRoute, ManyPatternsOfFloat32) {
  Tensor tokens(DType::kFloat32, {64, 2051});
  Random random(4);
  for (std::int64_t i = 0; i < tokens.size(); ++i) {
    // Every upper half, with any lower half: every exponent, NaNs of all kinds, both zeros.
    tokens.SetBits(i / 2051, i % 2051,
                   (static_cast<std::uint64_t>(i) << 16 & 0xFFFFFFFF) |
                       (i < 65536 ? 0 : random.Bits() & 0xFFFF));
  }
  CheckOneRoute(tokens);
}

}  // namespace
}  // namespace moeperm::test
