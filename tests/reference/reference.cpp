// SPDX-License-Identifier: Apache-2.0
#include "reference/reference.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace moeperm_reference {
namespace {

constexpr std::uint32_t kFloat32Nan = 0x7FC00000;
constexpr std::uint32_t kFloat16Nan = 0x7E00;
constexpr std::uint32_t kBFloat16Nan = 0x7FC0;
constexpr std::uint32_t kFloat32Infinity = 0x7F800000;
constexpr std::uint32_t kFloat16Infinity = 0x7C00;

std::size_t ElementSize(Type type) { return type == Type::kFloat32 ? 4 : 2; }

std::size_t Index(std::int64_t i) { return static_cast<std::size_t>(i); }

// value / 2^shift to the nearest whole number; halfway goes to the even one. 1 <= shift <= 31.
std::uint32_t ShiftRoundingToEven(std::uint32_t value, int shift) {
  const std::uint32_t quotient = value >> shift;
  const std::uint32_t rest = value & ((1U << shift) - 1);
  const std::uint32_t half = 1U << (shift - 1);
  const bool up = rest > half || (rest == half && (quotient & 1) != 0);
  return quotient + (up ? 1 : 0);
}

float WidenFloat16(std::uint32_t bits) {
  const std::uint32_t sign = (bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1F;
  const std::uint32_t mantissa = bits & 0x3FF;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, which a float32 holds exactly
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  if (exponent == 0x1F) {
    return std::bit_cast<float>(sign | kFloat32Infinity | (mantissa << 13));
  }
  return std::bit_cast<float>(sign | ((exponent + 127 - 15) << 23) | (mantissa << 13));
}

// Of a float32 that is not NaN.
std::uint32_t NarrowFloat16(std::uint32_t float_bits) {
  const std::uint32_t sign = (float_bits >> 16) & 0x8000;
  const std::uint32_t magnitude = float_bits & 0x7FFFFFFF;
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  const std::uint32_t significand = (magnitude & 0x7FFFFF) | 0x800000;  // 24 bits
  if (exponent > 15) {
    return sign | kFloat16Infinity;
  }
  if (exponent >= -14) {  // normal; a carry out of the mantissa raises the exponent, as it must
    const std::uint32_t biased = static_cast<std::uint32_t>(exponent + 15);
    return sign | ((biased << 10) + ShiftRoundingToEven(significand, 13) - 0x400);
  }
  if (exponent >= -25) {  // subnormal: in units of 2^-24
    return sign | ShiftRoundingToEven(significand, 13 + (-14 - exponent));
  }
  return sign;
}

// Of a float32 that is not NaN.
std::uint32_t NarrowBFloat16(std::uint32_t float_bits) {
  const std::uint32_t sign = (float_bits >> 16) & 0x8000;
  return sign | ShiftRoundingToEven(float_bits & 0x7FFFFFFF, 16);
}

template <Type kType>
float WidenAs(std::uint32_t bits) {
  switch (kType) {
    case Type::kFloat16:
      return WidenFloat16(bits);
    case Type::kBFloat16:
      return std::bit_cast<float>(bits << 16);
    case Type::kFloat32:
      break;
  }
  return std::bit_cast<float>(bits);
}

template <Type kType>
std::uint32_t NarrowAs(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const bool nan = value != value;
  switch (kType) {
    case Type::kFloat16:
      return nan ? kFloat16Nan : NarrowFloat16(bits);
    case Type::kBFloat16:
      return nan ? kBFloat16Nan : NarrowBFloat16(bits);
    case Type::kFloat32:
      break;
  }
  return nan ? kFloat32Nan : bits;
}

std::uint8_t* RowOf(Matrix& matrix, std::int64_t row) {
  return matrix.bytes.data() + Index(row * matrix.cols) * ElementSize(matrix.type);
}
const std::uint8_t* RowOf(const Matrix& matrix, std::int64_t row) {
  return matrix.bytes.data() + Index(row * matrix.cols) * ElementSize(matrix.type);
}

void CopyRow(const Matrix& from, std::int64_t from_row, Matrix& to, std::int64_t to_row) {
  const std::size_t bytes = Index(from.cols) * ElementSize(from.type);
  if (bytes != 0) {
    std::memcpy(RowOf(to, to_row), RowOf(from, from_row), bytes);
  }
}

// to[to_row] = start + from[rows[0]] + from[rows[1]] + ..., added in this order in float32 and
// rounded once. start_as_first: the sum starts as the first row; otherwise from +0.
template <Type kType>
void SumRowsAs(const Matrix& from, const std::vector<std::int64_t>& rows, bool start_as_first,
               Matrix& to, std::int64_t to_row) {
  using Bits = std::conditional_t<kType == Type::kFloat32, std::uint32_t, std::uint16_t>;
  if (start_as_first && rows.size() == 1) {
    CopyRow(from, rows[0], to, to_row);  // no sum: every bit pattern stays
    return;
  }
  std::vector<float> sums(Index(from.cols), 0.0F);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint8_t* row = RowOf(from, rows[i]);
    for (std::size_t col = 0; col < sums.size(); ++col) {
      Bits bits;
      std::memcpy(&bits, row + col * sizeof(Bits), sizeof(Bits));
      const float value = WidenAs<kType>(bits);
      sums[col] = i == 0 && start_as_first ? value : sums[col] + value;
    }
  }
  for (std::size_t col = 0; col < sums.size(); ++col) {
    const Bits bits = static_cast<Bits>(NarrowAs<kType>(sums[col]));
    std::memcpy(RowOf(to, to_row) + col * sizeof(Bits), &bits, sizeof(Bits));
  }
}

void SumRows(const Matrix& from, const std::vector<std::int64_t>& rows, bool start_as_first,
             Matrix& to, std::int64_t to_row) {
  switch (from.type) {
    case Type::kFloat32:
      return SumRowsAs<Type::kFloat32>(from, rows, start_as_first, to, to_row);
    case Type::kFloat16:
      return SumRowsAs<Type::kFloat16>(from, rows, start_as_first, to, to_row);
    case Type::kBFloat16:
      return SumRowsAs<Type::kBFloat16>(from, rows, start_as_first, to, to_row);
  }
}

void Require(bool condition, const char* what) {
  if (!condition) {
    throw std::invalid_argument(what);
  }
}

bool IsRoute(const RoutingMap& map, std::int64_t token, std::int64_t expert) {
  return map.bytes[Index(token * map.experts + expert)] != 0;
}

// Not padded: routes in row order, cut or filled up to `rows` rows; slots of each token in turn.
void PlaceRoutes(const RoutingMap& map, std::int64_t rows, std::int64_t top_k, Permuted& out,
                 std::vector<std::int64_t>& row_experts) {
  out.row_tokens.assign(Index(rows), -1);
  row_experts.assign(Index(rows), -1);
  out.sorted_indices.assign(Index(map.tokens * top_k), -1);
  std::vector<std::int64_t> slots_used(Index(map.tokens), 0);
  std::int64_t row = 0;
  for (std::int64_t expert = 0; expert < map.experts; ++expert) {
    out.expert_offsets.push_back(std::min(row, rows));
    for (std::int64_t token = 0; token < map.tokens; ++token) {
      if (!IsRoute(map, token, expert)) {
        continue;
      }
      ++out.tokens_per_expert[Index(expert)];
      const std::int64_t slot = slots_used[Index(token)]++;
      Require(slot < top_k, "a token has more than top_k routes");
      if (row < rows) {
        out.row_tokens[Index(row)] = token;
        row_experts[Index(row)] = expert;
        out.sorted_indices[Index(token * top_k + slot)] = row;
      }
      ++row;
    }
  }
  out.expert_offsets.push_back(std::min(row, rows));
}

// Drop-and-pad: of each expert the routed tokens, then the unrouted ones, the first `capacity`.
void PlaceCapacity(const RoutingMap& map, std::int64_t capacity, Permuted& out,
                   std::vector<std::int64_t>& row_experts) {
  for (std::int64_t expert = 0; expert < map.experts; ++expert) {
    std::vector<std::int64_t> order;
    for (const bool routed : {true, false}) {
      for (std::int64_t token = 0; token < map.tokens; ++token) {
        if (IsRoute(map, token, expert) == routed) {
          order.push_back(token);
        }
      }
      if (routed) {
        out.tokens_per_expert[Index(expert)] = static_cast<std::int64_t>(order.size());
      }
    }
    out.expert_offsets.push_back(expert * capacity);
    for (std::int64_t i = 0; i < capacity; ++i) {
      out.row_tokens.push_back(order[Index(i)]);
      row_experts.push_back(expert);
    }
  }
  out.expert_offsets.push_back(map.experts * capacity);
  out.sorted_indices = out.row_tokens;
}

}  // namespace

