// SPDX-License-Identifier: Apache-2.0
#include "cann/ops/table.hpp"

#include <algorithm>
#include <limits>

namespace moeperm::cann {

Window WindowOf(std::int64_t start, std::int64_t end) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const std::int64_t first = std::max<std::int64_t>(start, 0);
  // So far below 0 no tensor has the rows; kMost + 1 is as far.
  const std::int64_t from = std::max(start, -kMost - 1);
  if (end <= first || first > kMost) return {};
  return {first, end - first, first - from};
}

Window WindowOf(const IntsArg& range) {
  if (!range.values || range.values->size() != 2) return {};
  return WindowOf((*range.values)[0], (*range.values)[1]);
}

Status BindSlots(const TensorArg& arg, std::int64_t slots, Launch* launch, View* view) {
  MOEPERM_TRY(launch->Input(arg, view));
  if (arg.rank() != 1) return op_msg::RankNeeded(arg.name, arg.rank(), "1");
  if (arg.dim(0) < slots) return op_msg::TooShort(arg.name, arg.dim(0), slots, "tokens x topK");
  *view = view->Slice(0, slots);
  return {};
}

Status BindRows(const TensorArg& arg, std::size_t rank, const Window& window, Launch* launch,
                View* view) {
  MOEPERM_TRY(launch->Input(arg, view));
  if (arg.rank() != rank) return op_msg::RankNeeded(arg.name, arg.rank(), rank == 1 ? "1" : "2");
  if (arg.dim(0) - window.at < window.count) {
    return op_msg::TooShort(arg.name, arg.dim(0), window.count + window.at, "rows of the range");
  }
  *view = view->Slice(window.at, window.count);
  return {};
}

}  // namespace moeperm::cann
