// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/isa.hpp"

namespace moeperm {

// Elements past the routes found that ScanRow may write to its output.
inline constexpr std::int64_t kScanSlack = 8;

// Appends the columns of the bytes of row [0, experts) that are not 0, ascending, to `out`, which
// has room for experts + kScanSlack. Returns how many there are.
using ScanRow = std::int64_t (*)(const std::uint8_t* row, std::int64_t experts, std::int32_t* out);

ScanRow ScanRowFor(const Isa& isa);

}  // namespace moeperm