float Widen(Type type, std::uint32_t bits) {
  switch (type) {
    case Type::kFloat16:
      return WidenAs<Type::kFloat16>(bits);
    case Type::kBFloat16:
      return WidenAs<Type::kBFloat16>(bits);
    case Type::kFloat32:
      break;
  }
  return WidenAs<Type::kFloat32>(bits);
}

std::uint32_t Narrow(Type type, float value) {
  switch (type) {
    case Type::kFloat16:
      return NarrowAs<Type::kFloat16>(value);
    case Type::kBFloat16:
      return NarrowAs<Type::kBFloat16>(value);
    case Type::kFloat32:
      break;
  }
  return NarrowAs<Type::kFloat32>(value);
}

Matrix::Matrix(Type type_of_elements, std::int64_t num_rows, std::int64_t num_cols)
    : type(type_of_elements),
      rows(num_rows),
      cols(num_cols),
      bytes(Index(num_rows * num_cols) * ElementSize(type_of_elements)) {}

std::uint32_t Matrix::Get(std::int64_t row, std::int64_t col) const {
  const std::uint8_t* at = RowOf(*this, row) + Index(col) * ElementSize(type);
  if (type == Type::kFloat32) {
    std::uint32_t bits;
    std::memcpy(&bits, at, sizeof(bits));
    return bits;
  }
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}

