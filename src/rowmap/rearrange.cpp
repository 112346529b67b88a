// SPDX-License-Identifier: Apache-2.0
// Layouts beyond the original's two: a capacity without padding, a choice of the routes that keep
// their row, masked pad rows, experts' rows aligned.
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/checks.hpp"
#include "base/status_macros.hpp"
#include "rowmap/row_map_impl.hpp"
#include "rows/convert.hpp"

namespace moeperm {
namespace {

// A prob to compare by: NaN is below everything.
class Probs {
 public:
  explicit Probs(const ConstTensorView& view) : view_(view) {}

  [[nodiscard]] float Of(std::int64_t token, std::int64_t expert) const {
    const std::int64_t at = token * view_.stride(0) + expert * view_.stride(1);
    const float prob = Load(at);
    return prob == prob ? prob : -std::numeric_limits<float>::infinity();
  }

 private:
  [[nodiscard]] float Load(std::int64_t at) const {
    switch (view_.dtype()) {
      case DType::kFloat16:
        return Widen(static_cast<const Float16*>(view_.data())[at]);
      case DType::kBFloat16:
        return Widen(static_cast<const BFloat16*>(view_.data())[at]);
      default:
        return static_cast<const float*>(view_.data())[at];
    }
  }
  ConstTensorView view_;
};

std::int64_t Limit(const RowMapOptions& options) {
  return options.drop_and_pad || options.capacity > 0 ? options.capacity : kMaxRows;
}

// The first row of each expert, and after the last one. [num_experts + 1]
Status PlaceExperts(const RowMapOptions& options, RowMap::Impl* impl) {
  std::int64_t row = 0;
  for (std::int64_t e = 0; e < impl->num_experts; ++e) {
    impl->expert_offsets[e] = row;
    std::int64_t rows = std::min(impl->tokens_per_expert[e], Limit(options));
    if (options.drop_and_pad) {
      rows = options.capacity;
    } else {
      if (rows == 0 && options.pad_empty_experts) rows = 1;
      rows = (rows + options.align - 1) / options.align * options.align;
    }
    row += rows;
    if (row > kMaxRows) return msg::AboveLimit("the number of rows with padding", row, kMaxRows);
  }
  impl->expert_offsets[impl->num_experts] = row;
  return {};
}

// Marks which of an expert's routes keep a row: `tokens` are theirs, ascending.
void Choose(const RowMapOptions& options, const std::int32_t* tokens, std::int64_t routes,
            std::int64_t expert, std::vector<std::uint8_t>* keep) {
  const std::int64_t limit = Limit(options);
  keep->assign(static_cast<std::size_t>(routes), 1);
  if (routes <= limit) return;
  if (options.keep == KeepPolicy::kFirst) {
    std::fill(keep->begin() + limit, keep->end(), 0);
    return;
  }
  struct Route {
    float prob;
    std::int64_t place;
  };
  const Probs probs(*options.probs);
  std::vector<Route> order(static_cast<std::size_t>(routes));
  for (std::int64_t i = 0; i < routes; ++i) {
    order[static_cast<std::size_t>(i)] = {probs.Of(tokens[i], expert), i};
  }
  const auto better = [](const Route& a, const Route& b) {
    return a.prob != b.prob ? a.prob > b.prob : a.place < b.place;
  };
  std::nth_element(order.begin(), order.begin() + limit, order.end(), better);
  for (auto route = order.begin() + limit; route != order.end(); ++route) {
    (*keep)[static_cast<std::size_t>(route->place)] = 0;
  }
}

void FindEmptyRows(RowMap::Impl* impl) {
  impl->empty_rows.clear();
  for (std::int64_t row = 0; row < impl->num_rows;) {
    const std::int64_t begin = row;
    while (row < impl->num_rows && impl->row_tokens[row] < 0) ++row;
    if (row > begin) {
      impl->empty_rows.push_back({begin, row});
    } else {
      ++row;
    }
  }
}

}  // namespace

bool IsSpecial(const RowMapOptions& options) {
  return options.keep != KeepPolicy::kFirst || options.mask_pads || options.align != 1 ||
         (options.pad_empty_experts && !options.drop_and_pad) ||
         (!options.drop_and_pad && options.capacity > 0);
}

void AddPadRows(std::int32_t* rows, std::int64_t routed, std::int64_t capacity) {
  std::int64_t at = routed;
  std::int64_t next_routed = 0;
  for (std::int32_t token = 0; at < capacity; ++token) {
    if (next_routed < routed && rows[next_routed] == token) {
      ++next_routed;
    } else {
      rows[at++] = token;
    }
  }
}

Status IndexByToken(const Context::Impl& context, RowMap::Impl* impl) {
  TokenOfRowIndex index;
  std::int64_t without_token = -1;  // those are left out
  MOEPERM_TRY(index.Build(context, impl->row_tokens.data(), impl->num_rows, impl->num_tokens,
                          &without_token));
  const std::int64_t slots = index.offsets[impl->num_tokens];
  impl->token_offsets = std::move(index.offsets);
  impl->slot_rows = std::move(index.rows);
  MOEPERM_TRY(impl->slot_experts.Allocate(slots));
  const std::int64_t capacity = std::max<std::int64_t>(impl->capacity, 1);
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    impl->slot_experts[slot] = static_cast<std::int32_t>(impl->slot_rows[slot] / capacity);
  }
  return {};
}

