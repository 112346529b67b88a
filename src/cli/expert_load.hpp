// SPDX-License-Identifier: Apache-2.0
// How evenly a routing map fills the experts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace moeperm::cli {

struct ExpertLoad {
  std::vector<std::int64_t> tokens_per_expert;
  std::optional<std::int64_t> capacity;  // drop-and-pad

  std::int64_t routes = 0;
  std::int64_t least = 0;
  std::int64_t most = 0;
  double mean = 0;
  std::int64_t empty = 0;    // experts without a token
  std::int64_t dropped = 0;  // routes beyond capacity
  std::int64_t padded = 0;   // rows of experts with fewer tokens than capacity

  // The busiest expert over the mean: 1 is perfectly even. 0 without routes.
  [[nodiscard]] double imbalance() const noexcept {
    return mean > 0 ? static_cast<double>(most) / mean : 0;
  }
  [[nodiscard]] double drop_rate() const noexcept {
    return routes > 0 ? static_cast<double>(dropped) / static_cast<double>(routes) : 0;
  }
};

ExpertLoad SummarizeLoad(std::span<const std::int64_t> tokens_per_expert,
                         std::optional<std::int64_t> capacity);

}  // namespace moeperm::cli
