// SPDX-License-Identifier: Apache-2.0
// Runs the example of the README, which stands in example.inc.
#include <moeperm/moeperm.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>

int main() {
  constexpr std::int64_t tokens = 3;
  constexpr std::int64_t hidden = 2;
  constexpr std::int64_t experts = 3;
  constexpr std::int64_t top_k = 2;
  constexpr std::int64_t rows = tokens * top_k;
  const float x[] = {1, 10, 2, 20, 3, 30};
  const bool routing_map[] = {true, false, true, true, true, false, false, true, true};
  const float dy[] = {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60};
  float y[rows * hidden];
  std::int32_t sorted_indices[rows];
  float dx[tokens * hidden];
  {
#include "example.inc"
  }
  const float want_y[] = {1, 10, 2, 20, 2, 20, 3, 30, 1, 10, 3, 30};
  const float want_dx[] = {6, 60, 5, 50, 10, 100};
  return std::equal(y, y + rows * hidden, want_y) && std::equal(dx, dx + tokens * hidden, want_dx)
             ? 0
             : 1;
}
