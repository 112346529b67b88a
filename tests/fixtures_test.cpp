// SPDX-License-Identifier: Apache-2.0
// The four fixtures, by the values written down for them (not by the reference).
#include <gtest/gtest.h>

#include "support/contexts.hpp"
#include "support/fixtures.hpp"

namespace moeperm::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<std::int64_t>;

class Fixtures : public testing::TestWithParam<std::tuple<DType, DType, DType>> {
 protected:
  static Literal Typed(Literal literal) {
    literal.dtype = std::get<0>(GetParam());
    literal.probs_dtype = std::get<1>(GetParam());
    literal.map_dtype = std::get<2>(GetParam());
    return literal;
  }
};

TEST_P(Fixtures, F1) {
  const ForwardInputs inputs = NotPadded(Typed(F1()));
  for (const Context& context : EveryContext()) {
    SCOPED_TRACE(Describe(context));
    const ForwardOutputs outputs = RunForward(inputs, context);
    EXPECT_EQ(outputs.permuted_tokens.Floats(), (Floats{1, 10, 2, 20, 2, 20, 3, 30, 1, 10, 3, 30}));
    EXPECT_EQ(outputs.permuted_probs->Floats(), (Floats{.5, .75, .125, .375, .25, .625}));
    EXPECT_EQ(outputs.sorted_indices.Ints(), (Ints{0, 4, 1, 2, 3, 5}));
    EXPECT_EQ(outputs.tokens_per_expert.Ints(), (Ints{2, 2, 2}));
    EXPECT_EQ(outputs.expert_offsets.Ints(), (Ints{0, 2, 4, 6}));

    const GradOutputs grads =
        RunGrad(GradOf(inputs, outputs, kF1TokensGrad, kF1ProbsGrad), context);
    EXPECT_EQ(grads.tokens_grad->Floats(), (Floats{17, -17, 6, -6, 40, -40}));
    EXPECT_EQ(grads.probs_grad->Floats(), (Floats{1, 0, 5, 2, 3, 0, 0, 4, 6}));
  }
}

TEST_P(Fixtures, F2) {
  const ForwardInputs inputs = NotPadded(Typed(F2()));
  for (const Context& context : EveryContext()) {
    SCOPED_TRACE(Describe(context));
    const ForwardOutputs outputs = RunForward(inputs, context);
    EXPECT_EQ(outputs.permuted_tokens.Floats(), (Floats{1, 4, 1, 3, 1, 4}));
    EXPECT_EQ(outputs.permuted_probs->Floats(), (Floats{1, 10, 2, 8, 3, 12}));
    EXPECT_EQ(outputs.sorted_indices.Ints(), (Ints{0, 2, 4, -1, -1, -1, 3, -1, -1, 1, 5, -1}));
    EXPECT_EQ(outputs.tokens_per_expert.Ints(), (Ints{2, 2, 2}));

    const GradOutputs grads =
        RunGrad(GradOf(inputs, outputs, {1, 2, 4, 8, 16, 32}, {1, 2, 3, 4, 5, 6}), context);
    EXPECT_EQ(grads.tokens_grad->Floats(), (Floats{21, 0, 8, 34}));
    EXPECT_EQ(grads.probs_grad->Floats(), (Floats{1, 3, 5, 0, 0, 0, 0, 4, 0, 2, 0, 6}));
  }
}

TEST_P(Fixtures, F3) {
  const ForwardInputs inputs = NotPadded(Typed(F3()));
  for (const Context& context : EveryContext()) {
    SCOPED_TRACE(Describe(context));
    const ForwardOutputs outputs = RunForward(inputs, context);
    EXPECT_EQ(outputs.permuted_tokens.Floats(), (Floats{1, 2}));
    EXPECT_EQ(outputs.permuted_probs->Floats(), (Floats{2, 6}));
    EXPECT_EQ(outputs.sorted_indices.Ints(), (Ints{0, 1}));
    EXPECT_EQ(outputs.tokens_per_expert.Ints(), (Ints{0, 2, 0, 0}));
    EXPECT_EQ(outputs.expert_offsets.Ints(), (Ints{0, 0, 2, 2, 2}));
  }
}

TEST_P(Fixtures, F4) {
  const ForwardInputs inputs = DropAndPad(Typed(F4()), 2);
  for (const Context& context : EveryContext()) {
    SCOPED_TRACE(Describe(context));
    const ForwardOutputs outputs = RunForward(inputs, context);
    EXPECT_EQ(outputs.permuted_tokens.Floats(), (Floats{1, 2, 2, 1}));
    EXPECT_EQ(outputs.permuted_probs->Floats(), (Floats{.5, .25, .75, 0}));
    EXPECT_EQ(outputs.sorted_indices.Ints(), (Ints{0, 1, 1, 0}));
    EXPECT_EQ(outputs.tokens_per_expert.Ints(), (Ints{3, 1}));
    EXPECT_EQ(outputs.expert_offsets.Ints(), (Ints{0, 2, 4}));

    // Pad rows copy tokens forward and add their gradients backward.
    const GradOutputs grads = RunGrad(GradOf(inputs, outputs, {1, 2, 4, 8}, {1, 2, 3, 4}), context);
    EXPECT_EQ(grads.tokens_grad->Floats(), (Floats{9, 6, 0, 0}));
    EXPECT_EQ(grads.probs_grad->Floats(), (Floats{1, 4, 2, 3, 0, 0, 0, 0}));
  }
}

INSTANTIATE_TEST_SUITE_P(
    DTypes, Fixtures,
    testing::Combine(testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16),
                     testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16),
                     testing::Values(DType::kInt8, DType::kBool)),
    [](const auto& test) {
      return std::string(Name(std::get<0>(test.param))) + "_" +
             std::string(Name(std::get<1>(test.param))) + "_" +
             std::string(Name(std::get<2>(test.param)));
    });

}  // namespace
}  // namespace moeperm::test
