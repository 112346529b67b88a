// SPDX-License-Identifier: Apache-2.0
#include "support/fixtures.hpp"

#include <algorithm>

#include "support/random.hpp"

namespace moeperm::test {
namespace {

ForwardInputs Inputs(const Literal& literal) {
  const std::int64_t tokens =
      literal.num_experts == 0
          ? 0
          : static_cast<std::int64_t>(literal.map.size()) / literal.num_experts;
  ForwardInputs inputs{
      Tensor::OfFloats(literal.dtype, {tokens, literal.hidden}, literal.tokens),
      Tensor::OfInts(literal.map_dtype, {tokens, literal.num_experts}, literal.map)};
  if (!literal.probs.empty()) {
    inputs.probs =
        Tensor::OfFloats(literal.probs_dtype, {tokens, literal.num_experts}, literal.probs);
  }
  return inputs;
}

}  // namespace

ForwardInputs NotPadded(const Literal& literal) {
  ForwardInputs inputs = Inputs(literal);
  inputs.num_out_tokens = static_cast<std::int64_t>(literal.map.size()) -
                          std::count(literal.map.begin(), literal.map.end(), 0);
  inputs.top_k = MostRoutes(inputs.routing_map.ToRoutingMap());
  return inputs;
}

ForwardInputs DropAndPad(const Literal& literal, std::int64_t capacity) {
  ForwardInputs inputs = Inputs(literal);
  inputs.num_out_tokens = capacity * literal.num_experts;
  inputs.drop_and_pad = true;
  return inputs;
}

Tensor Copy(const Tensor& tensor, Layout layout) {
  Tensor copy(tensor.dtype(), tensor.shape(), layout);
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    for (std::int64_t col = 0; col < tensor.cols(); ++col) {
      copy.SetBits(row, col, tensor.Bits(row, col));
    }
  }
  copy.Freeze();
  return copy;
}

Tensor Counting(DType dtype, std::vector<std::int64_t> shape) {
  Tensor tensor(dtype, std::move(shape));
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    tensor.SetBits(i / tensor.cols(), i % tensor.cols(),
                   moeperm_reference::Narrow(ToType(dtype), static_cast<float>(i)));
  }
  tensor.Freeze();
  return tensor;
}

GradInputs GradOf(const ForwardInputs& forward, const ForwardOutputs& outputs,
                  const std::vector<float>& permuted_tokens_grad,
                  const std::vector<float>& permuted_probs_grad) {
  GradInputs inputs{.sorted_indices = Copy(outputs.sorted_indices)};
  inputs.permuted_tokens_grad = Tensor::OfFloats(
      forward.tokens.dtype(), {forward.rows(), forward.tokens.cols()}, permuted_tokens_grad);
  inputs.num_tokens = forward.num_tokens();
  inputs.num_experts = forward.num_experts();
  inputs.drop_and_pad = forward.drop_and_pad;
  if (!permuted_probs_grad.empty()) {
    const DType dtype = forward.probs ? forward.probs->dtype() : DType::kFloat32;
    inputs.permuted_probs_grad = Tensor::OfFloats(
        dtype, {static_cast<std::int64_t>(permuted_probs_grad.size())}, permuted_probs_grad);
    if (!forward.drop_and_pad) {
      inputs.routing_map = Copy(forward.routing_map);
    }
  }
  return inputs;
}

GradOutputs GradAfterForward(const ForwardInputs& forward,
                             const std::vector<float>& permuted_tokens_grad,
                             const std::vector<float>& permuted_probs_grad,
                             const Context& context) {
  return RunGrad(
      GradOf(forward, RunForward(forward, context), permuted_tokens_grad, permuted_probs_grad),
      context);
}

Literal F1() {
  return {.num_experts = 3,
          .map = {1, 0, 1, 1, 1, 0, 0, 1, 1},
          .hidden = 2,
          .tokens = {1, 10, 2, 20, 3, 30},
          .probs = {.5, 0, .25, .75, .125, 0, 0, .375, .625}};
}

Literal F2() {
  return {.num_experts = 3,
          .map = {1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0, 1},
          .hidden = 1,
          .tokens = {1, 2, 3, 4},
          .probs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
}

Literal F3() {
  return {.num_experts = 4,
          .map = {0, 1, 0, 0, 0, 1, 0, 0},
          .hidden = 1,
          .tokens = {1, 2},
          .probs = {1, 2, 3, 4, 5, 6, 7, 8}};
}

Literal F4() {
  return {.num_experts = 2,
          .map = {1, 0, 1, 1, 1, 0, 0, 0},
          .hidden = 1,
          .tokens = {1, 2, 3, 4},
          .probs = {.5, 0, .25, .75, 1, 0, 0, 0}};
}

}  // namespace moeperm::test
