// SPDX-License-Identifier: Apache-2.0
#include "rowmap/route_scan.hpp"

#include <algorithm>

#include "base/checks.hpp"
#include "base/status_macros.hpp"
#include "rowmap/map_view.hpp"
#include "rowmap/scan_kernel.hpp"

namespace moeperm {
namespace {

// Routes a token that memory is set aside for at first: a caller may allow every expert and use
// few.
constexpr std::int64_t kMaxHint = 32;

Status ScanBlock(const ConstTensorView& map, ScanRows scan_rows, std::int64_t routes_hint,
                 Buffer<std::int32_t>* token_counts, RouteScan::Block* block) {
  MapRows rows(map);
  MOEPERM_TRY(rows.Prepare());
  ScanJob job;
  job.experts = map.shape(1);
  MOEPERM_TRY(block->next_ranks.Allocate(job.experts));
  std::fill_n(block->next_ranks.data(), job.experts, 0);
  job.histogram = block->next_ranks.data();
  const std::int64_t room = job.experts + kScanSlack;  // what one more token may need
  const std::int64_t tokens = block->token_end - block->token_begin;
  MOEPERM_TRY(
      block->experts.Allocate(tokens * std::min({routes_hint, job.experts, kMaxHint}) + room));
  std::int64_t used = 0;
  for (std::int64_t token = block->token_begin; token < block->token_end;) {
    const std::int64_t count = std::min(block->token_end - token, rows.MaxRows());
    job.rows = rows.Rows(token, count, &job.row_bytes);
    job.tokens = count;
    job.counts = token_counts->data() + token;
    job.found = block->experts.data() + used;
    job.room = block->experts.size() - used;
    const ScanResult result = scan_rows(job);
    token += result.tokens;
    used += result.routes;
    if (used > kMaxRows) return msg::TooManyRoutes(used, kMaxRows);
    if (result.tokens < count) {
      MOEPERM_TRY(block->experts.Grow(used, used + used / 2 + 64 * room));
    }
  }
  block->num_slots = used;
  return {};
}

}  // namespace

Status RouteScan::Scan(const Context::Impl& context, const ConstTensorView& map,
                       std::int64_t routes_hint) {
  num_tokens_ = map.shape(0);
  num_experts_ = map.shape(1);
  MOEPERM_TRY(token_counts_.Allocate(num_tokens_));
  MOEPERM_TRY(expert_begins_.Allocate(num_experts_ + 1));
  // Blocks have a histogram each: few, and only as many as are worth one. One a thread, so that a
  // block is used up where it was made.
  const int count = std::max(
      1, TaskCount(*context.pool, num_tokens_, num_tokens_ * num_experts_, /*per_thread=*/1));
  blocks_ = std::vector<Block>(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const Range tokens = CutRange(num_tokens_, count, i);
    blocks_[static_cast<std::size_t>(i)].token_begin = tokens.begin;
    blocks_[static_cast<std::size_t>(i)].token_end = tokens.end;
  }
  const ScanRows scan_rows = ScanRowsFor(*context.isa);
  ForEachBlock(context, [&](Block& block) {
    block.status =
        ScanBlock(map, scan_rows, std::max<std::int64_t>(routes_hint, 1), &token_counts_, &block);
  });
  num_routes_ = 0;
  for (Block& block : blocks_) {
    MOEPERM_TRY(block.status);
    block.slot_begin = num_routes_;
    num_routes_ += block.num_slots;
  }
  if (num_routes_ > kMaxRows) return msg::TooManyRoutes(num_routes_, kMaxRows);
  RankExperts();
  return {};
}

Status RouteScan::CheckRouteCounts(std::int64_t top_k) const {
  for (std::int64_t token = 0; token < num_tokens_; ++token) {
    const std::int32_t routes = token_counts_[token];
    if (routes > top_k) return msg::RouteCount(token, routes, top_k);
  }
  return {};
}

// Turns the blocks' histograms into the ranks of their first routes.
void RouteScan::RankExperts() {
  // Expert by expert over all blocks, but block by block in memory: first the totals.
  std::fill_n(expert_begins_.data(), num_experts_ + 1, 0);
  for (const Block& block : blocks_) {
    for (std::int64_t e = 0; e < num_experts_; ++e) expert_begins_[e + 1] += block.next_ranks[e];
  }
  for (std::int64_t e = 0; e < num_experts_; ++e) expert_begins_[e + 1] += expert_begins_[e];
  // Then each block takes what is left of an expert from the back: the last block first.
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    for (std::int64_t e = 0; e < num_experts_; ++e) {
      // next_ranks of the block behind, or the expert's end, minus this block's routes
      const std::int64_t end =
          block == blocks_.rbegin() ? expert_begins_[e + 1] : std::prev(block)->next_ranks[e];
      block->next_ranks[e] = static_cast<std::int32_t>(end - block->next_ranks[e]);
    }
  }
}

}  // namespace moeperm
