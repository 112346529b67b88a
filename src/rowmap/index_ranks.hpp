// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/buffer.hpp"
#include "base/context.hpp"

namespace moeperm {

// The row of each slot, from the expert of each slot: slots ordered by expert, slots ascending
// inside one; a stable counting sort. A negative expert is none: its slot's row is -1.
struct IndexRanks {
  Buffer<std::int32_t> slot_rows;  // [num_slots]
  std::int64_t num_routes = 0;
  Buffer<std::int64_t> tokens_per_expert;  // [num_experts]: routes of each; with `counted`

  // num_experts 0: as many as there are, at most 2^31 - 1. The lowest slot whose expert is not
  // below num_experts is *bad, -1 where there is none.
  Status Build(const Context::Impl& context, const std::int32_t* experts, std::int64_t num_slots,
               std::int64_t num_experts, bool counted, std::int64_t* bad);

 private:
  Status CountingSort(const Context::Impl& context, const std::int32_t* experts,
                      std::int64_t num_slots, std::int64_t num_experts);
  Status SparseSort(const std::int32_t* experts, std::int64_t num_slots);
};

}  // namespace moeperm