Status Rearrange(const Context::Impl& context, const RowMapOptions& options, RowMap::Impl* impl) {
  const std::int64_t routes = impl->num_rows;
  Buffer<std::int64_t> first_route;  // of each expert in the full layout
  MOEPERM_TRY(first_route.Allocate(impl->num_experts + 1));
  std::copy_n(impl->expert_offsets.data(), impl->num_experts + 1, first_route.data());
  MOEPERM_TRY(PlaceExperts(options, impl));

  const std::int64_t rows = options.num_rows && !options.drop_and_pad
                                ? *options.num_rows
                                : impl->expert_offsets[impl->num_experts];
  Buffer<std::int32_t> row_of_route;
  Buffer<std::int32_t> row_tokens;
  MOEPERM_TRY(row_of_route.Allocate(routes));
  MOEPERM_TRY(row_tokens.Allocate(rows));
  std::fill_n(row_tokens.data(), rows, -1);
  std::vector<std::uint8_t> keep;
  for (std::int64_t e = 0; e < impl->num_experts; ++e) {
    const std::int32_t* tokens = impl->row_tokens.data() + first_route[e];
    const std::int64_t count = first_route[e + 1] - first_route[e];
    Choose(options, tokens, count, e, &keep);
    std::int64_t row = impl->expert_offsets[e];
    for (std::int64_t i = 0; i < count; ++i) {
      const bool kept = keep[static_cast<std::size_t>(i)] != 0 && row < rows;
      row_of_route[first_route[e] + i] = kept ? static_cast<std::int32_t>(row) : -1;
      if (kept) row_tokens[row++] = tokens[i];
    }
    const std::int64_t kept = row - impl->expert_offsets[e];
    if (options.drop_and_pad && !options.mask_pads && kept < options.capacity) {
      AddPadRows(row_tokens.data() + impl->expert_offsets[e], kept, options.capacity);
    }
  }
  for (std::int64_t e = 0; e <= impl->num_experts; ++e) {
    impl->expert_offsets[e] = std::min(impl->expert_offsets[e], rows);
  }
  impl->num_rows = rows;
  impl->capacity = options.drop_and_pad ? options.capacity : 0;
  impl->row_tokens = std::move(row_tokens);
  FindEmptyRows(impl);
  if (options.drop_and_pad) return IndexByToken(context, impl);
  for (std::int64_t slot = 0; slot < routes; ++slot) {
    impl->slot_rows[slot] = row_of_route[impl->slot_rows[slot]];
  }
  return {};
}

}  // namespace moeperm
