// SPDX-License-Identifier: Apache-2.0
// One read of a routing map: every token's experts, and where each expert's routes stand in the
// row order.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "base/context.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm {

// The tokens are cut into blocks, one a task. A route's rank is its place when routes are counted
// expert by expert, tokens ascending inside an expert: the row order. A block finds the ranks of
// its routes alone, from the rank its first route of each expert has.
class RouteScan {
 public:
  struct Block {
    std::int64_t token_begin = 0;
    std::int64_t token_end = 0;
    std::int64_t slot_begin = 0;  // slots of all blocks before it
    std::int64_t num_slots = 0;
    Buffer<std::int32_t> experts;     // [>= num_slots], token by token, ascending inside a token
    Buffer<std::int32_t> next_ranks;  // [num_experts]: rank of the next route of the expert here
    Status status;
  };

  // Reads the map once, in parallel. `routes_hint`: routes a token is likely to have; a wrong one
  // costs memory or time only. More than 2^31 - 1 routes are refused.
  Status Scan(const Context::Impl& context, const ConstTensorView& map, std::int64_t routes_hint);

  // The lowest token with more than top_k routes is an error.
  [[nodiscard]] Status CheckRouteCounts(std::int64_t top_k) const;

  [[nodiscard]] std::int64_t num_tokens() const { return num_tokens_; }
  [[nodiscard]] std::int64_t num_experts() const { return num_experts_; }
  [[nodiscard]] std::int64_t num_routes() const { return num_routes_; }
  // [num_tokens]
  [[nodiscard]] const Buffer<std::int32_t>& token_counts() const { return token_counts_; }
  // [num_experts + 1]: the rank of each expert's first route; the last is num_routes().
  [[nodiscard]] const Buffer<std::int64_t>& expert_begins() const { return expert_begins_; }

  // Calls body(block) for every block, in parallel; each may use up its next_ranks.
  template <class Body>
  void ForEachBlock(const Context::Impl& context, const Body& body) {
    context.pool->Run(static_cast<int>(blocks_.size()),
                      [&](int i) { body(blocks_[static_cast<std::size_t>(i)]); });
  }

 private:
  void RankExperts();

  std::int64_t num_tokens_ = 0;
  std::int64_t num_experts_ = 0;
  std::int64_t num_routes_ = 0;
  std::vector<Block> blocks_;
  Buffer<std::int32_t> token_counts_;
  Buffer<std::int64_t> expert_begins_;
};

}  // namespace moeperm
