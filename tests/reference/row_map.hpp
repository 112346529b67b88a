// SPDX-License-Identifier: Apache-2.0
// The plain reference of row maps: what each expert's rows hold, by every option. As reference.hpp:
// scalar, obvious, nothing of the library.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/family.hpp"

namespace moeperm_reference {

struct RowMapRules {
  bool drop_and_pad = false;
  std::int64_t capacity = 0;                            // not padded: 0 is no limit
  std::optional<std::int64_t> num_rows = std::nullopt;  // not padded
  bool keep_highest_probs = false;
  bool mask_pads = false;
  std::int64_t align = 1;
  bool pad_empty_experts = false;
};

struct PlainRowMap {
  std::vector<std::int64_t> row_tokens;      // -1: a row without a token
  std::vector<std::int64_t> expert_offsets;  // [experts + 1]
  std::vector<std::int64_t> kept_per_expert;
  std::int64_t num_routes = 0;
  std::int64_t num_dropped = 0;
  // In the order they are added; `column` is the expert.
  std::vector<Slot> slots;
};

// `probs` [tokens, experts]: with keep_highest_probs.
PlainRowMap MakeRowMap(const RoutingMap& map, const RowMapRules& rules, const Matrix* probs);

}  // namespace moeperm_reference
