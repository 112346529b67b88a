// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/buffer.hpp"
#include "base/context.hpp"
#include "moeperm/row_map.hpp"
#include "rows/jobs.hpp"

namespace moeperm {

struct RowMap::Impl {
  bool drop_and_pad = false;
  std::int64_t capacity = 0;  // drop-and-pad only
  std::int64_t num_tokens = 0;
  std::int64_t num_experts = 0;
  std::int64_t num_rows = 0;
  Buffer<std::int32_t> token_offsets;
  Buffer<std::int32_t> slot_rows;
  Buffer<std::int32_t> slot_experts;
  Buffer<std::int32_t> row_tokens;
  Buffer<std::int64_t> tokens_per_expert;
  Buffer<std::int64_t> kept_per_expert;
  Buffer<std::int64_t> expert_offsets;
  std::int64_t num_routes = 0;
  std::int64_t num_dropped = 0;
  std::vector<Range> empty_rows;  // rows without a token, in runs, ascending

  [[nodiscard]] std::int64_t num_slots() const { return slot_experts.size(); }
  [[nodiscard]] TokenRows token_rows() const {
    return {num_tokens, slot_rows.data(), token_offsets.data(), 0};
  }
};

// Whether the options ask for more than the original's two modes.
bool IsSpecial(const RowMapOptions& options);

// From the full layout, one row a route, to the one that special options ask for: a limit on rows
// an expert and which routes keep theirs, pad rows.
Status Rearrange(const Context::Impl& context, const RowMapOptions& options, RowMap::Impl* impl);

// Fills the rows of an expert past its routed tokens with unrouted tokens, ascending. `rows` holds
// the expert's `routed` < capacity tokens, ascending, and has room for capacity <= num_tokens.
void AddPadRows(std::int32_t* rows, std::int64_t routed, std::int64_t capacity);

// Slots token by token, rows ascending inside a token, from row_tokens; for drop-and-pad.
Status IndexByToken(const Context::Impl& context, RowMap::Impl* impl);

// RowMap::FromRoutingMap without the checks of the map, which the operators have made. The lowest
// token with more routes than top_k is an error.
Status BuildRowMap(const Context::Impl& context, const ConstTensorView& map,
                   const RowMapOptions& options, std::optional<std::int64_t> top_k,
                   RowMap::Impl* impl);

// The rows of each token, ascending, from the token of each row (its inverse): a stable counting
// sort. offsets [num_tokens + 1], rows [num_rows]. Tokens outside [0, num_tokens) are left out; the
// lowest row with one is *bad, -1 where there is none. offsets[num_tokens] of `rows` are used.
struct TokenOfRowIndex {
  Buffer<std::int32_t> offsets;
  Buffer<std::int32_t> rows;

  Status Build(const Context::Impl& context, const std::int32_t* row_tokens, std::int64_t num_rows,
               std::int64_t num_tokens, std::int64_t* bad);
};

}  // namespace moeperm
