// SPDX-License-Identifier: Apache-2.0
// One call of the pair: its tensors, the arguments made of them, and what the reference says.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "moeperm/moeperm.hpp"
#include "reference/reference.hpp"
#include "support/tensor.hpp"

namespace moeperm::test {

using moeperm_reference::Permuted;

struct ForwardInputs {
  Tensor tokens;
  Tensor routing_map;
  std::optional<Tensor> probs = std::nullopt;
  std::int64_t num_out_tokens = 0;
  std::int64_t top_k = 0;
  bool drop_and_pad = false;

  [[nodiscard]] std::int64_t num_tokens() const { return routing_map.rows(); }
  [[nodiscard]] std::int64_t num_experts() const { return routing_map.cols(); }
  [[nodiscard]] std::int64_t rows() const;  // of the permuted tensors
};

struct ForwardChoice {
  DType index = DType::kInt32;
  DType counts = DType::kInt64;
  Layout permuted_tokens = Layout::kDense;
  Layout permuted_probs = Layout::kDense;
  Layout sorted_indices = Layout::kDense;
  Layout tokens_per_expert = Layout::kDense;
  Layout expert_offsets = Layout::kDense;
};

struct ForwardOutputs {
  Tensor permuted_tokens;
  std::optional<Tensor> permuted_probs;
  Tensor sorted_indices;
  Tensor tokens_per_expert;
  Tensor expert_offsets;
};

ForwardOutputs MakeOutputs(const ForwardInputs& inputs, const ForwardChoice& choice = {});
PermuteWithRoutingMapArgs ArgsOf(const ForwardInputs& inputs, ForwardOutputs& outputs);
Permuted Reference(const ForwardInputs& inputs);

// Outputs equal to the reference bit for bit, guards intact, inputs as they were.
testing::AssertionResult Matches(const ForwardInputs& inputs, const ForwardOutputs& outputs,
                                 const Permuted& expected);
// Runs it, into fresh outputs, and compares.
testing::AssertionResult CheckForward(const ForwardInputs& inputs, const ForwardChoice& choice,
                                      const Permuted& expected, const Context& context);
// PermuteByRowMap and the accessors of the row map.
testing::AssertionResult CheckForwardByRowMap(const ForwardInputs& inputs,
                                              const ForwardChoice& choice, const Permuted& expected,
                                              const Context& context);

// Runs it and gives the outputs; the test fails where the call does.
ForwardOutputs RunForward(const ForwardInputs& inputs, const Context& context = Context::Default());

struct GradInputs {
  std::optional<Tensor> permuted_tokens_grad = std::nullopt;
  std::optional<Tensor> permuted_probs_grad = std::nullopt;
  Tensor sorted_indices;
  std::optional<Tensor> routing_map = std::nullopt;
  std::int64_t num_tokens = 0;
  std::int64_t num_experts = 0;
  bool drop_and_pad = false;
  bool skip_rows_out_of_range = false;
};

struct GradChoice {
  Layout tokens_grad = Layout::kDense;
  Layout probs_grad = Layout::kDense;
};

struct GradOutputs {
  std::optional<Tensor> tokens_grad;
  std::optional<Tensor> probs_grad;
};

struct ReferenceGrads {
  std::optional<Matrix> tokens;
  std::optional<Matrix> probs;
};

GradOutputs MakeOutputs(const GradInputs& inputs, const GradChoice& choice = {});
PermuteWithRoutingMapGradArgs ArgsOf(const GradInputs& inputs, GradOutputs& outputs);
ReferenceGrads Reference(const GradInputs& inputs);
testing::AssertionResult Matches(const GradInputs& inputs, const GradOutputs& outputs,
                                 const ReferenceGrads& expected);
testing::AssertionResult CheckGrad(const GradInputs& inputs, const GradChoice& choice,
                                   const ReferenceGrads& expected, const Context& context);
// PermuteByRowMapGrad over the row map of `forward`, whose gradients `inputs` holds.
testing::AssertionResult CheckGradByRowMap(const ForwardInputs& forward, const GradInputs& inputs,
                                           const GradChoice& choice, const ReferenceGrads& expected,
                                           const Context& context);
GradOutputs RunGrad(const GradInputs& inputs, const Context& context = Context::Default());

RowMapOptions RowMapOptionsOf(const ForwardInputs& inputs);

}  // namespace moeperm::test
