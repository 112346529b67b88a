// SPDX-License-Identifier: Apache-2.0
// Random calls of the index form and of the way back with weights: any shape, dtype, layout,
// indices that a forward gave or that none could have given.
#pragma once

#include <cstdint>

#include "support/family.hpp"
#include "support/random.hpp"

namespace moeperm::test {

struct FamilySizes {
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t top_k = 0;
};

DType AnyFloat(Random& random);
DType AnyIndex(Random& random);
Layout AnyInputLayout(Random& random);
Layout AnyOutputLayout(Random& random);
// Numbers of all magnitudes whose sums and products round, and no NaN or infinity.
void FillOrdinary(Random& random, Tensor& floats);
// One of: any bits, ordinary numbers, small integers (0 among them).
Tensor AnyValues(Random& random, DType dtype, std::vector<std::int64_t> shape);

TableInputs AnyTable(Random& random, const FamilySizes& sizes);
TableGradInputs AnyTableGrad(Random& random, const FamilySizes& sizes);
BackInputs AnyBack(Random& random, const FamilySizes& sizes);         // Unpermute
BackInputs AnyBackWithMap(Random& random, const FamilySizes& sizes);  // of the routing map

}  // namespace moeperm::test
