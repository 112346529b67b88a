// SPDX-License-Identifier: Apache-2.0
#include "cli/expert_load.hpp"

#include <algorithm>
#include <numeric>

namespace moeperm::cli {

ExpertLoad SummarizeLoad(std::span<const std::int64_t> tokens_per_expert,
                         std::optional<std::int64_t> capacity) {
  ExpertLoad load;
  load.tokens_per_expert.assign(tokens_per_expert.begin(), tokens_per_expert.end());
  load.capacity = capacity;
  if (tokens_per_expert.empty()) return load;
  const auto [least, most] = std::ranges::minmax(tokens_per_expert);
  load.least = least;
  load.most = most;
  load.routes = std::reduce(tokens_per_expert.begin(), tokens_per_expert.end());
  load.mean = static_cast<double>(load.routes) / static_cast<double>(tokens_per_expert.size());
  load.empty = std::ranges::count(tokens_per_expert, 0);
  if (capacity) {
    for (const std::int64_t tokens : tokens_per_expert) {
      load.dropped += std::max<std::int64_t>(0, tokens - *capacity);
      load.padded += std::max<std::int64_t>(0, *capacity - tokens);
    }
  }
  return load;
}

}  // namespace moeperm::cli
