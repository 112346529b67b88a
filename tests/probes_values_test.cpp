// SPDX-License-Identifier: Apache-2.0
// Probes of values: sums, dtypes, strides, what is written where nothing is routed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/random.hpp"

namespace moeperm::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<std::int64_t>;

// The gradient of one token routed to as many experts as there are rows; not padded, or
// drop-and-pad with capacity 1.
float SumOf(DType dtype, const Floats& rows, bool drop_and_pad, const Context& context) {
  Literal literal{.num_experts = static_cast<std::int64_t>(rows.size()),
                  .map = Ints(rows.size(), 1),
                  .tokens = {1},
                  .dtype = dtype};
  const ForwardInputs inputs = drop_and_pad ? DropAndPad(literal, 1) : NotPadded(literal);
  return GradAfterForward(inputs, rows, {}, context).tokens_grad->Floats()[0];
}

void ExpectSum(DType dtype, const Floats& rows, float want) {
  for (const Context& context : EveryContext()) {
    for (const bool drop_and_pad : {false, true}) {
      EXPECT_EQ(SumOf(dtype, rows, drop_and_pad, context), want)
          << Describe(context) << (drop_and_pad ? ", drop-and-pad" : "");
    }
  }
}

TEST(Probes, P049_NoTokens) {
  const ForwardInputs inputs{Tensor::OfFloats(DType::kFloat32, {0, 2}, {}),
                             Tensor::OfInts(DType::kInt8, {0, 3}, {}),
                             Tensor::OfFloats(DType::kFloat32, {0, 3}, {}), 0, 2};
  const ForwardOutputs outputs = RunForward(inputs);
  EXPECT_EQ(outputs.permuted_tokens.shape(), (Ints{0, 2}));
  EXPECT_EQ(outputs.tokens_per_expert.Ints(), (Ints{0, 0, 0}));
  EXPECT_EQ(outputs.expert_offsets.Ints(), (Ints{0, 0, 0, 0}));
  GradInputs grad{.sorted_indices = Copy(outputs.sorted_indices)};
  grad.permuted_tokens_grad = Copy(outputs.permuted_tokens);
  grad.permuted_probs_grad = Copy(*outputs.permuted_probs);
  grad.routing_map = Copy(inputs.routing_map);
  grad.num_experts = 3;
  const GradOutputs grads = RunGrad(grad);
  EXPECT_TRUE(grads.tokens_grad->GuardsIntact("tokens_grad"));
  EXPECT_TRUE(grads.probs_grad->GuardsIntact("probs_grad"));
}

TEST(Probes, P050_NoRoutes) {
  for (const bool drop_and_pad : {false, true}) {
    Literal literal{.num_experts = 3,
                    .map = Ints(9, 0),
                    .hidden = 2,
                    .tokens = Floats(6, 1),
                    .probs = Floats(9, 1)};
    ForwardInputs inputs = drop_and_pad ? DropAndPad(literal, 0) : NotPadded(literal);
    inputs.top_k = 2;
    const ForwardOutputs outputs = RunForward(inputs);
    EXPECT_EQ(outputs.sorted_indices.Ints(), drop_and_pad ? Ints{} : Ints(6, -1));
    GradInputs grad{.sorted_indices = Copy(outputs.sorted_indices)};
    grad.permuted_tokens_grad = Copy(outputs.permuted_tokens);
    grad.permuted_probs_grad = Copy(*outputs.permuted_probs);
    if (!drop_and_pad) {
      grad.routing_map = Copy(inputs.routing_map);
    }
    grad.num_tokens = 3;
    grad.num_experts = 3;
    grad.drop_and_pad = drop_and_pad;
    for (const Context& context : EveryContext()) {
      const GradOutputs grads = RunGrad(grad, context);
      EXPECT_TRUE(Equals("tokens_grad", *grads.tokens_grad, Matrix(Type::kFloat32, 3, 2)));
      EXPECT_TRUE(Equals("probs_grad", *grads.probs_grad, Matrix(Type::kFloat32, 3, 3)));
    }
  }
}

TEST(Probes, P053_HiddenZero) {
  Literal literal = F1();
  literal.hidden = 0;
  literal.tokens = {};
  const ForwardInputs inputs = NotPadded(literal);
  const ForwardOutputs outputs = RunForward(inputs);
  EXPECT_EQ(outputs.sorted_indices.Ints(), (Ints{0, 4, 1, 2, 3, 5}));
  EXPECT_EQ(outputs.tokens_per_expert.Ints(), (Ints{2, 2, 2}));
  EXPECT_EQ(outputs.permuted_probs->Floats(), (Floats{.5, .75, .125, .375, .25, .625}));
  EXPECT_EQ(RunGrad(GradOf(inputs, outputs, {}, kF1ProbsGrad)).probs_grad->Floats(),
            (Floats{1, 0, 5, 2, 3, 0, 0, 4, 6}));
}

