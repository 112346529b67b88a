// SPDX-License-Identifier: Apache-2.0
#include "cann/host/inference.hpp"

#include "cann/host/arithmetic.hpp"
#include "cann/host/messages.hpp"
#include "cann/host/problem.hpp"

namespace moeperm::cann::host {

bool HasUnknownRank(const Shape& shape) { return shape == Shape{-2}; }

Status DimOf(std::string_view name, const TensorDesc& tensor, std::size_t dim,
             std::int64_t* value) {
  if (HasUnknownRank(tensor.shape)) {
    *value = -1;
    return {};
  }
  if (dim >= tensor.shape.size()) {
    return WrongRank(name, tensor.shape, dim == 0 ? "at least 1" : "2");
  }
  *value = tensor.shape[dim];
  return {};
}

Status DivideRows(std::string_view attr, std::int64_t rows, std::int64_t top_k,
                  std::int64_t* tokens) {
  if (top_k == 0) return ZeroAttr(attr, "the rows cannot be divided among tokens");
  const Wide quotient = Wide{rows} / top_k;
  if (!FitsInt64(quotient)) return FieldTooLarge("number of tokens");
  *tokens = static_cast<std::int64_t>(quotient);
  return {};
}

Status SlotsOfTable(const Problem& problem, std::int64_t* slots) {
  const TensorDesc* const indices = Input(problem, 1);
  if (indices == nullptr) return MissingTensor("indices");
  if (Input(problem, 0) == nullptr) return MissingTensor("tokens");
  if (indices->shape.empty() || indices->shape.size() > 2) {
    return WrongRank("indices", indices->shape, "1 or 2");
  }
  // An unknown rank counts as one dimension of -2.
  const std::optional<std::int64_t> product = Product(indices->shape);
  if (!product) return ProductTooLarge("indices", indices->shape);
  *slots = *product;
  return {};
}

std::vector<Shape> PermutedShapes(const Problem& problem, std::int64_t slots, std::int64_t rows) {
  Shape tokens = problem.inputs[0]->shape;
  if (slots > 0 && !tokens.empty() && !HasUnknownRank(tokens)) tokens[0] = rows;
  return {std::move(tokens), {slots > 0 ? slots : -1}};
}

Status InferUnpermuteGrad(const UnpermuteGradInputs& inputs, std::vector<Shape>* shapes) {
  if (inputs.grad == nullptr) return MissingTensor("unpermuted_tokens_grad");
  if (inputs.indices == nullptr) return MissingTensor("sorted_indices");
  const auto wrong = [](const TensorDesc* tensor, std::size_t rank) {
    return tensor != nullptr && !HasUnknownRank(tensor->shape) && tensor->shape.size() != rank;
  };
  if (wrong(inputs.grad, 2)) return WrongRank("unpermuted_tokens_grad", inputs.grad->shape, "2");
  if (wrong(inputs.permuted, 2)) return WrongRank("permuted_tokens", inputs.permuted->shape, "2");
  if (wrong(inputs.indices, 1)) return WrongRank("sorted_indices", inputs.indices->shape, "1");
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  for (Status status : {DimOf("sorted_indices", *inputs.indices, 0, &rows),
                        DimOf("unpermuted_tokens_grad", *inputs.grad, 1, &hidden)}) {
    if (!status.ok()) return status;
  }
  const bool unknown = inputs.permuted != nullptr && HasUnknownRank(inputs.permuted->shape);
  *shapes = {unknown ? inputs.permuted->shape : Shape{rows, hidden},
             inputs.probs != nullptr ? inputs.probs->shape : Shape{}};
  return {};
}

Status InferUnpermuteGradTypes(const UnpermuteGradInputs& inputs, std::vector<DType>* dtypes) {
  if (inputs.grad == nullptr) return MissingTensor("unpermuted_tokens_grad");
  *dtypes = {inputs.grad->dtype, inputs.probs != nullptr ? inputs.probs->dtype : DType::kUndefined};
  return {};
}

Status InferTypeOfInput0(const Problem& problem, std::string_view name,
                         std::vector<DType>* dtypes) {
  const TensorDesc* const input = Input(problem, 0);
  if (input == nullptr) return MissingTensor(name);
  *dtypes = {input->dtype};
  return {};
}

}  // namespace moeperm::cann::host
