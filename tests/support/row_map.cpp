// SPDX-License-Identifier: Apache-2.0
#include "support/row_map.hpp"

#include "support/family_random.hpp"

namespace moeperm::test {

RowMap MapInputs::Build(const Context& context) const {
  RowMap row_map;
  RowMapOptions all = options;
  all.probs = keep_probs.in();
  const Status status = RowMap::FromRoutingMap(routing_map.in(), all, &row_map, context);
  EXPECT_TRUE(status.ok()) << status.message();
  return row_map;
}

moeperm_reference::PlainRowMap MapInputs::Reference() const {
  moeperm_reference::RowMapRules rules;
  rules.drop_and_pad = options.drop_and_pad;
  rules.capacity = options.capacity;
  rules.num_rows = options.num_rows;
  rules.keep_highest_probs = options.keep == KeepPolicy::kHighestProb;
  rules.mask_pads = options.mask_pads;
  rules.align = options.align;
  rules.pad_empty_experts = options.pad_empty_experts;
  const Matrix probs = keep_probs.ToMatrix();
  return moeperm_reference::MakeRowMap(routing_map.ToRoutingMap(), rules, &probs);
}

MapInputs AnyMap(Random& random, std::int64_t tokens, std::int64_t experts) {
  MapInputs map{MapTensor(random.OneOf({DType::kInt8, DType::kBool}), tokens, experts,
                          RandomRouting(random, tokens, experts, 1 + random.Below(experts)),
                          AnyInputLayout(random)),
                Tensor(AnyFloat(random), {tokens, experts})};
  FillSmallIntegers(random, map.keep_probs);
  RowMapOptions& options = map.options;
  options.drop_and_pad = random.Chance(40);
  options.keep = random.OneOf({KeepPolicy::kFirst, KeepPolicy::kHighestProb});
  if (options.drop_and_pad) {
    options.capacity = random.Below(tokens + 1);
    options.mask_pads = random.Chance(50);
    return map;
  }
  options.capacity = random.Chance(40) ? random.Below(tokens + 1) : 0;
  options.align = random.OneOf<std::int64_t>({1, 1, 2, 3, 8, 16});
  options.pad_empty_experts = random.Chance(50);
  if (random.Chance(30)) {
    options.num_rows = random.Below(2 * tokens + 20);
  }
  return map;
}

BackInputs BackOver(const MapInputs& map, const moeperm_reference::PlainRowMap& plain, Tensor rows,
                    Tensor tokens, std::optional<Tensor> probs) {
  BackInputs inputs{std::move(rows), std::move(tokens), Tensor::OfInts(DType::kInt32, {0}, {}),
                    std::move(probs)};
  inputs.drop_and_pad = map.options.drop_and_pad;
  inputs.slots_of_row_map = plain.slots;
  return inputs;
}

UnpermuteByRowMapArgs ByRowMapArgsOf(const BackInputs& inputs, BackOutputs& outputs) {
  UnpermuteByRowMapArgs args;
  args.permuted_tokens = inputs.rows.in();
  if (inputs.probs) {
    args.probs = inputs.probs->in();
  }
  args.round_products = inputs.round_products;
  args.tokens = outputs.tokens.out();
  return args;
}

UnpermuteByRowMapGradArgs ByRowMapArgsOf(const BackInputs& inputs, BackGrads& outputs) {
  const UnpermuteGradArgs all = ArgsOf(inputs, outputs);
  return {all.tokens_grad, all.permuted_tokens, all.probs, all.permuted_tokens_grad,
          all.probs_grad};
}

}  // namespace moeperm::test