TEST(Probes, P055_OneTokenWithoutRoutes) {
  ForwardInputs inputs = NotPadded({.num_experts = 2, .map = {0, 0}, .tokens = {3}});
  inputs.top_k = 2;
  const ForwardOutputs outputs = RunForward(inputs);
  EXPECT_EQ(outputs.permuted_tokens.size(), 0);
  EXPECT_EQ(outputs.sorted_indices.Ints(), (Ints{-1, -1}));
  EXPECT_TRUE(Equals("tokens_grad", *RunGrad(GradOf(inputs, outputs, {})).tokens_grad,
                     Matrix(Type::kFloat32, 1, 1)));
}

TEST(Probes, P059_Bf16Accumulation) {
  ExpectSum(DType::kBFloat16, {256, 1, 1}, 258);   // a running bf16 sum gives 256
  ExpectSum(DType::kBFloat16, {256, 1, -256}, 1);  // ... 0
  ExpectSum(DType::kFloat16, {2048, 1, 1}, 2050);  // a running fp16 sum gives 2048
  const float step = 0x1p-8F;
  ExpectSum(DType::kBFloat16, {1, step, step, step, step, step, step, step}, 1.03125F);
}

// The path that scatters: drop-and-pad, several rows of one token in one expert's neighbours.
TEST(Probes, P062_Bf16Scatter) {
  for (const Context& context : EveryContext()) {
    EXPECT_EQ(SumOf(DType::kBFloat16, {256, 1, 1}, true, context), 258);
    EXPECT_EQ(SumOf(DType::kBFloat16, {256, 1, -256}, true, context), 1);
    EXPECT_EQ(SumOf(DType::kFloat16, {2048, 1, 1}, true, context), 2050);
  }
}

TEST(Probes, P064_OrderOfASum) {
  for (int run = 0; run < 10; ++run) {
    ExpectSum(DType::kFloat32, {1e8F, 1, -1e8F}, 0);
  }
  ExpectSum(DType::kFloat32, {1e8F, -1e8F, 1}, 1);
}

TEST(Probes, P065_ManyRowsOfOneToken) {
  Floats rows(64, 1);
  rows[0] = 256;
  ExpectSum(DType::kBFloat16, rows, 320);  // 319 in float32; a running bf16 sum stays at 256
}

TEST(Probes, P071_SmallIntegersAreExact) {
  Random random(71);
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    Tensor rows(dtype, {64 * 8, 33});
    FillSmallIntegers(random, rows);
    const ForwardInputs inputs{Counting(dtype, {64, 33}),
                               MapTensor(DType::kInt8, 64, 16, RandomTopK(random, 64, 16, 8)),
                               std::nullopt, 64 * 8, 8};
    const Ints indices = RunForward(inputs).sorted_indices.Ints();
    GradInputs grad{.sorted_indices = Tensor::OfInts(DType::kInt32, {64 * 8}, indices)};
    const Floats values = rows.Floats();
    grad.permuted_tokens_grad = std::move(rows);
    grad.num_tokens = 64;
    const Floats got = RunGrad(grad).tokens_grad->Floats();
    bool any = false;
    for (std::size_t i = 0; i < got.size(); ++i) {
      float want = 0;
      for (std::size_t k = 0; k < 8; ++k) {
        want += values[static_cast<std::size_t>(indices[i / 33 * 8 + k]) * 33 + i % 33];
      }
      ASSERT_EQ(got[i], want) << Name(dtype) << " element " << i;
      any |= want != 0;
    }
    EXPECT_TRUE(any);
  }
}

TEST(Probes, P074_UnroutedTokensAndPairsGetZero) {
  Literal literal = F1();
  literal.map.insert(literal.map.end(), {0, 0, 0});
  literal.tokens.insert(literal.tokens.end(), {4, 40});
  literal.probs.insert(literal.probs.end(), {1, 1, 1});
  const GradOutputs grads = GradAfterForward(NotPadded(literal), kF1TokensGrad, kF1ProbsGrad);
  EXPECT_TRUE(Equals("tokens_grad", *grads.tokens_grad,
                     Tensor::OfFloats(DType::kFloat32, {4, 2}, {17, -17, 6, -6, 40, -40, 0, 0})));
  EXPECT_TRUE(
      Equals("probs_grad", *grads.probs_grad,
             Tensor::OfFloats(DType::kFloat32, {4, 3}, {1, 0, 5, 2, 3, 0, 0, 4, 6, 0, 0, 0})));
}

