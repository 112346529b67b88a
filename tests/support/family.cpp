// SPDX-License-Identifier: Apache-2.0
#include "support/family.hpp"

#include "support/contexts.hpp"

namespace moeperm::test {
namespace {

using moeperm_reference::Slot;
using moeperm_reference::TablePermuted;

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

std::optional<Matrix> MatrixOf(const std::optional<Tensor>& tensor) {
  return tensor ? std::optional(tensor->ToMatrix()) : std::nullopt;
}
const Matrix* PointerTo(const std::optional<Matrix>& matrix) { return matrix ? &*matrix : nullptr; }

void Expect(const Status& status, const Context& context) {
  EXPECT_TRUE(status.ok()) << status.message() << " (" << Describe(context) << ")";
}

}  // namespace

TableOutputs MakeOutputs(const TableInputs& inputs, const AnyLayout& layout, DType index) {
  TableOutputs outputs{
      Tensor(inputs.tokens.dtype(), {inputs.num_out_tokens, inputs.tokens.cols()}, layout()),
      std::nullopt, Tensor(index, {inputs.indices.size()}, layout()), std::nullopt};
  if (inputs.probs) {
    outputs.permuted_probs.emplace(inputs.probs->dtype(), std::vector{inputs.num_out_tokens},
                                   layout());
  }
  if (inputs.num_experts > 0) {
    outputs.tokens_per_expert.emplace(index, std::vector{inputs.num_experts}, layout());
  }
  return outputs;
}

PermuteArgs ArgsOf(const TableInputs& inputs, TableOutputs& outputs) {
  PermuteArgs args;
  args.tokens = inputs.tokens.in();
  args.indices = inputs.indices.in();
  args.num_experts = inputs.num_experts;
  args.num_out_tokens = inputs.num_out_tokens;
  args.first_row = inputs.first_row;
  args.permuted_tokens = outputs.permuted_tokens.out();
  args.sorted_indices = outputs.sorted_indices.out();
  if (inputs.probs) {
    args.probs = inputs.probs->in();
    args.permuted_probs = outputs.permuted_probs->out();
  }
  if (outputs.tokens_per_expert) {
    args.tokens_per_expert = outputs.tokens_per_expert->out();
  }
  return args;
}

TablePermuted Reference(const TableInputs& inputs) {
  const std::optional<Matrix> probs = MatrixOf(inputs.probs);
  return moeperm_reference::PermuteByTable(inputs.tokens.ToMatrix(), inputs.indices.Ints(),
                                           inputs.num_experts, PointerTo(probs),
                                           inputs.num_out_tokens, inputs.first_row);
}

testing::AssertionResult Matches(const TableInputs& inputs, const TableOutputs& outputs,
                                 const TablePermuted& expected) {
  FirstFailure failure;
  failure << Equals("permuted_tokens", outputs.permuted_tokens, expected.tokens)
          << Equals("sorted_indices", outputs.sorted_indices, expected.sorted_indices)
          << inputs.tokens.Unchanged("tokens") << inputs.indices.Unchanged("indices");
  if (outputs.permuted_probs) {
    failure << Equals("permuted_probs", *outputs.permuted_probs, expected.probs)
            << inputs.probs->Unchanged("probs");
  }
  if (outputs.tokens_per_expert) {
    failure << Equals("tokens_per_expert", *outputs.tokens_per_expert, expected.tokens_per_expert);
  }
  return failure.result();
}

TableOutputs RunCall(const TableInputs& inputs, const Context& context) {
  TableOutputs outputs = MakeOutputs(inputs);
  Expect(Permute(ArgsOf(inputs, outputs), context), context);
  return outputs;
}

TableGrads MakeOutputs(const TableGradInputs& inputs, const AnyLayout& layout) {
  TableGrads outputs;
  if (inputs.permuted_tokens_grad) {
    outputs.tokens_grad.emplace(inputs.permuted_tokens_grad->dtype(),
                                std::vector{inputs.num_tokens, inputs.permuted_tokens_grad->cols()},
                                layout());
  }
  if (inputs.permuted_probs_grad) {
    outputs.probs_grad.emplace(inputs.permuted_probs_grad->dtype(),
                               std::vector{inputs.num_tokens, inputs.top_k()}, layout());
  }
  return outputs;
}

PermuteGradArgs ArgsOf(const TableGradInputs& inputs, TableGrads& outputs) {
  PermuteGradArgs args;
  if (inputs.permuted_tokens_grad) {
    args.permuted_tokens_grad = inputs.permuted_tokens_grad->in();
    args.tokens_grad = outputs.tokens_grad->out();
  }
  if (inputs.permuted_probs_grad) {
    args.permuted_probs_grad = inputs.permuted_probs_grad->in();
    args.probs_grad = outputs.probs_grad->out();
  }
  args.sorted_indices = inputs.sorted_indices.in();
  args.num_tokens = inputs.num_tokens;
  args.first_row = inputs.first_row;
  return args;
}

ExpectedPair Reference(const TableGradInputs& inputs) {
  const std::int64_t rows = inputs.permuted_tokens_grad  ? inputs.permuted_tokens_grad->rows()
                            : inputs.permuted_probs_grad ? inputs.permuted_probs_grad->size()
                                                         : 0;
  const std::vector<Slot> slots = moeperm_reference::SlotsOfTable(
      inputs.sorted_indices.Ints(), inputs.num_tokens, rows, inputs.first_row);
  ExpectedPair expected;
  if (inputs.permuted_tokens_grad) {
    expected.tokens = moeperm_reference::SumSlots(inputs.permuted_tokens_grad->ToMatrix(), slots,
                                                  inputs.num_tokens, nullptr, {});
  }
  if (inputs.permuted_probs_grad) {
    expected.probs = moeperm_reference::GatherRows(inputs.permuted_probs_grad->ToMatrix(), slots,
                                                   inputs.num_tokens, inputs.top_k());
  }
  return expected;
}

testing::AssertionResult Matches(const TableGradInputs& inputs, const TableGrads& outputs,
                                 const ExpectedPair& expected) {
  FirstFailure failure;
  if (outputs.tokens_grad) {
    failure << Equals("tokens_grad", *outputs.tokens_grad, *expected.tokens)
            << inputs.permuted_tokens_grad->Unchanged("permuted_tokens_grad");
  }
  if (outputs.probs_grad) {
    failure << Equals("probs_grad", *outputs.probs_grad, *expected.probs)
            << inputs.permuted_probs_grad->Unchanged("permuted_probs_grad");
  }
  return (failure << inputs.sorted_indices.Unchanged("sorted_indices")).result();
}

TableGrads RunCall(const TableGradInputs& inputs, const Context& context) {
  TableGrads outputs = MakeOutputs(inputs);
  Expect(PermuteGrad(ArgsOf(inputs, outputs), context), context);
  return outputs;
}

std::vector<Slot> BackInputs::Slots() const {
  if (slots_of_row_map) {
    return *slots_of_row_map;
  }
  const std::vector<std::int64_t> indices = sorted_indices.Ints();
  if (with_map && drop_and_pad) {
    return moeperm_reference::SlotsOfRows(indices, tokens.rows(), probs ? probs->cols() : 0);
  }
  if (with_map && probs) {
    return moeperm_reference::SlotsOfMap(indices, routing_map->ToRoutingMap(), rows.rows());
  }
  return moeperm_reference::SlotsOfTable(indices, tokens.rows(), rows.rows(), first_row);
}

testing::AssertionResult BackInputs::Unchanged() const {
  FirstFailure failure;
  failure << rows.Unchanged("permuted_tokens") << tokens.Unchanged("tokens_grad")
          << sorted_indices.Unchanged("sorted_indices");
  if (probs) {
    failure << probs->Unchanged("probs");
  }
  if (routing_map) {
    failure << routing_map->Unchanged("routing_map");
  }
  return failure.result();
}

BackOutputs MakeOutputs(const BackInputs& inputs, const AnyLayout& layout) {
  BackOutputs outputs{
      Tensor(inputs.rows.dtype(), {inputs.tokens.rows(), inputs.rows.cols()}, layout()),
      std::nullopt};
  if (inputs.with_map && inputs.probs) {
    outputs.gathered_probs.emplace(inputs.probs->dtype(), std::vector{inputs.sorted_indices.size()},
                                   layout());
  }
  return outputs;
}

BackGrads MakeGrads(const BackInputs& inputs, const Wanted& wanted, const AnyLayout& layout) {
  BackGrads outputs;
  if (wanted.rows || !inputs.probs) {
    outputs.permuted_tokens_grad.emplace(
        inputs.tokens.dtype(), std::vector{inputs.rows.rows(), inputs.rows.cols()}, layout());
  }
  if (wanted.probs && inputs.probs) {
    outputs.probs_grad.emplace(inputs.probs->dtype(), inputs.probs->shape(), layout());
  }
  return outputs;
}

UnpermuteArgs ArgsOf(const BackInputs& inputs, BackOutputs& outputs) {
  UnpermuteArgs args;
  args.permuted_tokens = inputs.rows.in();
  args.sorted_indices = inputs.sorted_indices.in();
  if (inputs.probs) {
    args.probs = inputs.probs->in();
  }
  args.first_row = inputs.first_row;
  args.tokens = outputs.tokens.out();
  return args;
}

UnpermuteGradArgs ArgsOf(const BackInputs& inputs, BackGrads& outputs) {
  UnpermuteGradArgs args;
  args.tokens_grad = inputs.tokens.in();
  args.sorted_indices = inputs.sorted_indices.in();
  if (inputs.probs) {
    args.probs = inputs.probs->in();
  }
  args.first_row = inputs.first_row;
  if (outputs.permuted_tokens_grad) {
    args.permuted_tokens_grad = outputs.permuted_tokens_grad->out();
  }
  if (outputs.probs_grad) {
    args.permuted_tokens = inputs.rows.in();
    args.probs_grad = outputs.probs_grad->out();
  }
  return args;
}

UnpermuteWithRoutingMapArgs MapArgsOf(const BackInputs& inputs, BackOutputs& outputs) {
  UnpermuteWithRoutingMapArgs args;
  args.permuted_tokens = inputs.rows.in();
  args.sorted_indices = inputs.sorted_indices.in();
  if (inputs.routing_map) {
    args.routing_map = inputs.routing_map->in();
  }
  if (inputs.probs) {
    args.probs = inputs.probs->in();
  }
  args.drop_and_pad = inputs.drop_and_pad;
  args.round_products = inputs.round_products;
  args.skip_rows_out_of_range = inputs.skip_rows_out_of_range;
  args.tokens = outputs.tokens.out();
  if (outputs.gathered_probs) {
    args.gathered_probs = outputs.gathered_probs->out();
  }
  return args;
}

UnpermuteWithRoutingMapGradArgs MapArgsOf(const BackInputs& inputs, BackGrads& outputs) {
  UnpermuteWithRoutingMapGradArgs args;
  args.tokens_grad = inputs.tokens.in();
  args.sorted_indices = inputs.sorted_indices.in();
  if (inputs.routing_map) {
    args.routing_map = inputs.routing_map->in();
  }
  if (inputs.probs) {
    args.probs = inputs.probs->in();
  }
  args.drop_and_pad = inputs.drop_and_pad;
  args.skip_rows_out_of_range = inputs.skip_rows_out_of_range;
  if (outputs.permuted_tokens_grad) {
    args.permuted_tokens_grad = outputs.permuted_tokens_grad->out();
  }
  if (outputs.probs_grad) {
    args.permuted_tokens = inputs.rows.in();
    args.probs_grad = outputs.probs_grad->out();
  }
  return args;
}

ExpectedPair Reference(const BackInputs& inputs) {
  const std::vector<Slot> slots = inputs.Slots();
  const std::optional<Matrix> probs = MatrixOf(inputs.probs);
  ExpectedPair expected;
  expected.tokens = moeperm_reference::SumSlots(
      inputs.rows.ToMatrix(), slots, inputs.tokens.rows(), PointerTo(probs),
      {.skip_zero_weights = !inputs.drop_and_pad, .round_products = inputs.round_products});
  if (inputs.with_map && probs) {
    expected.probs = moeperm_reference::WeightsOfSlots(*probs, slots);
  }
  return expected;
}

ExpectedPair ReferenceOfGrads(const BackInputs& inputs) {
  const std::vector<Slot> slots = inputs.Slots();
  const std::optional<Matrix> probs = MatrixOf(inputs.probs);
  const Matrix tokens = inputs.tokens.ToMatrix();
  ExpectedPair expected;
  expected.tokens =
      moeperm_reference::SpreadSlots(tokens, slots, inputs.rows.rows(), PointerTo(probs));
  if (probs) {
    expected.probs = moeperm_reference::DotSlots(inputs.rows.ToMatrix(), tokens, slots, probs->type,
                                                 probs->cols);
  }
  return expected;
}

testing::AssertionResult Matches(const BackInputs& inputs, const BackOutputs& outputs,
                                 const ExpectedPair& expected) {
  FirstFailure failure;
  failure << Equals("tokens", outputs.tokens, *expected.tokens);
  if (outputs.gathered_probs) {
    failure << Equals("gathered_probs", *outputs.gathered_probs, *expected.probs);
  }
  return (failure << inputs.Unchanged()).result();
}

testing::AssertionResult Matches(const BackInputs& inputs, const BackGrads& outputs,
                                 const ExpectedPair& expected) {
  FirstFailure failure;
  if (outputs.permuted_tokens_grad) {
    failure << Equals("permuted_tokens_grad", *outputs.permuted_tokens_grad, *expected.tokens);
  }
  if (outputs.probs_grad) {
    failure << Equals("probs_grad", *outputs.probs_grad, *expected.probs);
  }
  return (failure << inputs.Unchanged()).result();
}

Status Call(const BackInputs& inputs, BackOutputs& outputs, const Context& context) {
  return inputs.with_map ? UnpermuteWithRoutingMap(MapArgsOf(inputs, outputs), context)
                         : Unpermute(ArgsOf(inputs, outputs), context);
}

Status Call(const BackInputs& inputs, BackGrads& outputs, const Context& context) {
  return inputs.with_map ? UnpermuteWithRoutingMapGrad(MapArgsOf(inputs, outputs), context)
                         : UnpermuteGrad(ArgsOf(inputs, outputs), context);
}

BackOutputs RunCall(const BackInputs& inputs, const Context& context) {
  BackOutputs outputs = MakeOutputs(inputs);
  Expect(Call(inputs, outputs, context), context);
  return outputs;
}

BackGrads RunGrad(const BackInputs& inputs, const Context& context) {
  BackGrads outputs = MakeGrads(inputs, {}, Dense);
  Expect(Call(inputs, outputs, context), context);
  return outputs;
}

}  // namespace moeperm::test
