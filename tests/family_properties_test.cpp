// SPDX-License-Identifier: Apache-2.0
// The index form and the way back with weights, at any shape, dtype, mode, layout, instruction set
// and thread count: equal to the reference bit for bit, guards intact, inputs untouched.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/contexts.hpp"
#include "support/family_random.hpp"
#include "support/row_map.hpp"

namespace moeperm::test {
namespace {

// RapidCheck shrinks the sizes; everything else follows from the seed. Now and then a token has
// more slots than the vector path takes, or than a group of the dot products holds.
FamilySizes AnySizes() {
  FamilySizes sizes;
  sizes.tokens = *rc::gen::weightedOneOf<std::int64_t>(
      {{1, rc::gen::just<std::int64_t>(0)}, {9, rc::gen::inRange<std::int64_t>(1, 30)}});
  sizes.hidden = *rc::gen::weightedOneOf<std::int64_t>(
      {{12, rc::gen::inRange<std::int64_t>(0, 41)}, {2, rc::gen::inRange<std::int64_t>(100, 700)}});
  sizes.top_k = *rc::gen::weightedOneOf<std::int64_t>({{14, rc::gen::inRange<std::int64_t>(0, 9)},
                                                       {2, rc::gen::inRange<std::int64_t>(30, 70)},
                                                       {1, rc::gen::just<std::int64_t>(540)}});
  if (sizes.top_k > 8) {
    sizes.tokens = sizes.tokens % 3;
  }
  return sizes;
}

void Require(const testing::AssertionResult& result, const Context& context) {
  if (!result) {
    RC_FAIL(std::string(result.message()) + "; " + Describe(context));
  }
}
void Require(const Status& status, const Context& context) {
  if (!status.ok()) {
    RC_FAIL(status.message() + "; " + Describe(context));
  }
}

// run(context, layout) in every instruction set.
template <class Body>
void InEveryIsa(Random& random, const Body& run) {
  const std::uint64_t seed = random.Bits();
  for (const std::string& isa : AvailableIsas()) {
    Random layouts(seed);
    run(ContextOf(isa, random.OneOf({1, 2, 3, 7})), [&] { return AnyOutputLayout(layouts); });
  }
}

RC_GTEST_PROP(FamilyProperty, PermuteEqualsTheReference, (std::uint64_t seed)) {
  const FamilySizes sizes = AnySizes();
  Random random(seed);
  const TableInputs inputs = AnyTable(random, sizes);
  const DType index = AnyIndex(random);
  const moeperm_reference::TablePermuted expected = Reference(inputs);
  InEveryIsa(random, [&](const Context& context, const AnyLayout& layout) {
    TableOutputs outputs = MakeOutputs(inputs, layout, index);
    Require(Permute(ArgsOf(inputs, outputs), context), context);
    Require(Matches(inputs, outputs, expected), context);
  });
}

RC_GTEST_PROP(FamilyProperty, PermuteGradEqualsTheReference, (std::uint64_t seed)) {
  const FamilySizes sizes = AnySizes();
  Random random(seed);
  const TableGradInputs inputs = AnyTableGrad(random, sizes);
  const ExpectedPair expected = Reference(inputs);
  InEveryIsa(random, [&](const Context& context, const AnyLayout& layout) {
    TableGrads outputs = MakeOutputs(inputs, layout);
    Require(PermuteGrad(ArgsOf(inputs, outputs), context), context);
    Require(Matches(inputs, outputs, expected), context);
  });
}

void CheckForward(Random& random, const BackInputs& inputs) {
  const ExpectedPair expected = Reference(inputs);
  InEveryIsa(random, [&](const Context& context, const AnyLayout& layout) {
    BackOutputs outputs = MakeOutputs(inputs, layout);
    Require(Call(inputs, outputs, context), context);
    Require(Matches(inputs, outputs, expected), context);
  });
}

void CheckBackward(Random& random, const BackInputs& inputs) {
  const ExpectedPair expected = ReferenceOfGrads(inputs);
  const Wanted wanted =
      random.OneOf<Wanted>({{true, true}, {true, true}, {true, false}, {false, true}});
  InEveryIsa(random, [&](const Context& context, const AnyLayout& layout) {
    BackGrads outputs = MakeGrads(inputs, wanted, layout);
    Require(Call(inputs, outputs, context), context);
    Require(Matches(inputs, outputs, expected), context);
  });
}

RC_GTEST_PROP(FamilyProperty, UnpermuteEqualsTheReference, (std::uint64_t seed)) {
  const FamilySizes sizes = AnySizes();
  Random random(seed);
  CheckForward(random, AnyBack(random, sizes));
}

RC_GTEST_PROP(FamilyProperty, UnpermuteGradEqualsTheReference, (std::uint64_t seed)) {
  const FamilySizes sizes = AnySizes();
  Random random(seed);
  CheckBackward(random, AnyBack(random, sizes));
}

RC_GTEST_PROP(FamilyProperty, UnpermuteWithRoutingMapEqualsTheReference, (std::uint64_t seed)) {
  const FamilySizes sizes = AnySizes();
  Random random(seed);
  CheckForward(random, AnyBackWithMap(random, sizes));
}

RC_GTEST_PROP(FamilyProperty, UnpermuteWithRoutingMapGradEqualsTheReference, (std::uint64_t seed)) {
  const FamilySizes sizes = AnySizes();
  Random random(seed);
  CheckBackward(random, AnyBackWithMap(random, sizes));
}

// A row map of any options, and any values: of hidden that sizes tell.
struct MapCase {
  MapInputs map;
  moeperm_reference::PlainRowMap plain;
  BackInputs back;
};
MapCase AnyMapCase(Random& random, const FamilySizes& sizes) {
  const std::int64_t experts = 1 + random.Below(random.Chance(20) ? 70 : 9);
  MapInputs map = AnyMap(random, sizes.tokens, experts);
  moeperm_reference::PlainRowMap plain = map.Reference();
  const DType dtype = AnyFloat(random);
  const auto rows = static_cast<std::int64_t>(plain.row_tokens.size());
  std::optional<Tensor> probs;
  if (random.Chance(75)) {
    probs = AnyValues(random, AnyFloat(random), {sizes.tokens, experts});
  }
  BackInputs back =
      BackOver(map, plain, AnyValues(random, dtype, {rows, sizes.hidden}),
               AnyValues(random, dtype, {sizes.tokens, sizes.hidden}), std::move(probs));
  back.round_products = random.Chance(30);
  return {std::move(map), std::move(plain), std::move(back)};
}

RC_GTEST_PROP(FamilyProperty, UnpermuteByRowMapEqualsTheReference, (std::uint64_t seed)) {
  const FamilySizes sizes = AnySizes();
  Random random(seed);
  const MapCase any = AnyMapCase(random, sizes);
  const ExpectedPair expected = Reference(any.back);
  InEveryIsa(random, [&](const Context& context, const AnyLayout& layout) {
    BackOutputs outputs = MakeOutputs(any.back, layout);
    Require(UnpermuteByRowMap(any.map.Build(context), ByRowMapArgsOf(any.back, outputs), context),
            context);
    Require(Matches(any.back, outputs, expected), context);
  });
}

RC_GTEST_PROP(FamilyProperty, UnpermuteByRowMapGradEqualsTheReference, (std::uint64_t seed)) {
  const FamilySizes sizes = AnySizes();
  Random random(seed);
  const MapCase any = AnyMapCase(random, sizes);
  const ExpectedPair expected = ReferenceOfGrads(any.back);
  const Wanted wanted =
      random.OneOf<Wanted>({{true, true}, {true, true}, {true, false}, {false, true}});
  InEveryIsa(random, [&](const Context& context, const AnyLayout& layout) {
    BackGrads outputs = MakeGrads(any.back, wanted, layout);
    Require(
        UnpermuteByRowMapGrad(any.map.Build(context), ByRowMapArgsOf(any.back, outputs), context),
        context);
    Require(Matches(any.back, outputs, expected), context);
  });
}

TensorSpec SpecOf(const Tensor& tensor) { return {tensor.dtype(), tensor.shape()}; }

RC_GTEST_PROP(FamilyProperty, InferTellsWhatIsAccepted, (std::uint64_t seed)) {
  const FamilySizes sizes = AnySizes();
  Random random(seed);
  const TableInputs inputs = AnyTable(random, sizes);
  TableOutputs outputs = MakeOutputs(inputs);
  PermuteArgs args = ArgsOf(inputs, outputs);
  PermuteArgs inputs_only;
  inputs_only.tokens = args.tokens;
  inputs_only.indices = args.indices;
  inputs_only.probs = args.probs;
  inputs_only.num_experts = args.num_experts;
  inputs_only.num_out_tokens = args.num_out_tokens;
  inputs_only.first_row = args.first_row;
  PermuteSpecs specs;
  Require(InferPermute(inputs_only, &specs), Context::Default());
  RC_ASSERT(specs.permuted_tokens == SpecOf(outputs.permuted_tokens));
  RC_ASSERT(specs.sorted_indices == SpecOf(outputs.sorted_indices));
  RC_ASSERT(specs.permuted_probs.has_value() == inputs.probs.has_value());
  if (inputs.probs) {
    RC_ASSERT(*specs.permuted_probs == SpecOf(*outputs.permuted_probs));
  }
  RC_ASSERT(Permute(args).ok());
}

}  // namespace
}  // namespace moeperm::test
