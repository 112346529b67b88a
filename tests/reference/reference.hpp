// SPDX-License-Identifier: Apache-2.0
// The plain reference: what the operators mean, scalar and obvious. It includes nothing of the
// library and shares no code with it, so that a fault there cannot hide here. Tensors are dense and
// row-major; every number type is its bit pattern. `moeperm check` links it too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moeperm_reference {

enum class Type { kFloat32, kFloat16, kBFloat16 };

// Exact widening of one element (bits in the low part of `bits`).
float Widen(Type type, std::uint32_t bits);
// One rounding, to nearest even; subnormals kept; overflow gives infinity; every NaN becomes the
// canonical one (0x7FC00000, 0x7E00, 0x7FC0).
std::uint32_t Narrow(Type type, float value);

// A dense [rows, cols] array of bit patterns (one uint32 an element would cost too much at full
// size): bytes as they lie in memory, 4 or 2 an element.
struct Matrix {
  Type type = Type::kFloat32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<std::uint8_t> bytes;

  Matrix() = default;
  Matrix(Type type, std::int64_t rows, std::int64_t cols);  // every bit 0
  std::uint32_t Get(std::int64_t row, std::int64_t col) const;
  void Set(std::int64_t row, std::int64_t col, std::uint32_t bits);
};

// [tokens, experts], a byte that is not 0 is a route.
struct RoutingMap {
  std::int64_t tokens = 0;
  std::int64_t experts = 0;
  std::vector<std::uint8_t> bytes;
};

struct Permuted {
  Matrix tokens;                             // [rows, hidden]
  Matrix probs;                              // [rows, 1]; no elements without probs
  std::vector<std::int64_t> sorted_indices;  // [tokens * top_k] or [rows]
  std::vector<std::int64_t> row_tokens;      // [rows], -1 = a zero row
  std::vector<std::int64_t> tokens_per_expert;
  std::vector<std::int64_t> expert_offsets;  // [experts + 1]
};

// `probs` may be null. Throws std::invalid_argument where the operator must refuse.
Permuted Permute(const Matrix& tokens, const RoutingMap& map, const Matrix* probs,
                 std::int64_t num_out_tokens, std::int64_t top_k, bool drop_and_pad);

// permuted_tokens_grad [R, H] -> [num_tokens, H]. Not padded: top_k = slots / num_tokens; slots
// below 0 are skipped, slots >= R too.
Matrix TokensGrad(const Matrix& permuted_tokens_grad,
                  const std::vector<std::int64_t>& sorted_indices, std::int64_t num_tokens,
                  bool drop_and_pad);

// permuted_probs_grad [R, 1] -> [tokens, experts], not padded: the map alone decides.
Matrix ProbsGradByMap(const Matrix& permuted_probs_grad, const RoutingMap& map);
// The same in drop-and-pad mode: the indices alone decide.
Matrix ProbsGradByIndex(const Matrix& permuted_probs_grad,
                        const std::vector<std::int64_t>& sorted_indices, std::int64_t num_tokens,
                        std::int64_t num_experts);

}  // namespace moeperm_reference
