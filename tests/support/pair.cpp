// SPDX-License-Identifier: Apache-2.0
#include "support/pair.hpp"

#include "support/contexts.hpp"

namespace moeperm::test {
namespace {

// The first failure of several checks.
class FirstFailure {
 public:
  FirstFailure& operator<<(const testing::AssertionResult& result) {
    if (!result && result_) {
      result_ = result;
    }
    return *this;
  }
  [[nodiscard]] const testing::AssertionResult& result() const { return result_; }

 private:
  testing::AssertionResult result_ = testing::AssertionSuccess();
};

testing::AssertionResult Succeeded(const Status& status, const Context& context) {
  if (status.ok()) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "refused (" << Describe(context)
                                     << "): " << Name(status.code()) << " " << status.message();
}

testing::AssertionResult InputsUnchanged(const ForwardInputs& inputs) {
  FirstFailure failure;
  failure << inputs.tokens.Unchanged("tokens") << inputs.routing_map.Unchanged("routing_map");
  if (inputs.probs) {
    failure << inputs.probs->Unchanged("probs");
  }
  return failure.result();
}

testing::AssertionResult InputsUnchanged(const GradInputs& inputs) {
  FirstFailure failure;
  failure << inputs.sorted_indices.Unchanged("sorted_indices");
  if (inputs.permuted_tokens_grad) {
    failure << inputs.permuted_tokens_grad->Unchanged("permuted_tokens_grad");
  }
  if (inputs.permuted_probs_grad) {
    failure << inputs.permuted_probs_grad->Unchanged("permuted_probs_grad");
  }
  if (inputs.routing_map) {
    failure << inputs.routing_map->Unchanged("routing_map");
  }
  return failure.result();
}

template <class T>
std::vector<std::int64_t> Wide(std::span<const T> values) {
  return {values.begin(), values.end()};
}

testing::AssertionResult SameInts(const std::string& name, const std::vector<std::int64_t>& actual,
                                  const std::vector<std::int64_t>& expected) {
  if (actual == expected) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << name << " = " << testing::PrintToString(actual) << ", want "
                                     << testing::PrintToString(expected);
}

// Slots as the reference's rows tell them: those of each token ascending by row.
testing::AssertionResult RowMapMatches(const RowMap& row_map, const ForwardInputs& inputs,
                                       const Permuted& expected) {
  FirstFailure failure;
  if (row_map.drop_and_pad() != inputs.drop_and_pad ||
      row_map.num_tokens() != inputs.num_tokens() ||
      row_map.num_experts() != inputs.num_experts() || row_map.num_rows() != inputs.rows()) {
    return testing::AssertionFailure() << "the row map has another mode or other sizes";
  }
  failure << SameInts("row_tokens", Wide(row_map.row_tokens()), expected.row_tokens)
          << SameInts("tokens_per_expert", Wide(row_map.tokens_per_expert()),
                      expected.tokens_per_expert)
          << SameInts("expert_offsets", Wide(row_map.expert_offsets()), expected.expert_offsets);

  std::vector<std::vector<std::int64_t>> rows(static_cast<std::size_t>(inputs.num_tokens()));
  std::vector<std::vector<std::int64_t>> experts(rows.size());
  if (inputs.drop_and_pad) {  // a slot for each row
    for (std::size_t row = 0; row < expected.row_tokens.size(); ++row) {
      const auto token = static_cast<std::size_t>(expected.row_tokens[row]);
      rows[token].push_back(static_cast<std::int64_t>(row));
      experts[token].push_back(static_cast<std::int64_t>(row) * inputs.num_experts() /
                               inputs.rows());
    }
  } else {  // a slot for each route; -1 where the row was cut off
    const RoutingMap map = inputs.routing_map.ToRoutingMap();
    std::int64_t row = 0;
    for (std::int64_t expert = 0; expert < map.experts; ++expert) {
      for (std::int64_t token = 0; token < map.tokens; ++token) {
        if (map.bytes[static_cast<std::size_t>(token * map.experts + expert)] != 0) {
          rows[static_cast<std::size_t>(token)].push_back(row < inputs.rows() ? row : -1);
          experts[static_cast<std::size_t>(token)].push_back(expert);
          ++row;
        }
      }
    }
  }
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::int64_t> slot_rows;
  std::vector<std::int64_t> slot_experts;
  for (std::size_t token = 0; token < rows.size(); ++token) {
    slot_rows.insert(slot_rows.end(), rows[token].begin(), rows[token].end());
    slot_experts.insert(slot_experts.end(), experts[token].begin(), experts[token].end());
    offsets.push_back(static_cast<std::int64_t>(slot_rows.size()));
  }
  failure << SameInts("token_offsets", Wide(row_map.token_offsets()), offsets)
          << SameInts("slot_rows", Wide(row_map.slot_rows()), slot_rows)
          << SameInts("slot_experts", Wide(row_map.slot_experts()), slot_experts);
  return failure.result();
}

}  // namespace

std::int64_t ForwardInputs::rows() const {
  if (!drop_and_pad) {
    return num_out_tokens;
  }
  return num_experts() == 0 ? 0 : num_out_tokens / num_experts() * num_experts();
}

RowMapOptions RowMapOptionsOf(const ForwardInputs& inputs) {
  RowMapOptions options;
  options.drop_and_pad = inputs.drop_and_pad;
  if (inputs.drop_and_pad) {
    options.capacity = inputs.num_experts() == 0 ? 0 : inputs.num_out_tokens / inputs.num_experts();
  } else {
    options.num_rows = inputs.num_out_tokens;
  }
  return options;
}

ForwardOutputs MakeOutputs(const ForwardInputs& inputs, const ForwardChoice& choice) {
  const std::int64_t rows = inputs.rows();
  const std::int64_t entries = inputs.drop_and_pad ? rows : inputs.num_tokens() * inputs.top_k;
  ForwardOutputs outputs{
      Tensor(inputs.tokens.dtype(), {rows, inputs.tokens.cols()}, choice.permuted_tokens),
      std::nullopt, Tensor(choice.index, {entries}, choice.sorted_indices),
      Tensor(choice.counts, {inputs.num_experts()}, choice.tokens_per_expert),
      Tensor(choice.counts, {inputs.num_experts() + 1}, choice.expert_offsets)};
  if (inputs.probs) {
    outputs.permuted_probs.emplace(inputs.probs->dtype(), std::vector{rows}, choice.permuted_probs);
  }
  return outputs;
}

PermuteWithRoutingMapArgs ArgsOf(const ForwardInputs& inputs, ForwardOutputs& outputs) {
  PermuteWithRoutingMapArgs args;
  args.tokens = inputs.tokens.in();
  args.routing_map = inputs.routing_map.in();
  if (inputs.probs) {
    args.probs = inputs.probs->in();
    args.permuted_probs = outputs.permuted_probs->out();
  }
  args.num_out_tokens = inputs.num_out_tokens;
  args.top_k = inputs.top_k;
  args.drop_and_pad = inputs.drop_and_pad;
  args.permuted_tokens = outputs.permuted_tokens.out();
  args.sorted_indices = outputs.sorted_indices.out();
  args.tokens_per_expert = outputs.tokens_per_expert.out();
  args.expert_offsets = outputs.expert_offsets.out();
  return args;
}

Permuted Reference(const ForwardInputs& inputs) {
  std::optional<Matrix> probs;
  if (inputs.probs) {
    probs = inputs.probs->ToMatrix();
  }
  return moeperm_reference::Permute(inputs.tokens.ToMatrix(), inputs.routing_map.ToRoutingMap(),
                                    probs ? &*probs : nullptr, inputs.num_out_tokens, inputs.top_k,
                                    inputs.drop_and_pad);
}

testing::AssertionResult Matches(const ForwardInputs& inputs, const ForwardOutputs& outputs,
                                 const Permuted& expected) {
  FirstFailure failure;
  failure << Equals("permuted_tokens", outputs.permuted_tokens, expected.tokens)
          << Equals("sorted_indices", outputs.sorted_indices, expected.sorted_indices)
          << Equals("tokens_per_expert", outputs.tokens_per_expert, expected.tokens_per_expert)
          << Equals("expert_offsets", outputs.expert_offsets, expected.expert_offsets);
  if (outputs.permuted_probs) {
    failure << Equals("permuted_probs", *outputs.permuted_probs, expected.probs);
  }
  return (failure << InputsUnchanged(inputs)).result();
}

testing::AssertionResult CheckForward(const ForwardInputs& inputs, const ForwardChoice& choice,
                                      const Permuted& expected, const Context& context) {
  ForwardOutputs outputs = MakeOutputs(inputs, choice);
  const Status status = PermuteWithRoutingMap(ArgsOf(inputs, outputs), context);
  if (!status.ok()) {
    return Succeeded(status, context);
  }
  const testing::AssertionResult result = Matches(inputs, outputs, expected);
  return result ? result
                : testing::AssertionFailure() << result.message() << "; " << Describe(context);
}

testing::AssertionResult CheckForwardByRowMap(const ForwardInputs& inputs,
                                              const ForwardChoice& choice, const Permuted& expected,
                                              const Context& context) {
  RowMap row_map;
  Status status =
      RowMap::FromRoutingMap(inputs.routing_map.in(), RowMapOptionsOf(inputs), &row_map, context);
  if (!status.ok()) {
    return Succeeded(status, context);
  }
  FirstFailure failure;
  failure << RowMapMatches(row_map, inputs, expected);
  ForwardOutputs outputs = MakeOutputs(inputs, choice);
  const PermuteWithRoutingMapArgs args = ArgsOf(inputs, outputs);
  status = PermuteByRowMap(
      row_map, {args.tokens, args.probs, args.permuted_tokens, args.permuted_probs}, context);
  failure << Succeeded(status, context)
          << Equals("permuted_tokens by row map", outputs.permuted_tokens, expected.tokens);
  if (outputs.permuted_probs) {
    failure << Equals("permuted_probs by row map", *outputs.permuted_probs, expected.probs);
  }
  return (failure << InputsUnchanged(inputs)).result();
}

ForwardOutputs RunForward(const ForwardInputs& inputs, const Context& context) {
  ForwardOutputs outputs = MakeOutputs(inputs);
  EXPECT_TRUE(Succeeded(PermuteWithRoutingMap(ArgsOf(inputs, outputs), context), context));
  return outputs;
}

GradOutputs MakeOutputs(const GradInputs& inputs, const GradChoice& choice) {
  GradOutputs outputs;
  if (inputs.permuted_tokens_grad) {
    outputs.tokens_grad.emplace(inputs.permuted_tokens_grad->dtype(),
                                std::vector{inputs.num_tokens, inputs.permuted_tokens_grad->cols()},
                                choice.tokens_grad);
  }
  if (inputs.permuted_probs_grad) {
    outputs.probs_grad.emplace(inputs.permuted_probs_grad->dtype(),
                               std::vector{inputs.num_tokens, inputs.num_experts},
                               choice.probs_grad);
  }
  return outputs;
}

PermuteWithRoutingMapGradArgs ArgsOf(const GradInputs& inputs, GradOutputs& outputs) {
  PermuteWithRoutingMapGradArgs args;
  if (inputs.permuted_tokens_grad) {
    args.permuted_tokens_grad = inputs.permuted_tokens_grad->in();
    args.tokens_grad = outputs.tokens_grad->out();
  }
  if (inputs.permuted_probs_grad) {
    args.permuted_probs_grad = inputs.permuted_probs_grad->in();
    args.probs_grad = outputs.probs_grad->out();
  }
  if (inputs.routing_map) {
    args.routing_map = inputs.routing_map->in();
  }
  args.sorted_indices = inputs.sorted_indices.in();
  args.num_tokens = inputs.num_tokens;
  args.num_experts = inputs.num_experts;
  args.drop_and_pad = inputs.drop_and_pad;
  args.skip_rows_out_of_range = inputs.skip_rows_out_of_range;
  return args;
}

ReferenceGrads Reference(const GradInputs& inputs) {
  ReferenceGrads grads;
  const std::vector<std::int64_t> indices = inputs.sorted_indices.Ints();
  if (inputs.permuted_tokens_grad) {
    grads.tokens = moeperm_reference::TokensGrad(inputs.permuted_tokens_grad->ToMatrix(), indices,
                                                 inputs.num_tokens, inputs.drop_and_pad);
  }
  if (inputs.permuted_probs_grad) {
    const Matrix probs = inputs.permuted_probs_grad->ToMatrix();
    grads.probs = inputs.drop_and_pad ? moeperm_reference::ProbsGradByIndex(
                                            probs, indices, inputs.num_tokens, inputs.num_experts)
                                      : moeperm_reference::ProbsGradByMap(
                                            probs, inputs.routing_map->ToRoutingMap());
  }
  return grads;
}

testing::AssertionResult Matches(const GradInputs& inputs, const GradOutputs& outputs,
                                 const ReferenceGrads& expected) {
  FirstFailure failure;
  if (outputs.tokens_grad) {
    failure << Equals("tokens_grad", *outputs.tokens_grad, *expected.tokens);
  }
  if (outputs.probs_grad) {
    failure << Equals("probs_grad", *outputs.probs_grad, *expected.probs);
  }
  return (failure << InputsUnchanged(inputs)).result();
}

testing::AssertionResult CheckGrad(const GradInputs& inputs, const GradChoice& choice,
                                   const ReferenceGrads& expected, const Context& context) {
  GradOutputs outputs = MakeOutputs(inputs, choice);
  const Status status = PermuteWithRoutingMapGrad(ArgsOf(inputs, outputs), context);
  if (!status.ok()) {
    return Succeeded(status, context);
  }
  const testing::AssertionResult result = Matches(inputs, outputs, expected);
  return result ? result
                : testing::AssertionFailure() << result.message() << "; " << Describe(context);
}

testing::AssertionResult CheckGradByRowMap(const ForwardInputs& forward, const GradInputs& inputs,
                                           const GradChoice& choice, const ReferenceGrads& expected,
                                           const Context& context) {
  RowMap row_map;
  Status status =
      RowMap::FromRoutingMap(forward.routing_map.in(), RowMapOptionsOf(forward), &row_map, context);
  if (!status.ok()) {
    return Succeeded(status, context);
  }
  GradOutputs outputs = MakeOutputs(inputs, choice);
  const PermuteWithRoutingMapGradArgs args = ArgsOf(inputs, outputs);
  status = PermuteByRowMapGrad(
      row_map,
      {args.permuted_tokens_grad, args.permuted_probs_grad, args.tokens_grad, args.probs_grad},
      context);
  FirstFailure failure;
  failure << Succeeded(status, context) << Matches(inputs, outputs, expected);
  const testing::AssertionResult result = failure.result();
  return result ? result : testing::AssertionFailure() << result.message() << " (by row map)";
}

GradOutputs RunGrad(const GradInputs& inputs, const Context& context) {
  GradOutputs outputs = MakeOutputs(inputs);
  EXPECT_TRUE(Succeeded(PermuteWithRoutingMapGrad(ArgsOf(inputs, outputs), context), context));
  return outputs;
}

}  // namespace moeperm::test
