// SPDX-License-Identifier: Apache-2.0
// Calls of the index form and of the way back with weights: tensors, arguments, the reference.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "moeperm/moeperm.hpp"
#include "moeperm/permute.hpp"
#include "moeperm/unpermute.hpp"
#include "moeperm/unpermute_with_routing_map.hpp"
#include "reference/family.hpp"
#include "support/tensor.hpp"

namespace moeperm::test {

// How outputs are laid out, asked once for each.
using AnyLayout = std::function<Layout()>;
inline Layout Dense() { return Layout::kDense; }

// Permute.
struct TableInputs {
  Tensor tokens;
  Tensor indices;  // of one or two dimensions
  std::optional<Tensor> probs = std::nullopt;
  std::int64_t num_experts = 0;
  std::int64_t num_out_tokens = 0;
  std::int64_t first_row = 0;

  [[nodiscard]] std::int64_t top_k() const {
    return indices.shape().size() == 2 ? indices.cols() : 1;
  }
};
struct TableOutputs {
  Tensor permuted_tokens;
  std::optional<Tensor> permuted_probs;
  Tensor sorted_indices;
  std::optional<Tensor> tokens_per_expert;  // where num_experts is given
};
TableOutputs MakeOutputs(const TableInputs& inputs, const AnyLayout& layout = Dense,
                         DType index = DType::kInt32);
PermuteArgs ArgsOf(const TableInputs& inputs, TableOutputs& outputs);
moeperm_reference::TablePermuted Reference(const TableInputs& inputs);
testing::AssertionResult Matches(const TableInputs& inputs, const TableOutputs& outputs,
                                 const moeperm_reference::TablePermuted& expected);
TableOutputs RunCall(const TableInputs& inputs, const Context& context = Context::Default());

// PermuteGrad.
struct TableGradInputs {
  std::optional<Tensor> permuted_tokens_grad = std::nullopt;
  std::optional<Tensor> permuted_probs_grad = std::nullopt;
  Tensor sorted_indices;
  std::int64_t num_tokens = 0;
  std::int64_t first_row = 0;

  [[nodiscard]] std::int64_t top_k() const {
    return num_tokens == 0 ? 0 : sorted_indices.size() / num_tokens;
  }
};
struct TableGrads {
  std::optional<Tensor> tokens_grad;
  std::optional<Tensor> probs_grad;
};
struct ExpectedPair {
  std::optional<Matrix> tokens;
  std::optional<Matrix> probs;
};
TableGrads MakeOutputs(const TableGradInputs& inputs, const AnyLayout& layout = Dense);
PermuteGradArgs ArgsOf(const TableGradInputs& inputs, TableGrads& outputs);
ExpectedPair Reference(const TableGradInputs& inputs);
testing::AssertionResult Matches(const TableGradInputs& inputs, const TableGrads& outputs,
                                 const ExpectedPair& expected);
TableGrads RunCall(const TableGradInputs& inputs, const Context& context = Context::Default());

// Unpermute and UnpermuteWithRoutingMap, both directions: of their inputs, `rows` [R, H] is
// permuted_tokens and `tokens` [T, H] is tokens_grad.
struct BackInputs {
  Tensor rows;
  Tensor tokens;
  Tensor sorted_indices;
  std::optional<Tensor> probs = std::nullopt;  // [T, K], with_map: [T, E]
  std::int64_t first_row = 0;
  bool with_map = false;  // UnpermuteWithRoutingMap; what follows is for it
  std::optional<Tensor> routing_map = std::nullopt;
  bool drop_and_pad = false;
  bool round_products = false;
  bool skip_rows_out_of_range = false;
  // UnpermuteByRowMap: instead of sorted_indices, and `probs` are [T, E].
  std::optional<std::vector<moeperm_reference::Slot>> slots_of_row_map = std::nullopt;

  [[nodiscard]] std::vector<moeperm_reference::Slot> Slots() const;
  [[nodiscard]] testing::AssertionResult Unchanged() const;
};
struct BackOutputs {
  Tensor tokens;
  std::optional<Tensor> gathered_probs;  // with_map, with probs
};
struct BackGrads {
  std::optional<Tensor> permuted_tokens_grad;
  std::optional<Tensor> probs_grad;
};
// Which gradients are asked for; those of the probs need probs.
struct Wanted {
  bool rows = true;
  bool probs = true;
};
BackOutputs MakeOutputs(const BackInputs& inputs, const AnyLayout& layout = Dense);
BackGrads MakeGrads(const BackInputs& inputs, const Wanted& wanted, const AnyLayout& layout);
UnpermuteArgs ArgsOf(const BackInputs& inputs, BackOutputs& outputs);
UnpermuteGradArgs ArgsOf(const BackInputs& inputs, BackGrads& outputs);
UnpermuteWithRoutingMapArgs MapArgsOf(const BackInputs& inputs, BackOutputs& outputs);
UnpermuteWithRoutingMapGradArgs MapArgsOf(const BackInputs& inputs, BackGrads& outputs);
// The tokens and gathered_probs; the gradients of the rows and of the probs.
ExpectedPair Reference(const BackInputs& inputs);
ExpectedPair ReferenceOfGrads(const BackInputs& inputs);
testing::AssertionResult Matches(const BackInputs& inputs, const BackOutputs& outputs,
                                 const ExpectedPair& expected);
testing::AssertionResult Matches(const BackInputs& inputs, const BackGrads& outputs,
                                 const ExpectedPair& expected);
// The call that `with_map` tells.
Status Call(const BackInputs& inputs, BackOutputs& outputs, const Context& context);
Status Call(const BackInputs& inputs, BackGrads& outputs, const Context& context);
BackOutputs RunCall(const BackInputs& inputs, const Context& context = Context::Default());
BackGrads RunGrad(const BackInputs& inputs, const Context& context = Context::Default());

}  // namespace moeperm::test
