// SPDX-License-Identifier: Apache-2.0
// The index every operator is a recipe over: which rows a token has, which token a row has.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "moeperm/context.hpp"
#include "moeperm/export.h"
#include "moeperm/status.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm {

// Which routes of an expert keep a row where it has more than its capacity.
enum class KeepPolicy : std::int32_t {
  kFirst = 0,        // those of the lowest tokens
  kHighestProb = 1,  // those of the highest probs; of equal ones, and of NaN, the lowest tokens
};

struct RowMapOptions {
  // false: one row a route. true: `capacity` rows an expert; routed tokens first, ascending, as
  // many as fit; then, where an expert has fewer, unrouted tokens, ascending, as pad rows.
  bool drop_and_pad = false;
  // Drop-and-pad: rows of an expert, 0 <= capacity <= num_tokens. Not padded: the most rows an
  // expert keeps; 0: all.
  std::int64_t capacity = 0;
  // Not padded: rows to have, or absent for one a route. Fewer than there are routes: the last
  // rows are dropped (their slots hold -1). More: rows past the routes hold no token.
  std::optional<std::int64_t> num_rows = std::nullopt;

  // Beyond the original:
  KeepPolicy keep = KeepPolicy::kFirst;
  std::optional<ConstTensorView> probs = std::nullopt;  // [T, E] float; for kHighestProb
  // Drop-and-pad: pad rows hold no token; they are zero rows and give no gradient.
  bool mask_pads = false;
  // Not padded: each expert's rows are filled up with zero rows to a multiple of this, >= 1.
  std::int64_t align = 1;
  // With align: an expert without rows gets a multiple of one, not of none.
  bool pad_empty_experts = false;
};

// Token-major and row-major at once; ragged routing (tokens with different numbers of routes,
// none included) is the normal case. Immutable once built; cheap to copy (copies share memory).
class MOEPERM_EXPORT RowMap {
 public:
  RowMap() noexcept;                         // no tokens, no experts, no rows
  RowMap(const RowMap&) noexcept = default;  // and so no move, which would leave one without index
  RowMap& operator=(const RowMap&) noexcept = default;
  ~RowMap() = default;

  // Builds the index of `routing_map` [num_tokens, num_experts], int8 or bool, any strides; a byte
  // that is not 0 is a route. Reads the map once. num_tokens, num_experts and the number of rows
  // must be below 2^31. Errors: kInvalidArgument, kOutOfMemory; *out is then unchanged.
  static Status FromRoutingMap(const ConstTensorView& routing_map, const RowMapOptions& options,
                               RowMap* out, const Context& context = Context::Default()) noexcept;

  [[nodiscard]] bool drop_and_pad() const noexcept;
  [[nodiscard]] std::int64_t num_tokens() const noexcept;
  [[nodiscard]] std::int64_t num_experts() const noexcept;
  [[nodiscard]] std::int64_t num_rows() const noexcept;

  // [num_tokens + 1]: token t has the slots token_offsets[t] .. token_offsets[t + 1] - 1.
  [[nodiscard]] std::span<const std::int32_t> token_offsets() const noexcept;
  // [slots]: the row of a slot; -1 where it was dropped. Ascending inside a token.
  [[nodiscard]] std::span<const std::int32_t> slot_rows() const noexcept;
  // [slots]: the expert of a slot.
  [[nodiscard]] std::span<const std::int32_t> slot_experts() const noexcept;
  // [num_rows]: the token of a row; -1 where the row holds none (a zero row).
  [[nodiscard]] std::span<const std::int32_t> row_tokens() const noexcept;
  // Routes in the map, and those of them that got no row.
  [[nodiscard]] std::int64_t num_routes() const noexcept;
  [[nodiscard]] std::int64_t num_dropped() const noexcept;

  // [num_experts]: routes in the map, dropped ones included, pad rows not.
  [[nodiscard]] std::span<const std::int64_t> tokens_per_expert() const noexcept;
  // [num_experts]: rows that hold a routed token. They are an expert's first rows.
  [[nodiscard]] std::span<const std::int64_t> kept_per_expert() const noexcept;
  // [num_experts + 1]: expert e has the rows expert_offsets[e] .. expert_offsets[e + 1] - 1, pad
  // rows included.
  [[nodiscard]] std::span<const std::int64_t> expert_offsets() const noexcept;

  struct Impl;  // src/rowmap/row_map_impl.hpp
  explicit RowMap(std::shared_ptr<const Impl> impl) noexcept;
  [[nodiscard]] const Impl& impl() const noexcept { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace moeperm
