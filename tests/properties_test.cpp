// SPDX-License-Identifier: Apache-2.0
// Any routing, shape, dtype, mode, layout, instruction set and thread count: equal to the
// reference bit for bit, guards intact, inputs untouched; and what infer says is what is accepted.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <ostream>

#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/random.hpp"

namespace moeperm::test {
namespace {

struct Sizes {
  std::int64_t tokens;
  std::int64_t hidden;
  std::int64_t experts;
};

// RapidCheck shrinks the sizes; everything else follows from the seed.
Sizes AnySizes() {
  Sizes sizes{};
  sizes.tokens = *rc::gen::weightedOneOf<std::int64_t>(
      {{1, rc::gen::just<std::int64_t>(0)}, {9, rc::gen::inRange<std::int64_t>(1, 40)}});
  sizes.hidden = *rc::gen::weightedOneOf<std::int64_t>(
      {{9, rc::gen::inRange<std::int64_t>(0, 41)}, {2, rc::gen::inRange<std::int64_t>(100, 700)}});
  sizes.experts = *rc::gen::weightedOneOf<std::int64_t>(
      {{9, rc::gen::inRange<std::int64_t>(1, 12)}, {1, rc::gen::inRange<std::int64_t>(60, 140)}});
  return sizes;
}

DType AnyFloat(Random& random) {
  return random.OneOf({DType::kFloat32, DType::kFloat16, DType::kBFloat16});
}
DType AnyIndex(Random& random) { return random.OneOf({DType::kInt32, DType::kInt64}); }
DType AnyMap(Random& random) { return random.OneOf({DType::kInt8, DType::kBool}); }
Layout AnyInputLayout(Random& random) {
  return random.Chance(40) ? Layout::kDense : static_cast<Layout>(random.Below(kInputLayouts));
}
Layout AnyOutputLayout(Random& random) {
  return random.Chance(40) ? Layout::kDense : static_cast<Layout>(random.Below(kOutputLayouts));
}

Tensor AnyValues(Random& random, DType dtype, std::vector<std::int64_t> shape) {
  Tensor tensor(dtype, std::move(shape), AnyInputLayout(random));
  FillRandom(random, tensor);
  return tensor;
}

ForwardInputs AnyForward(Random& random, const Sizes& sizes) {
  const std::vector<std::uint8_t> routing = RandomRouting(
      random, sizes.tokens, sizes.experts, random.Chance(10) ? 0 : 1 + random.Below(sizes.experts));
  ForwardInputs inputs{
      AnyValues(random, AnyFloat(random), {sizes.tokens, sizes.hidden}),
      MapTensor(AnyMap(random), sizes.tokens, sizes.experts, routing, AnyInputLayout(random))};
  if (random.Chance(75)) {
    inputs.probs = AnyValues(random, AnyFloat(random), {sizes.tokens, sizes.experts});
  }
  // An expanded map reads as other bytes than were written: ask the tensor.
  const RoutingMap map = inputs.routing_map.ToRoutingMap();
  const std::int64_t routes = static_cast<std::int64_t>(map.bytes.size()) -
                              std::count(map.bytes.begin(), map.bytes.end(), 0);
  inputs.drop_and_pad = random.Chance(40);
  if (inputs.drop_and_pad) {
    inputs.num_out_tokens = random.Below(sizes.tokens + 1) * sizes.experts;
    if (inputs.num_out_tokens < sizes.tokens * sizes.experts) {
      inputs.num_out_tokens += random.Below(sizes.experts);  // the rest is dropped
    }
  } else {
    inputs.top_k = MostRoutes(map) + (random.Chance(30) ? random.Below(4) : 0);
    inputs.num_out_tokens = random.OneOf<std::int64_t>(
        {routes, routes, routes, random.Below(routes + 1), routes + random.Below(5)});
  }
  return inputs;
}

ForwardChoice AnyForwardChoice(Random& random) {
  return {AnyIndex(random),        AnyIndex(random),        AnyOutputLayout(random),
          AnyOutputLayout(random), AnyOutputLayout(random), AnyOutputLayout(random),
          AnyOutputLayout(random)};
}

// Gradients that belong to `forward`, whose indices are `indices`.
GradInputs GradsOf(Random& random, const ForwardInputs& forward,
                   const std::vector<std::int64_t>& indices) {
  GradInputs inputs{.sorted_indices = Tensor::OfInts(AnyIndex(random),
                                                     {static_cast<std::int64_t>(indices.size())},
                                                     indices, AnyOutputLayout(random))};
  inputs.num_tokens = forward.num_tokens();
  inputs.num_experts = forward.num_experts();
  inputs.drop_and_pad = forward.drop_and_pad;
  const int which = static_cast<int>(random.Below(4));  // 0: tokens alone, 1: probs alone
  if (which != 1) {
    inputs.permuted_tokens_grad =
        AnyValues(random, AnyFloat(random), {forward.rows(), forward.tokens.cols()});
  }
  if (which != 0) {
    inputs.permuted_probs_grad = AnyValues(random, AnyFloat(random), {forward.rows()});
    if (!inputs.drop_and_pad) {
      inputs.routing_map = Copy(forward.routing_map, AnyOutputLayout(random));
    }
  }
  return inputs;
}

Context AnyThreads(Random& random, const std::string& isa) {
  return ContextOf(isa, random.OneOf({1, 2, 3, 7}));
}

void Require(const testing::AssertionResult& result) {
  if (!result) {
    RC_FAIL(result.message());
  }
}

RC_GTEST_PROP(PairProperty, ForwardEqualsTheReference, (std::uint64_t seed)) {
  const Sizes sizes = AnySizes();
  Random random(seed);
  const ForwardInputs inputs = AnyForward(random, sizes);
  const ForwardChoice choice = AnyForwardChoice(random);
  const Permuted expected = Reference(inputs);
  for (const std::string& isa : AvailableIsas()) {
    const Context context = AnyThreads(random, isa);
    Require(CheckForward(inputs, choice, expected, context));
    Require(CheckForwardByRowMap(inputs, choice, expected, context));
  }
}

RC_GTEST_PROP(PairProperty, GradEqualsTheReference, (std::uint64_t seed)) {
  const Sizes sizes = AnySizes();
  Random random(seed);
  const ForwardInputs forward = AnyForward(random, sizes);
  const GradInputs inputs = GradsOf(random, forward, Reference(forward).sorted_indices);
  const GradChoice choice{AnyOutputLayout(random), AnyOutputLayout(random)};
  const ReferenceGrads expected = Reference(inputs);
  for (const std::string& isa : AvailableIsas()) {
    const Context context = AnyThreads(random, isa);
    Require(CheckGrad(inputs, choice, expected, context));
    Require(CheckGradByRowMap(forward, inputs, choice, expected, context));
  }
}

// Indices that no forward gave: holes before routes, rows used twice or never, rows out of range
// that are to be skipped; in drop-and-pad mode a token many times in one expert.
RC_GTEST_PROP(PairProperty, GradOfAnyIndicesEqualsTheReference, (std::uint64_t seed)) {
  Random random(seed);
  Sizes sizes = AnySizes();
  sizes.tokens = std::max<std::int64_t>(sizes.tokens, 1);
  ForwardInputs forward = AnyForward(random, sizes);
  const bool skip = random.Chance(50);
  std::vector<std::int64_t> indices;
  if (forward.drop_and_pad) {
    for (std::int64_t row = 0; row < forward.rows(); ++row) {
      indices.push_back(random.Below(random.Chance(50) ? sizes.tokens : 1 + sizes.tokens / 4));
    }
  } else {
    forward.num_out_tokens = random.Below(50);
    const std::int64_t top_k = random.Below(19);  // past every unrolling by the number of rows
    for (std::int64_t slot = 0; slot < sizes.tokens * top_k; ++slot) {
      const bool hole = forward.num_out_tokens == 0 || random.Chance(25);
      indices.push_back(hole ? -1 : random.Below(forward.num_out_tokens));
      if (skip && random.Chance(10)) {
        indices.back() = forward.num_out_tokens + random.Below(1000);
      }
    }
  }
  GradInputs inputs = GradsOf(random, forward, indices);
  inputs.skip_rows_out_of_range = skip;
  const GradChoice choice{AnyOutputLayout(random), AnyOutputLayout(random)};
  const ReferenceGrads expected = Reference(inputs);
  for (const std::string& isa : AvailableIsas()) {
    Require(CheckGrad(inputs, choice, expected, AnyThreads(random, isa)));
  }
}

TensorSpec SpecOf(const Tensor& tensor) { return {tensor.dtype(), tensor.shape()}; }

RC_GTEST_PROP(PairProperty, InferTellsWhatIsAccepted, (std::uint64_t seed)) {
  Random random(seed);
  const ForwardInputs inputs = AnyForward(random, AnySizes());
  ForwardOutputs outputs = MakeOutputs(inputs);
  PermuteWithRoutingMapArgs args = ArgsOf(inputs, outputs);
  PermuteWithRoutingMapArgs inputs_only;
  inputs_only.tokens = args.tokens;
  inputs_only.routing_map = args.routing_map;
  inputs_only.probs = args.probs;
  inputs_only.num_out_tokens = args.num_out_tokens;
  inputs_only.top_k = args.top_k;
  inputs_only.drop_and_pad = args.drop_and_pad;
  PermuteWithRoutingMapSpecs specs;
  const Status status = InferPermuteWithRoutingMap(inputs_only, &specs);
  if (!status.ok()) {
    RC_FAIL(status.message());
  }
  RC_ASSERT(specs.permuted_tokens == SpecOf(outputs.permuted_tokens));
  RC_ASSERT(specs.permuted_probs.has_value() == inputs.probs.has_value());
  if (inputs.probs) {
    RC_ASSERT(*specs.permuted_probs == SpecOf(*outputs.permuted_probs));
  }
  RC_ASSERT(specs.sorted_indices == SpecOf(outputs.sorted_indices));
  RC_ASSERT(specs.tokens_per_expert == SpecOf(outputs.tokens_per_expert));
  RC_ASSERT(specs.expert_offsets == SpecOf(outputs.expert_offsets));
  RC_ASSERT(PermuteWithRoutingMap(args).ok());

  // One element more, in any output, is refused.
  const auto longer = [](const TensorView& view, int dim) {
    std::vector<std::int64_t> shape(view.shape().begin(), view.shape().end());
    ++shape[static_cast<std::size_t>(dim)];
    return TensorView(view.data(), view.dtype(), shape);
  };
  switch (random.Below(6)) {
    case 0:
      args.permuted_tokens = longer(args.permuted_tokens, 0);
      break;
    case 1:
      args.permuted_tokens = longer(args.permuted_tokens, 1);
      break;
    case 2:
      args.sorted_indices = longer(args.sorted_indices, 0);
      break;
    case 3:
      args.tokens_per_expert = longer(*args.tokens_per_expert, 0);
      break;
    case 4:
      args.expert_offsets = longer(*args.expert_offsets, 0);
      break;
    default:
      RC_PRE(args.permuted_probs.has_value());
      args.permuted_probs = longer(*args.permuted_probs, 0);
  }
  RC_ASSERT(PermuteWithRoutingMap(args).code() == Code::kInvalidArgument);
}

RC_GTEST_PROP(PairProperty, InferOfTheGradTellsWhatIsAccepted, (std::uint64_t seed)) {
  Random random(seed);
  const ForwardInputs forward = AnyForward(random, AnySizes());
  const GradInputs inputs = GradsOf(random, forward, Reference(forward).sorted_indices);
  GradOutputs outputs = MakeOutputs(inputs);
  PermuteWithRoutingMapGradArgs args = ArgsOf(inputs, outputs);
  PermuteWithRoutingMapGradArgs inputs_only = args;
  inputs_only.tokens_grad.reset();
  inputs_only.probs_grad.reset();
  PermuteWithRoutingMapGradSpecs specs;
  const Status status = InferPermuteWithRoutingMapGrad(inputs_only, &specs);
  if (!status.ok()) {
    RC_FAIL(status.message());
  }
  RC_ASSERT(specs.tokens_grad.has_value() == outputs.tokens_grad.has_value());
  RC_ASSERT(specs.probs_grad.has_value() == outputs.probs_grad.has_value());
  if (outputs.tokens_grad) {
    RC_ASSERT(*specs.tokens_grad == SpecOf(*outputs.tokens_grad));
  }
  if (outputs.probs_grad) {
    RC_ASSERT(*specs.probs_grad == SpecOf(*outputs.probs_grad));
  }
  RC_ASSERT(PermuteWithRoutingMapGrad(args).ok());
}

}  // namespace
}  // namespace moeperm::test
