// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the tilings: truncating divisions, division by zero giving zero, and 128 bits,
// so that no product of dimensions can overflow on the way. What leaves a tiling is checked to fit
// an int64 (TilingBuilder).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace moeperm::cann::host {

__extension__ using Wide = __int128;

constexpr bool FitsInt64(Wide value) {
  return value >= std::numeric_limits<std::int64_t>::min() &&
         value <= std::numeric_limits<std::int64_t>::max();
}

constexpr Wide SafeDiv(Wide a, Wide b) { return b == 0 ? 0 : a / b; }
constexpr Wide SafeMod(Wide a, Wide b) { return b == 0 ? 0 : a % b; }

// ceil(a / b) for positive a; for others what (a + b - 1) / b truncates to.
constexpr Wide CeilDiv(Wide a, Wide b) { return b == 0 ? 0 : (a + b - 1) / b; }

// To the next multiple of a power of two, toward positive infinity for negative numbers too.
constexpr Wide AlignUp(Wide value, Wide power_of_two) {
  return (value + power_of_two - 1) & ~(power_of_two - 1);
}
// Toward zero.
constexpr Wide AlignDown(Wide value, Wide multiple) { return value / multiple * multiple; }

// nullopt where the product does not fit an int64.
inline std::optional<std::int64_t> Product(std::span<const std::int64_t> dims) {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) {
    if (__builtin_mul_overflow(product, dim, &product)) return std::nullopt;
  }
  return product;
}

}  // namespace moeperm::cann::host
