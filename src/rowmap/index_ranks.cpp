// SPDX-License-Identifier: Apache-2.0
#include "rowmap/index_ranks.hpp"

#include <algorithm>

#include "base/checks.hpp"
#include "base/status_macros.hpp"

namespace moeperm {

Status IndexRanks::Build(const Context::Impl& context, const std::int32_t* experts,
                         std::int64_t num_slots, std::int64_t num_experts, bool counted,
                         std::int64_t* bad) {
  *bad = -1;
  MOEPERM_TRY(slot_rows.Allocate(num_slots));
  std::int64_t most = -1;
  for (std::int64_t slot = 0; slot < num_slots; ++slot) {
    most = std::max<std::int64_t>(most, experts[slot]);
  }
  const std::int64_t limit = num_experts > 0 ? num_experts : kMaxRows;
  if (most >= limit) {
    *bad = std::find_if(experts, experts + num_slots,
                        [&](std::int32_t expert) { return expert >= limit; }) -
           experts;
    return {};
  }
  // Where expert numbers are far more than slots, histograms would cost more than they save.
  if (!counted) num_experts = most + 1;
  constexpr std::int64_t kAlwaysCounted = std::int64_t{1} << 16;
  if (!counted && num_experts > std::max(kAlwaysCounted, num_slots)) {
    return SparseSort(experts, num_slots);
  }
  return CountingSort(context, experts, num_slots, num_experts);
}

// Each block of slots counts its experts; the sums over the blocks before give it the rank of its
// first route of each.
Status IndexRanks::CountingSort(const Context::Impl& context, const std::int32_t* experts,
                                std::int64_t num_slots, std::int64_t num_experts) {
  // A block is worth its histogram only where it has more slots than that has elements.
  const int parts = TaskCount(*context.pool, num_slots / std::max<std::int64_t>(num_experts, 1) + 1,
                              num_slots * std::int64_t{16}, 1);
  Buffer<std::int32_t> ranks;
  MOEPERM_TRY(ranks.Allocate(parts * num_experts));
  MOEPERM_TRY(tokens_per_expert.Allocate(num_experts));
  context.pool->Run(parts, [&](int part) {
    std::int32_t* count = ranks.data() + part * num_experts;
    std::fill_n(count, num_experts, 0);
    const Range slots = CutRange(num_slots, parts, part);
    for (std::int64_t slot = slots.begin; slot < slots.end; ++slot) {
      if (experts[slot] >= 0) ++count[experts[slot]];
    }
  });
  std::int64_t rank = 0;
  for (std::int64_t e = 0; e < num_experts; ++e) {
    const std::int64_t begin = rank;
    for (int part = 0; part < parts; ++part) {
      std::int32_t& count = ranks[part * num_experts + e];
      const std::int32_t routes = count;
      count = static_cast<std::int32_t>(rank);
      rank += routes;
    }
    tokens_per_expert[e] = rank - begin;
  }
  num_routes = rank;
  context.pool->Run(parts, [&](int part) {
    std::int32_t* next = ranks.data() + part * num_experts;
    const Range slots = CutRange(num_slots, parts, part);
    for (std::int64_t slot = slots.begin; slot < slots.end; ++slot) {
      slot_rows[slot] = experts[slot] < 0 ? -1 : next[experts[slot]]++;
    }
  });
  return {};
}

Status IndexRanks::SparseSort(const std::int32_t* experts, std::int64_t num_slots) {
  Buffer<std::int32_t> order;
  MOEPERM_TRY(order.Allocate(num_slots));
  for (std::int64_t slot = 0; slot < num_slots; ++slot) {
    slot_rows[slot] = -1;
    if (experts[slot] >= 0) order[num_routes++] = static_cast<std::int32_t>(slot);
  }
  // By (expert, slot): no two are equal, so any sort is stable.
  std::sort(order.data(), order.data() + num_routes, [&](std::int32_t a, std::int32_t b) {
    return experts[a] != experts[b] ? experts[a] < experts[b] : a < b;
  });
  for (std::int64_t row = 0; row < num_routes; ++row) {
    slot_rows[order[row]] = static_cast<std::int32_t>(row);
  }
  return {};
}

}  // namespace moeperm
