// SPDX-License-Identifier: Apache-2.0
// The shapes speed is measured at: one case as in training, then one axis varied at a time.
// `moeperm bench` and the Google Benchmark program share this table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "moeperm/dtype.hpp"

namespace moeperm::bench {

struct Shape {
  std::string_view name;
  std::int64_t tokens = 4096;
  std::int64_t top_k = 8;
  std::int64_t experts = 256;
  std::int64_t hidden = 7168;
  std::int64_t capacity =
      0;  // rows an expert; above 0 it is drop-and-pad, and top_k routes a token
  DType dtype = DType::kBFloat16;
  DType probs_dtype = DType::kFloat32;
  bool quick = false;  // also with --quick

  [[nodiscard]] constexpr bool drop_and_pad() const { return capacity > 0; }
  [[nodiscard]] constexpr std::int64_t rows() const {
    return drop_and_pad() ? capacity * experts : tokens * top_k;
  }
};

// clang-format off
inline constexpr Shape kShapes[] = {
    {.name = "4096x8x7168", .quick = true},
    {.name = "16384x8x2048", .tokens = 16384, .hidden = 2048, .quick = true},

    {.name = "float32", .dtype = DType::kFloat32},
    {.name = "float16", .dtype = DType::kFloat16},

    {.name = "top_k=1", .top_k = 1},
    {.name = "top_k=2", .top_k = 2},
    {.name = "top_k=4", .top_k = 4},

    {.name = "hidden=512", .hidden = 512},
    {.name = "hidden=2048", .hidden = 2048},
    {.name = "hidden=4096", .hidden = 4096},
    {.name = "hidden=7169", .hidden = 7169},

    {.name = "tokens=1", .tokens = 1},
    {.name = "tokens=16", .tokens = 16},
    {.name = "tokens=256", .tokens = 256},
    {.name = "tokens=1024", .tokens = 1024},
    {.name = "tokens=16384", .tokens = 16384},
    {.name = "tokens=65536", .tokens = 65536},

    {.name = "experts=8", .experts = 8},
    {.name = "experts=64", .experts = 64},
    {.name = "experts=1024", .experts = 1024},

    // The founding case of drop-and-pad: as many rows as tokens.
    {.name = "capacity=16 float32", .top_k = 1, .capacity = 16, .dtype = DType::kFloat32, .probs_dtype = DType::kFloat32, .quick = true},
    {.name = "capacity=16", .top_k = 1, .capacity = 16},
    {.name = "capacity=128", .capacity = 128},
    {.name = "capacity=128 hidden=2048", .hidden = 2048, .capacity = 128},
};
// clang-format on

// Memory a shape needs: tokens and their gradients, permuted tokens and theirs, the probs, the map.
constexpr std::uint64_t MemoryBytes(const Shape& shape, std::size_t element) {
  const auto wide = static_cast<std::uint64_t>(shape.hidden) * element;
  return static_cast<std::uint64_t>(2 * (shape.tokens + shape.rows())) * wide +
         static_cast<std::uint64_t>(shape.tokens * shape.experts) * 9;
}

inline constexpr std::uint64_t kMaxMemoryBytes = std::uint64_t{6} << 30;  // larger ones are skipped

}  // namespace moeperm::bench