// The map is the left half of a wider one; what stands beside it would be routes.
TEST(Probes, P082_RowStrideOfTheMap) {
  const std::int8_t wide[] = {1, 1, 9, 9, 1, 1, 9, 9};
  RowMap row_map;
  ASSERT_TRUE(RowMap::FromRoutingMap(ConstTensorView(wide, {2, 2}, {4, 1}), {}, &row_map).ok());
  EXPECT_THAT(row_map.row_tokens(), testing::ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(row_map.tokens_per_expert(), testing::ElementsAre(2, 2));
}

TEST(Probes, P083_TransposedViewsOfEverySize) {
  Random random(83);
  for (std::int64_t top_k = 1; top_k <= 5; ++top_k) {
    for (const std::int64_t experts : {5, 8, 17}) {
      const auto bytes = RandomTopK(random, 9, experts, top_k);
      const ForwardInputs inputs{Copy(Counting(DType::kFloat16, {9, 6}), Layout::kTransposed),
                                 MapTensor(DType::kInt8, 9, experts, bytes, Layout::kTransposed),
                                 Copy(Counting(DType::kFloat32, {9, experts}), Layout::kTransposed),
                                 9 * top_k, top_k};
      EXPECT_TRUE(CheckForward(inputs, {}, Reference(inputs), Context::Default()));
    }
  }
}

TEST(Probes, P085_StridedInputs) {
  // Expert-major map viewed transposed; tokens out of a wider buffer; one gradient for all rows.
  const std::int8_t map[] = {1, 1, 0, 0, 1, 1, 1, 0, 1};
  const float wide[] = {-1, 1, 10, -1, -1, -1, 2, 20, -1, -1, -1, 3, 30, -1, -1};
  const float one = 1;
  Tensor permuted_tokens(DType::kFloat32, {6, 2});
  Tensor sorted_indices(DType::kInt32, {6});
  PermuteWithRoutingMapArgs args;
  args.tokens = ConstTensorView(wide + 1, {3, 2}, {5, 1});
  args.routing_map = ConstTensorView(map, {3, 3}, {1, 3});
  args.num_out_tokens = 6;
  args.top_k = 2;
  args.permuted_tokens = permuted_tokens.out();
  args.sorted_indices = sorted_indices.out();
  ASSERT_TRUE(PermuteWithRoutingMap(args).ok());
  EXPECT_EQ(permuted_tokens.Floats(), (Floats{1, 10, 2, 20, 2, 20, 3, 30, 1, 10, 3, 30}));
  EXPECT_EQ(sorted_indices.Ints(), (Ints{0, 4, 1, 2, 3, 5}));

  Tensor tokens_grad(DType::kFloat32, {3, 2});
  PermuteWithRoutingMapGradArgs grad;
  grad.permuted_tokens_grad = ConstTensorView(&one, {6, 2}, {0, 0});
  grad.sorted_indices = sorted_indices.in();
  grad.num_tokens = 3;
  grad.tokens_grad = tokens_grad.out();
  ASSERT_TRUE(PermuteWithRoutingMapGrad(grad).ok());
  EXPECT_EQ(tokens_grad.Floats(), Floats(6, 2));
}

TEST(Probes, P086_MisalignedRows) {
  Random random(86);
  for (const std::int64_t hidden : {1, 2, 3, 5, 7, 8, 9, 15, 17}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      ForwardInputs inputs{Tensor(dtype, {3, hidden}, Layout::kShifted),
                           Tensor::OfInts(DType::kInt8, {3, 3}, F1().map)};
      FillRandom(random, inputs.tokens);
      inputs.num_out_tokens = 6;
      inputs.top_k = 2;
      const Permuted expected = Reference(inputs);
      GradInputs grad{.sorted_indices =
                          Tensor::OfInts(DType::kInt32, {6}, expected.sorted_indices)};
      grad.permuted_tokens_grad.emplace(dtype, Ints{6, hidden}, Layout::kShifted);
      FillRandom(random, *grad.permuted_tokens_grad);
      grad.num_tokens = 3;
      for (const Context& context : EveryContext({1, 2})) {
        EXPECT_TRUE(CheckForward(inputs, {.permuted_tokens = Layout::kShifted}, expected, context));
        EXPECT_TRUE(CheckGrad(grad, {.tokens_grad = Layout::kShifted}, Reference(grad), context));
      }
    }
  }
}

TEST(Probes, P088_ProbsKeepTheirDType) {
  const ForwardInputs inputs = NotPadded({.num_experts = 1,
                                          .map = {1},
                                          .tokens = {1},
                                          .probs = {1.0F / 3},
                                          .dtype = DType::kBFloat16});
  const ForwardOutputs outputs = RunForward(inputs);
  EXPECT_EQ(outputs.permuted_probs->dtype(), DType::kFloat32);
  EXPECT_EQ(outputs.permuted_probs->Floats(), (Floats{0.33333334F}));
  const GradOutputs grads = RunGrad(GradOf(inputs, outputs, {3}, {1.0F / 3}));
  EXPECT_EQ(grads.tokens_grad->Floats(), (Floats{3}));
  EXPECT_EQ(grads.probs_grad->Floats(), (Floats{0.33333334F}));
}

