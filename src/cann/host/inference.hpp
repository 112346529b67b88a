// SPDX-License-Identifier: Apache-2.0
// Shape and dtype inference that operators share. A negative dimension stands for an unknown one
// and is computed with like any other; a shape of one -2 is of unknown rank. An output that is not
// inferred has an empty shape, or an undefined dtype.
#pragma once

#include <string_view>
#include <vector>

#include "cann/host/op_def.hpp"
#include "moeperm/status.hpp"

namespace moeperm::cann::host {

bool HasUnknownRank(const Shape& shape);
// Dimension `dim`, -1 where the rank is unknown; an error where there is none.
Status DimOf(std::string_view name, const TensorDesc& tensor, std::size_t dim, std::int64_t* value);

// Rows that are divided among tokens: value / top_k, an error where top_k is 0.
Status DivideRows(std::string_view attr, std::int64_t rows, std::int64_t top_k,
                  std::int64_t* tokens);

// The permutations by a table of expert numbers. How many numbers the table has (`tokens` and
// `indices` are inputs 0 and 1 by definition), and the shapes of the permuted tokens and the slots.
Status SlotsOfTable(const Problem& problem, std::int64_t* slots);
std::vector<Shape> PermutedShapes(const Problem& problem, std::int64_t slots, std::int64_t rows);

// The gradients of unpermute: the permuted tokens' gradient has a row for each slot, the probs' the
// shape of the probs. `permuted` and `probs` may be null.
struct UnpermuteGradInputs {
  const TensorDesc* grad;  // [tokens, hidden]
  const TensorDesc* indices;
  const TensorDesc* permuted;
  const TensorDesc* probs;
};
Status InferUnpermuteGrad(const UnpermuteGradInputs& inputs, std::vector<Shape>* shapes);
Status InferUnpermuteGradTypes(const UnpermuteGradInputs& inputs, std::vector<DType>* dtypes);

// One output, of input 0's dtype; an error names input 0 as `name`.
Status InferTypeOfInput0(const Problem& problem, std::string_view name, std::vector<DType>* dtypes);

}  // namespace moeperm::cann::host
