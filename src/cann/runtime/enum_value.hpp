// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace moeperm::cann {

// The number that a program passed as an enum, which may be none of its values: the language knows
// no such enum, so its bits are looked at instead.
template <class Enum>
std::int64_t EnumValue(const Enum& given) {
  std::underlying_type_t<Enum> value;
  std::memcpy(&value, &given, sizeof value);
  return static_cast<std::int64_t>(value);
}

}  // namespace moeperm::cann