TEST(Probes, P089_ShapesOfTheGradients) {
  const ForwardInputs inputs = NotPadded(F1());
  const GradInputs grad = GradOf(inputs, RunForward(inputs), kF1TokensGrad, kF1ProbsGrad);
  GradOutputs outputs = MakeOutputs(grad);
  PermuteWithRoutingMapGradArgs args = ArgsOf(grad, outputs);
  PermuteWithRoutingMapGradSpecs specs;
  ASSERT_TRUE(InferPermuteWithRoutingMapGrad(args, &specs).ok());
  EXPECT_EQ(specs.tokens_grad, (TensorSpec{DType::kFloat32, {3, 2}}));
  EXPECT_EQ(specs.probs_grad, (TensorSpec{DType::kFloat32, {3, 3}}));
  Tensor six_rows(DType::kFloat32, {6, 2});
  args.tokens_grad = six_rows.out();
  EXPECT_EQ(PermuteWithRoutingMapGrad(args).code(), Code::kInvalidArgument);
}

TEST(Probes, P091_AnyByteThatIsNotZeroIsARoute) {
  const ForwardInputs plain = NotPadded(F1());
  const Permuted expected = Reference(plain);
  for (const DType dtype : {DType::kInt8, DType::kBool}) {
    for (const std::int64_t one : {1, 2, -1, -128}) {
      Literal literal = F1();
      literal.map_dtype = dtype;
      for (std::int64_t& entry : literal.map) {
        entry *= one;
      }
      const ForwardInputs inputs = NotPadded(literal);
      for (const Context& context : EveryContext({1, 2})) {
        EXPECT_TRUE(CheckForward(inputs, {}, expected, context)) << Name(dtype) << " " << one;
        EXPECT_EQ(
            GradAfterForward(inputs, kF1TokensGrad, kF1ProbsGrad, context).probs_grad->Floats(),
            (Floats{1, 0, 5, 2, 3, 0, 0, 4, 6}));
      }
    }
  }
  // A map of floats is refused both ways.
  Tensor floats = Tensor::OfFloats(DType::kFloat32, {3, 3}, {1, 0, 1, 1, 1, 0, 0, 1, 1});
  ForwardOutputs outputs = MakeOutputs(plain);
  PermuteWithRoutingMapArgs args = ArgsOf(plain, outputs);
  args.routing_map = floats.in();
  EXPECT_EQ(PermuteWithRoutingMap(args).code(), Code::kInvalidArgument);
  const GradInputs grad = GradOf(plain, RunForward(plain), kF1TokensGrad, kF1ProbsGrad);
  GradOutputs grads = MakeOutputs(grad);
  PermuteWithRoutingMapGradArgs grad_args = ArgsOf(grad, grads);
  grad_args.routing_map = floats.in();
  EXPECT_EQ(PermuteWithRoutingMapGrad(grad_args).code(), Code::kInvalidArgument);
}

TEST(Probes, P092_ProbsGradIsExpertMajor) {
  EXPECT_EQ(GradAfterForward(NotPadded(F1()), kF1TokensGrad, kF1ProbsGrad).probs_grad->Floats(),
            (Floats{1, 0, 5, 2, 3, 0, 0, 4, 6}));  // row-major: 1 0 2 3 4 0 0 5 6
}

TEST(Probes, P094_LanesPastTheEndAddNothing) {
  ExpectSum(DType::kFloat32, {1, 1, 1, 1, 1}, 5);
  ExpectSum(DType::kFloat16, {1, 1, 1, 1, 1}, 5);
}

TEST(Probes, P103_AdjointOfTheProbs) {
  const ForwardInputs inputs = NotPadded(F1());
  const ForwardOutputs outputs = RunForward(inputs);
  const GradOutputs grads = RunGrad(GradOf(inputs, outputs, kF1TokensGrad, kF1ProbsGrad));
  const auto dot = [](const Floats& a, const Floats& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
    return sum;
  };
  EXPECT_EQ(dot(outputs.permuted_probs->Floats(), kF1ProbsGrad), 8.875);
  EXPECT_EQ(dot(inputs.probs->Floats(), grads.probs_grad->Floats()), 8.875);
  EXPECT_EQ(dot(outputs.permuted_tokens.Floats(), kF1TokensGrad), -1341);
  EXPECT_EQ(dot(inputs.tokens.Floats(), grads.tokens_grad->Floats()), -1341);
}

}  // namespace
}  // namespace moeperm::test
