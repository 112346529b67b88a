// SPDX-License-Identifier: Apache-2.0
// Small inputs with literal values, and the four fixtures most tests start from.
#pragma once

#include <cstdint>
#include <vector>

#include "support/pair.hpp"

namespace moeperm::test {

struct Literal {
  std::int64_t num_experts = 0;
  std::vector<std::int64_t> map = {};  // [tokens, experts], row-major
  std::int64_t hidden = 1;
  std::vector<float> tokens = {};
  std::vector<float> probs = {};  // none: no probs
  DType dtype = DType::kFloat32;  // of the tokens
  DType probs_dtype = DType::kFloat32;
  DType map_dtype = DType::kInt8;
};

// Not padded: a row for each route, top_k the most routes a token has.
ForwardInputs NotPadded(const Literal& literal);
ForwardInputs DropAndPad(const Literal& literal, std::int64_t capacity);

// Gradients for what RunForward(forward) gave: literal rows (hidden as in `forward`) and probs
// (none: probs_grad is not asked for).
GradInputs GradOf(const ForwardInputs& forward, const ForwardOutputs& outputs,
                  const std::vector<float>& permuted_tokens_grad,
                  const std::vector<float>& permuted_probs_grad = {});
// Forward, then gradient.
GradOutputs GradAfterForward(const ForwardInputs& forward,
                             const std::vector<float>& permuted_tokens_grad,
                             const std::vector<float>& permuted_probs_grad = {},
                             const Context& context = Context::Default());

// A copy; dense unless said otherwise.
Tensor Copy(const Tensor& tensor, Layout layout = Layout::kDense);
// The values 0, 1, 2, ..., row-major.
Tensor Counting(DType dtype, std::vector<std::int64_t> shape);

// F1: three tokens, two routes each. Slot to row [0,4,1,2,3,5].
Literal F1();
inline const std::vector<float> kF1TokensGrad = {1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32};
inline const std::vector<float> kF1ProbsGrad = {1, 2, 3, 4, 5, 6};
Literal F2();  // 3, 0, 1 and 2 routes
Literal F3();  // empty experts
Literal F4();  // for capacity 2: one token dropped, one pad row

}  // namespace moeperm::test
