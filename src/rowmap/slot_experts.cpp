// SPDX-License-Identifier: Apache-2.0
#include "rowmap/slot_experts.hpp"

#include "base/status_macros.hpp"
#include "rowmap/route_scan.hpp"

namespace moeperm {

Status FindSlotExperts(const Context::Impl& context, const ConstTensorView& map, std::int64_t top_k,
                       Buffer<std::int32_t>* slot_experts) {
  RouteScan scan;
  MOEPERM_TRY(scan.Scan(context, map, top_k));
  MOEPERM_TRY(scan.CheckRouteCounts(top_k));
  MOEPERM_TRY(slot_experts->Allocate(scan.num_tokens() * top_k));
  scan.ForEachBlock(context, [&](RouteScan::Block& block) {
    const std::int32_t* expert = block.experts.data();
    std::int32_t* slot = slot_experts->data() + block.token_begin * top_k;
    for (std::int64_t token = block.token_begin; token < block.token_end; ++token) {
      const std::int64_t routes = scan.token_counts()[token];
      for (std::int64_t k = 0; k < top_k; ++k) *slot++ = k < routes ? *expert++ : -1;
    }
  });
  return {};
}

}  // namespace moeperm
