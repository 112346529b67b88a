// SPDX-License-Identifier: Apache-2.0
#include "moeperm/row_map.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <new>

#include "base/checks.hpp"
#include "base/status_macros.hpp"
#include "rowmap/route_scan.hpp"
#include "rowmap/row_map_impl.hpp"

namespace moeperm {
namespace {

// Routes a token where the caller sets no limit.
constexpr std::int64_t kLikelyRoutes = 8;

// The first slots of the blocks are known; inside a block they follow from the counts.
void SetTokenOffsets(const RouteScan& scan, const RouteScan::Block& block, RowMap::Impl* impl) {
  auto slot = static_cast<std::int32_t>(block.slot_begin);
  for (std::int64_t token = block.token_begin; token < block.token_end; ++token) {
    impl->token_offsets[token] = slot;
    slot += scan.token_counts()[token];
  }
}

// Gives each route of the block its row, and each row its token. kCut: rows past the end are
// dropped.
template <bool kCut>
void PlaceRows(const RouteScan& scan, RouteScan::Block* block, RowMap::Impl* impl) {
  const std::int32_t* expert = block->experts.data();
  std::int32_t* const next_ranks = block->next_ranks.data();
  std::int32_t* slot_row = impl->slot_rows.data() + block->slot_begin;
  std::int32_t* const row_tokens = impl->row_tokens.data();
  const std::int64_t rows = impl->num_rows;
  for (std::int64_t token = block->token_begin; token < block->token_end; ++token) {
    for (std::int32_t i = scan.token_counts()[token]; i > 0; --i) {
      const std::int32_t row = next_ranks[*expert++]++;
      if (kCut && row >= rows) {
        *slot_row++ = -1;
        continue;
      }
      *slot_row++ = row;
      row_tokens[row] = static_cast<std::int32_t>(token);
    }
  }
}

Status BuildNotPadded(const Context::Impl& context, std::optional<std::int64_t> num_rows,
                      RouteScan* scan, RowMap::Impl* impl) {
  const std::int64_t routes = scan->num_routes();
  impl->num_rows = num_rows.value_or(routes);
  MOEPERM_TRY(impl->token_offsets.Allocate(impl->num_tokens + 1));
  MOEPERM_TRY(impl->slot_rows.Allocate(routes));
  MOEPERM_TRY(impl->slot_experts.Allocate(routes));
  MOEPERM_TRY(impl->row_tokens.Allocate(impl->num_rows));
  for (std::int64_t e = 0; e <= impl->num_experts; ++e) {
    impl->expert_offsets[e] = std::min(scan->expert_begins()[e], impl->num_rows);
  }
  impl->token_offsets[impl->num_tokens] = static_cast<std::int32_t>(routes);
  scan->ForEachBlock(context, [&](RouteScan::Block& block) {
    SetTokenOffsets(*scan, block, impl);
    std::copy_n(block.experts.data(), block.num_slots,
                impl->slot_experts.data() + block.slot_begin);
    if (impl->num_rows < routes) {
      PlaceRows<true>(*scan, &block, impl);
    } else {
      PlaceRows<false>(*scan, &block, impl);
    }
  });
  for (std::int64_t row = routes; row < impl->num_rows; ++row) impl->row_tokens[row] = -1;
  if (routes < impl->num_rows) impl->empty_rows = {{routes, impl->num_rows}};
  return {};
}

Status BuildDropAndPad(const Context::Impl& context, std::int64_t capacity, RouteScan* scan,
                       RowMap::Impl* impl) {
  impl->capacity = capacity;
  impl->num_rows = capacity * impl->num_experts;
  MOEPERM_TRY(impl->row_tokens.Allocate(impl->num_rows));
  for (std::int64_t e = 0; e <= impl->num_experts; ++e) impl->expert_offsets[e] = e * capacity;
  scan->ForEachBlock(context, [&](RouteScan::Block& block) {
    const std::int32_t* expert = block.experts.data();
    for (std::int64_t token = block.token_begin; token < block.token_end; ++token) {
      for (std::int32_t i = scan->token_counts()[token]; i > 0; --i, ++expert) {
        const std::int64_t place = block.next_ranks[*expert]++ - scan->expert_begins()[*expert];
        if (place < capacity) {
          impl->row_tokens[*expert * capacity + place] = static_cast<std::int32_t>(token);
        }
      }
    }
  });
  const int parts =
      TaskCount(*context.pool, impl->num_experts, impl->num_rows * std::int64_t{4}, 4);
  context.pool->Run(parts, [&](int part) {
    const Range experts = CutRange(impl->num_experts, parts, part);
    for (std::int64_t e = experts.begin; e < experts.end; ++e) {
      const std::int64_t routed = impl->tokens_per_expert[e];
      if (routed < capacity) AddPadRows(impl->row_tokens.data() + e * capacity, routed, capacity);
    }
  });
  return IndexByToken(context, impl);
}

// What the options beyond the original need.
Status CheckSpecial(const ConstTensorView& map, const RowMapOptions& options) {
  if (options.capacity < 0) return msg::Negative("capacity", options.capacity);
  if (options.align < 1) return msg::NotPositive("align", options.align);
  MOEPERM_TRY(CheckRowCount("align", options.align));
  if (options.drop_and_pad && options.align != 1) {
    return msg::Unexpected("align", "the rows of an expert are `capacity` in drop-and-pad mode");
  }
  if (!options.drop_and_pad && options.mask_pads) {
    return msg::Unexpected("mask_pads", "it is for drop-and-pad mode");
  }
  if (options.keep == KeepPolicy::kFirst) return {};
  if (options.keep != KeepPolicy::kHighestProb) {
    return msg::NotAmong("keep", static_cast<std::int64_t>(options.keep), 0, 1);
  }
  if (!options.probs)
    return msg::Missing("probs", "the routes of the highest probs are to be kept");
  MOEPERM_TRY(CheckInput("probs", *options.probs, 2, Kind::kFloat));
  MOEPERM_TRY(CheckDim("probs", *options.probs, 0, map.shape(0), "tokens"));
  return CheckDim("probs", *options.probs, 1, map.shape(1), "experts");
}

}  // namespace

Status BuildRowMap(const Context::Impl& context, const ConstTensorView& map,
                   const RowMapOptions& options, std::optional<std::int64_t> top_k,
                   RowMap::Impl* impl) {
  impl->drop_and_pad = options.drop_and_pad;
  impl->num_tokens = map.shape(0);
  impl->num_experts = map.shape(1);
  RouteScan scan;
  MOEPERM_TRY(scan.Scan(context, map, top_k.value_or(kLikelyRoutes)));
  if (top_k) MOEPERM_TRY(scan.CheckRouteCounts(*top_k));
  MOEPERM_TRY(impl->tokens_per_expert.Allocate(impl->num_experts));
  MOEPERM_TRY(impl->expert_offsets.Allocate(impl->num_experts + 1));
  for (std::int64_t e = 0; e < impl->num_experts; ++e) {
    impl->tokens_per_expert[e] = scan.expert_begins()[e + 1] - scan.expert_begins()[e];
  }
  impl->num_routes = scan.num_routes();
  if (IsSpecial(options)) {
    MOEPERM_TRY(BuildNotPadded(context, /*num_rows=*/std::nullopt, &scan, impl));
    MOEPERM_TRY(Rearrange(context, options, impl));
  } else if (options.drop_and_pad) {
    MOEPERM_TRY(BuildDropAndPad(context, options.capacity, &scan, impl));
  } else {
    MOEPERM_TRY(BuildNotPadded(context, options.num_rows, &scan, impl));
  }
  MOEPERM_TRY(impl->kept_per_expert.Allocate(impl->num_experts));
  std::int64_t kept = 0;
  for (std::int64_t e = 0; e < impl->num_experts; ++e) {
    const std::int64_t limit = IsSpecial(options) && options.capacity > 0
                                   ? options.capacity
                                   : std::numeric_limits<std::int64_t>::max();
    impl->kept_per_expert[e] = std::min(
        {impl->tokens_per_expert[e], limit, impl->expert_offsets[e + 1] - impl->expert_offsets[e]});
    kept += impl->kept_per_expert[e];
  }
  impl->num_dropped = impl->num_routes - kept;
  return {};
}

RowMap::RowMap() noexcept {
  // Never destroyed: a row map may outlive it in the program's own destructors.
  alignas(Impl) static std::byte storage[sizeof(Impl)];
  static const Impl& empty = *new (storage) Impl();
  impl_ = std::shared_ptr<const Impl>(std::shared_ptr<void>(), &empty);
}

RowMap::RowMap(std::shared_ptr<const Impl> impl) noexcept : impl_(std::move(impl)) {}

Status RowMap::FromRoutingMap(const ConstTensorView& routing_map, const RowMapOptions& options,
                              RowMap* out, const Context& context) noexcept {
  return Guarded([&]() -> Status {
    MOEPERM_TRY(context.status());
    MOEPERM_TRY(CheckInput("routing_map", routing_map, 2, Kind::kRoutingMap));
    MOEPERM_TRY(CheckCount("routing_map", routing_map, 0));
    MOEPERM_TRY(CheckCount("routing_map", routing_map, 1));
    MOEPERM_TRY(CheckSpecial(routing_map, options));
    if (options.drop_and_pad) {
      MOEPERM_TRY(CheckCapacity(options.capacity, routing_map.shape(0), routing_map.shape(1), 0));
    } else if (options.num_rows) {
      MOEPERM_TRY(CheckRowCount("num_rows", *options.num_rows));
    }
    auto impl = std::make_shared<Impl>();
    MOEPERM_TRY(
        BuildRowMap(*context.impl(), routing_map, options, /*top_k=*/std::nullopt, impl.get()));
    *out = RowMap(std::move(impl));
    return {};
  });
}

bool RowMap::drop_and_pad() const noexcept { return impl_->drop_and_pad; }
std::int64_t RowMap::num_tokens() const noexcept { return impl_->num_tokens; }
std::int64_t RowMap::num_experts() const noexcept { return impl_->num_experts; }
std::int64_t RowMap::num_rows() const noexcept { return impl_->num_rows; }
std::span<const std::int32_t> RowMap::token_offsets() const noexcept {
  static constexpr std::int32_t kNone[] = {0};  // the empty map has no memory of its own
  return impl_->token_offsets.size() > 0 ? impl_->token_offsets.span() : kNone;
}
std::span<const std::int32_t> RowMap::slot_rows() const noexcept {
  // The memory has an element for each row, also for those without a token.
  return impl_->slot_rows.span().first(static_cast<std::size_t>(impl_->num_slots()));
}
std::span<const std::int32_t> RowMap::slot_experts() const noexcept {
  return impl_->slot_experts.span();
}
std::span<const std::int32_t> RowMap::row_tokens() const noexcept {
  return impl_->row_tokens.span();
}
std::span<const std::int64_t> RowMap::tokens_per_expert() const noexcept {
  return impl_->tokens_per_expert.span();
}
std::int64_t RowMap::num_routes() const noexcept { return impl_->num_routes; }
std::int64_t RowMap::num_dropped() const noexcept { return impl_->num_dropped; }
std::span<const std::int64_t> RowMap::kept_per_expert() const noexcept {
  return impl_->kept_per_expert.span();
}
std::span<const std::int64_t> RowMap::expert_offsets() const noexcept {
  static constexpr std::int64_t kNone[] = {0};
  return impl_->expert_offsets.size() > 0 ? impl_->expert_offsets.span() : kNone;
}

}  // namespace moeperm
