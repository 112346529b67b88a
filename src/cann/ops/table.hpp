// SPDX-License-Identifier: Apache-2.0
// What the operators over tables of experts share.
#pragma once

#include "cann/ops/launch.hpp"

namespace moeperm::cann {

// The rows [first, first + count) of the full layout; they stand from row `at` of a tensor on.
struct Window {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t at = 0;
};
// Of the numbers start <= row < end, those that an index can be.
Window WindowOf(std::int64_t start, std::int64_t end);
// Of rangeOptional; nothing where it is null or not of two numbers.
Window WindowOf(const IntsArg& range);

// The first `slots` indices of a tensor of one dimension that has as many.
Status BindSlots(const TensorArg& arg, std::int64_t slots, Launch* launch, View* view);
// The window's rows of a tensor of `rank` dimensions that has them.
Status BindRows(const TensorArg& arg, std::size_t rank, const Window& window, Launch* launch,
                View* view);

}  // namespace moeperm::cann
