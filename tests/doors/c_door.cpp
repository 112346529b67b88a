// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>

#include "doors.hpp"
#include "moeperm/moeperm.h"

namespace moeperm::test::c_door {
namespace {

// The tensors of one call, at addresses that stay.
class Tensors {
 public:
  const moeperm_tensor* operator()(const Tensor& tensor) {
    const TensorView view = Writable(tensor);
    moeperm_tensor c = {view.data(),
                        static_cast<moeperm_dtype>(view.dtype()),
                        static_cast<std::int32_t>(view.rank()),
                        {},
                        {}};
    std::ranges::copy(view.shape(), c.shape);
    std::ranges::copy(view.strides(), c.strides);
    return &tensors_.emplace_back(c);
  }
  const moeperm_tensor* operator()(const std::optional<Tensor>& tensor) {
    return tensor ? (*this)(*tensor) : nullptr;
  }

 private:
  std::deque<moeperm_tensor> tensors_;
};

void ExpectOk(moeperm_code code) { EXPECT_EQ(code, MOEPERM_OK) << moeperm_last_error(); }

}  // namespace

void Call(const ForwardInputs& inputs, ForwardOutputs& outputs) {
  Tensors c;
  moeperm_permute_with_routing_map_args args = MOEPERM_PERMUTE_WITH_ROUTING_MAP_ARGS_INIT;
  args.tokens = c(inputs.tokens);
  args.routing_map = c(inputs.routing_map);
  args.probs = c(inputs.probs);
  args.num_out_tokens = inputs.num_out_tokens;
  args.top_k = inputs.top_k;
  args.drop_and_pad = inputs.drop_and_pad ? 1 : 0;
  args.permuted_tokens = c(outputs.permuted_tokens);
  args.permuted_probs = c(outputs.permuted_probs);
  args.sorted_indices = c(outputs.sorted_indices);
  args.tokens_per_expert = c(outputs.tokens_per_expert);
  args.expert_offsets = c(outputs.expert_offsets);
  ExpectOk(moeperm_permute_with_routing_map(&args, nullptr));
}

void Call(const GradInputs& inputs, GradOutputs& outputs) {
  Tensors c;
  moeperm_permute_with_routing_map_grad_args args = MOEPERM_PERMUTE_WITH_ROUTING_MAP_GRAD_ARGS_INIT;
  args.permuted_tokens_grad = c(inputs.permuted_tokens_grad);
  args.permuted_probs_grad = c(inputs.permuted_probs_grad);
  args.sorted_indices = c(inputs.sorted_indices);
  args.routing_map = c(inputs.routing_map);
  args.num_tokens = inputs.num_tokens;
  args.num_experts = inputs.num_experts;
  args.drop_and_pad = inputs.drop_and_pad ? 1 : 0;
  args.tokens_grad = c(outputs.tokens_grad);
  args.probs_grad = c(outputs.probs_grad);
  ExpectOk(moeperm_permute_with_routing_map_grad(&args, nullptr));
}

void Call(const TableInputs& inputs, TableOutputs& outputs) {
  Tensors c;
  moeperm_permute_args args = MOEPERM_PERMUTE_ARGS_INIT;
  args.tokens = c(inputs.tokens);
  args.indices = c(inputs.indices);
  args.probs = c(inputs.probs);
  args.num_experts = inputs.num_experts;
  args.num_out_tokens = inputs.num_out_tokens;
  args.first_row = inputs.first_row;
  args.permuted_tokens = c(outputs.permuted_tokens);
  args.permuted_probs = c(outputs.permuted_probs);
  args.sorted_indices = c(outputs.sorted_indices);
  args.tokens_per_expert = c(outputs.tokens_per_expert);
  ExpectOk(moeperm_permute(&args, nullptr));
}

void Call(const TableGradInputs& inputs, TableGrads& outputs) {
  Tensors c;
  moeperm_permute_grad_args args = MOEPERM_PERMUTE_GRAD_ARGS_INIT;
  args.permuted_tokens_grad = c(inputs.permuted_tokens_grad);
  args.permuted_probs_grad = c(inputs.permuted_probs_grad);
  args.sorted_indices = c(inputs.sorted_indices);
  args.num_tokens = inputs.num_tokens;
  args.first_row = inputs.first_row;
  args.tokens_grad = c(outputs.tokens_grad);
  args.probs_grad = c(outputs.probs_grad);
  ExpectOk(moeperm_permute_grad(&args, nullptr));
}

void Call(const BackInputs& inputs, BackOutputs& outputs) {
  Tensors c;
  const auto fill = [&](auto& args) {
    args.permuted_tokens = c(inputs.rows);
    args.sorted_indices = c(inputs.sorted_indices);
    args.probs = c(inputs.probs);
    args.tokens = c(outputs.tokens);
  };
  if (inputs.with_map) {
    moeperm_unpermute_with_routing_map_args args = MOEPERM_UNPERMUTE_WITH_ROUTING_MAP_ARGS_INIT;
    fill(args);
    args.routing_map = c(inputs.routing_map);
    args.drop_and_pad = inputs.drop_and_pad ? 1 : 0;
    args.gathered_probs = c(outputs.gathered_probs);
    ExpectOk(moeperm_unpermute_with_routing_map(&args, nullptr));
  } else {
    moeperm_unpermute_args args = MOEPERM_UNPERMUTE_ARGS_INIT;
    fill(args);
    args.first_row = inputs.first_row;
    ExpectOk(moeperm_unpermute(&args, nullptr));
  }
}

void Call(const BackInputs& inputs, BackGrads& outputs) {
  Tensors c;
  const auto fill = [&](auto& args) {
    args.tokens_grad = c(inputs.tokens);
    args.permuted_tokens = c(inputs.rows);
    args.sorted_indices = c(inputs.sorted_indices);
    args.probs = c(inputs.probs);
    args.permuted_tokens_grad = c(outputs.permuted_tokens_grad);
    args.probs_grad = c(outputs.probs_grad);
  };
  if (inputs.with_map) {
    moeperm_unpermute_with_routing_map_grad_args args =
        MOEPERM_UNPERMUTE_WITH_ROUTING_MAP_GRAD_ARGS_INIT;
    fill(args);
    args.routing_map = c(inputs.routing_map);
    args.drop_and_pad = inputs.drop_and_pad ? 1 : 0;
    ExpectOk(moeperm_unpermute_with_routing_map_grad(&args, nullptr));
  } else {
    moeperm_unpermute_grad_args args = MOEPERM_UNPERMUTE_GRAD_ARGS_INIT;
    fill(args);
    args.first_row = inputs.first_row;
    ExpectOk(moeperm_unpermute_grad(&args, nullptr));
  }
}

}  // namespace moeperm::test::c_door
