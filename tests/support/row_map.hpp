// SPDX-License-Identifier: Apache-2.0
// Calls over row maps of any options: tensors, arguments, the reference.
#pragma once

#include <cstdint>

#include "moeperm/unpermute_by_row_map.hpp"
#include "reference/row_map.hpp"
#include "support/family.hpp"
#include "support/random.hpp"

namespace moeperm::test {

// A routing and the options of its row map, whose probs are `keep_probs`.
struct MapInputs {
  Tensor routing_map;
  Tensor keep_probs;
  RowMapOptions options = {};

  [[nodiscard]] RowMap Build(const Context& context = Context::Default()) const;
  [[nodiscard]] moeperm_reference::PlainRowMap Reference() const;
};

// Any options; the probs of the options have many ties.
MapInputs AnyMap(Random& random, std::int64_t tokens, std::int64_t experts);

// The way back over a row map: what it reads of BackInputs are the rows, the tokens, the probs
// [T, E] and round_products.
BackInputs BackOver(const MapInputs& map, const moeperm_reference::PlainRowMap& plain, Tensor rows,
                    Tensor tokens, std::optional<Tensor> probs);
UnpermuteByRowMapArgs ByRowMapArgsOf(const BackInputs& inputs, BackOutputs& outputs);
UnpermuteByRowMapGradArgs ByRowMapArgsOf(const BackInputs& inputs, BackGrads& outputs);

}  // namespace moeperm::test