void Matrix::Set(std::int64_t row, std::int64_t col, std::uint32_t bits) {
  std::uint8_t* at = RowOf(*this, row) + Index(col) * ElementSize(type);
  if (type == Type::kFloat32) {
    std::memcpy(at, &bits, sizeof(bits));
  } else {
    const std::uint16_t low = static_cast<std::uint16_t>(bits);
    std::memcpy(at, &low, sizeof(low));
  }
}

Permuted Permute(const Matrix& tokens, const RoutingMap& map, const Matrix* probs,
                 std::int64_t num_out_tokens, std::int64_t top_k, bool drop_and_pad) {
  Require(tokens.rows == map.tokens, "tokens and routing_map differ in the number of tokens");
  Require(probs == nullptr || (probs->rows == map.tokens && probs->cols == map.experts),
          "probs and routing_map differ in shape");
  Require(num_out_tokens >= 0, "num_out_tokens is negative");
  Permuted out;
  out.tokens_per_expert.assign(Index(map.experts), 0);
  std::vector<std::int64_t> row_experts;
  if (drop_and_pad) {
    const std::int64_t capacity = map.experts == 0 ? 0 : num_out_tokens / map.experts;
    Require(capacity <= map.tokens, "the capacity is above the number of tokens");
    PlaceCapacity(map, capacity, out, row_experts);
  } else {
    Require(top_k >= 0, "top_k is negative");
    PlaceRoutes(map, num_out_tokens, top_k, out, row_experts);
  }

  const std::int64_t rows = static_cast<std::int64_t>(out.row_tokens.size());
  out.tokens = Matrix(tokens.type, rows, tokens.cols);
  if (probs != nullptr) {
    out.probs = Matrix(probs->type, rows, 1);
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t token = out.row_tokens[Index(row)];
    if (token < 0) {
      continue;  // a zero row
    }
    CopyRow(tokens, token, out.tokens, row);
    if (probs != nullptr) {
      out.probs.Set(row, 0, probs->Get(token, row_experts[Index(row)]));
    }
  }
  return out;
}

Matrix TokensGrad(const Matrix& permuted_tokens_grad,
                  const std::vector<std::int64_t>& sorted_indices, std::int64_t num_tokens,
                  bool drop_and_pad) {
  const std::int64_t rows = permuted_tokens_grad.rows;
  const std::int64_t entries = static_cast<std::int64_t>(sorted_indices.size());
  Matrix out(permuted_tokens_grad.type, num_tokens, permuted_tokens_grad.cols);
  std::vector<std::vector<std::int64_t>> rows_of_token(Index(num_tokens));
  std::vector<bool> starts_as_row(Index(num_tokens), false);
  if (drop_and_pad) {
    Require(entries == rows, "sorted_indices and the rows differ in number");
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t token = sorted_indices[Index(row)];
      Require(token >= 0 && token < num_tokens, "sorted_indices names no token");
      rows_of_token[Index(token)].push_back(row);
    }
  } else {
    const std::int64_t top_k = num_tokens == 0 ? 0 : entries / num_tokens;
    Require(entries == num_tokens * top_k, "sorted_indices is no multiple of the tokens");
    for (std::int64_t slot = 0; slot < entries; ++slot) {
      const std::int64_t row = sorted_indices[Index(slot)];
      if (row < 0 || row >= rows) {
        continue;
      }
      rows_of_token[Index(slot / top_k)].push_back(row);
      if (slot % top_k == 0) {
        starts_as_row[Index(slot / top_k)] = true;
      }
    }
  }
  for (std::int64_t token = 0; token < num_tokens; ++token) {
    SumRows(permuted_tokens_grad, rows_of_token[Index(token)], starts_as_row[Index(token)], out,
            token);
  }
  return out;
}

Matrix ProbsGradByMap(const Matrix& permuted_probs_grad, const RoutingMap& map) {
  Matrix out(permuted_probs_grad.type, map.tokens, map.experts);
  std::int64_t rank = 0;
  for (std::int64_t expert = 0; expert < map.experts; ++expert) {
    for (std::int64_t token = 0; token < map.tokens; ++token) {
      if (!IsRoute(map, token, expert)) {
        continue;
      }
      if (rank < permuted_probs_grad.rows) {
        out.Set(token, expert, permuted_probs_grad.Get(rank, 0));
      }
      ++rank;
    }
  }
  return out;
}

Matrix ProbsGradByIndex(const Matrix& permuted_probs_grad,
                        const std::vector<std::int64_t>& sorted_indices, std::int64_t num_tokens,
                        std::int64_t num_experts) {
  Matrix out(permuted_probs_grad.type, num_tokens, num_experts);
  const std::int64_t capacity = num_experts == 0 ? 0 : permuted_probs_grad.rows / num_experts;
  for (std::int64_t row = 0; row < capacity * num_experts; ++row) {
    const std::int64_t token = sorted_indices[Index(row)];
    Require(token >= 0 && token < num_tokens, "sorted_indices names no token");
    out.Set(token, row / capacity, permuted_probs_grad.Get(row, 0));
  }
  return out;
}

}  // namespace moeperm_reference
