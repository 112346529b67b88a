// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/isa.hpp"

namespace moeperm {

// Elements past the routes found that ScanRows may write to its output.
inline constexpr std::int64_t kScanSlack = 8;

struct ScanJob {
  const std::uint8_t* rows = nullptr;  // [tokens, experts], a byte that is not 0 is a route
  std::int64_t row_bytes = 0;          // from one row to the next
  std::int64_t tokens = 0;
  std::int64_t experts = 0;
  std::int32_t* found = nullptr;
  std::int64_t room = 0;              // elements of found
  std::int32_t* counts = nullptr;     // [tokens]
  std::int32_t* histogram = nullptr;  // [experts]: each route adds one
};

struct ScanResult {
  std::int64_t tokens = 0;  // done: all, or up to where `found` had no room
  std::int64_t routes = 0;  // found
};

// Appends the experts of each token's routes, ascending, to `found`, token by token.
using ScanRows = ScanResult (*)(const ScanJob& job);

ScanRows ScanRowsFor(const Isa& isa);

}  // namespace moeperm
