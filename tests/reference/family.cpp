// SPDX-License-Identifier: Apache-2.0
#include "reference/family.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace moeperm_reference {
namespace {

std::size_t Index(std::int64_t i) { return static_cast<std::size_t>(i); }

void Require(bool condition, const char* what) {
  if (!condition) {
    throw std::invalid_argument(what);
  }
}

std::int64_t SlotsOfAToken(std::int64_t slots, std::int64_t tokens) {
  Require(tokens == 0 ? slots == 0 : slots % tokens == 0, "the slots are no multiple of tokens");
  return tokens == 0 ? 0 : slots / tokens;
}

// A slot without a weight weighs +0.
float WeightOf(const Matrix& probs, const Slot& slot) {
  return slot.column < 0 ? 0.0F : Widen(probs.type, probs.Get(slot.token, slot.column));
}

void CopyRow(const Matrix& from, std::int64_t from_row, Matrix& to, std::int64_t to_row) {
  for (std::int64_t h = 0; h < from.cols; ++h) {
    to.Set(to_row, h, from.Get(from_row, h));
  }
}

// Sixteen sums, each of every sixteenth product; then halved until one is left.
std::uint32_t Dot(const Matrix& a, std::int64_t a_row, const Matrix& b, std::int64_t b_row,
                  Type type) {
  std::array<float, 16> lanes{};
  for (std::int64_t h = 0; h < a.cols; ++h) {
    const float product = Widen(a.type, a.Get(a_row, h)) * Widen(b.type, b.Get(b_row, h));
    lanes[Index(h % 16)] = lanes[Index(h % 16)] + product;
  }
  for (const std::size_t half : {8U, 4U, 2U, 1U}) {
    for (std::size_t lane = 0; lane < half; ++lane) {
      lanes[lane] = lanes[lane] + lanes[lane + half];
    }
  }
  return Narrow(type, lanes[0]);
}

}  // namespace

TablePermuted PermuteByTable(const Matrix& tokens, const std::vector<std::int64_t>& experts,
                             std::int64_t num_experts, const Matrix* probs,
                             std::int64_t num_out_tokens, std::int64_t first_row) {
  const auto slots = static_cast<std::int64_t>(experts.size());
  const std::int64_t top_k = SlotsOfAToken(slots, tokens.rows);
  if (num_experts == 0) {
    for (const std::int64_t expert : experts) {
      num_experts = std::max(num_experts, expert + 1);
    }
  }
  std::vector<std::int64_t> routes;  // slots with an expert; stable sort keeps them ascending
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    Require(experts[Index(slot)] < num_experts, "there is no such expert");
    if (experts[Index(slot)] >= 0) {
      routes.push_back(slot);
    }
  }
  std::stable_sort(routes.begin(), routes.end(), [&](std::int64_t a, std::int64_t b) {
    return experts[Index(a)] < experts[Index(b)];
  });
  TablePermuted out{Matrix(tokens.type, num_out_tokens, tokens.cols),
                    Matrix(),
                    std::vector<std::int64_t>(Index(slots), -1),
                    {}};
  if (probs != nullptr) {
    out.probs = Matrix(probs->type, num_out_tokens, 1);
  }
  if (num_experts < 100000) {  // more are never counted
    out.tokens_per_expert.assign(Index(num_experts), 0);
  }
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(routes.size()); ++row) {
    const std::int64_t slot = routes[Index(row)];
    out.sorted_indices[Index(slot)] = row;
    if (!out.tokens_per_expert.empty()) {
      ++out.tokens_per_expert[Index(experts[Index(slot)])];
    }
    if (row >= first_row && row - first_row < num_out_tokens) {
      CopyRow(tokens, slot / top_k, out.tokens, row - first_row);
      if (probs != nullptr) {
        out.probs.Set(row - first_row, 0, probs->Get(slot / top_k, slot % top_k));
      }
    }
  }
  return out;
}

std::vector<Slot> SlotsOfTable(const std::vector<std::int64_t>& sorted_indices, std::int64_t tokens,
                               std::int64_t rows, std::int64_t first_row) {
  const auto entries = static_cast<std::int64_t>(sorted_indices.size());
  const std::int64_t top_k = SlotsOfAToken(entries, tokens);
  std::vector<Slot> slots;
  for (std::int64_t i = 0; i < entries; ++i) {
    const std::int64_t index = sorted_indices[Index(i)];
    const bool has_row = index >= first_row && index - first_row < rows;
    slots.push_back({i / top_k, has_row ? index - first_row : -1, i % top_k, i % top_k == 0});
  }
  return slots;
}

std::vector<Slot> SlotsOfMap(const std::vector<std::int64_t>& sorted_indices, const RoutingMap& map,
                             std::int64_t rows) {
  std::vector<Slot> slots = SlotsOfTable(sorted_indices, map.tokens, rows, 0);
  for (Slot& slot : slots) {
    slot.column = -1;
  }
  const std::int64_t top_k =
      SlotsOfAToken(static_cast<std::int64_t>(sorted_indices.size()), map.tokens);
  for (std::int64_t token = 0; token < map.tokens; ++token) {
    std::int64_t k = 0;
    for (std::int64_t expert = 0; expert < map.experts; ++expert) {
      if (map.bytes[Index(token * map.experts + expert)] != 0) {
        Require(k < top_k, "a token has more experts than slots");
        slots[Index(token * top_k + k)].column = expert;
        ++k;
      }
    }
  }
  return slots;
}

std::vector<Slot> SlotsOfRows(const std::vector<std::int64_t>& sorted_indices, std::int64_t tokens,
                              std::int64_t experts) {
  const auto rows = static_cast<std::int64_t>(sorted_indices.size());
  Require(experts == 0 || rows % experts == 0, "the rows are no multiple of the experts");
  std::vector<Slot> slots;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t token = sorted_indices[Index(row)];
    Require(token >= 0 && token < tokens, "there is no such token");
    slots.push_back({token, row, experts == 0 ? -1 : row / (rows / experts), false});
  }
  return slots;
}

Matrix SumSlots(const Matrix& rows, const std::vector<Slot>& slots, std::int64_t tokens,
                const Matrix* probs, const SumRules& rules) {
  Matrix out(rows.type, tokens, rows.cols);
  std::vector<std::vector<Slot>> taken(Index(tokens));
  for (const Slot& slot : slots) {
    const bool skipped = slot.row < 0 || (probs != nullptr && rules.skip_zero_weights &&
                                          WeightOf(*probs, slot) == 0.0F);
    if (!skipped) {
      taken[Index(slot.token)].push_back(slot);
    }
  }
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::vector<Slot>& terms = taken[Index(token)];
    const bool starts_as_first = !terms.empty() && terms[0].first;
    if (probs == nullptr && terms.size() == 1 && starts_as_first) {
      CopyRow(rows, terms[0].row, out, token);  // no sum: every bit pattern stays
      continue;
    }
    for (std::int64_t h = 0; h < rows.cols; ++h) {
      float sum = 0.0F;
      for (std::size_t i = 0; i < terms.size(); ++i) {
        float value = Widen(rows.type, rows.Get(terms[i].row, h));
        if (probs != nullptr) {
          value = value * WeightOf(*probs, terms[i]);
          if (rules.round_products) {
            value = Widen(rows.type, Narrow(rows.type, value));
          }
        }
        sum = i == 0 && starts_as_first ? value : sum + value;
      }
      out.Set(token, h, Narrow(rows.type, sum));
    }
  }
  return out;
}

Matrix SpreadSlots(const Matrix& tokens, const std::vector<Slot>& slots, std::int64_t rows,
                   const Matrix* probs) {
  Matrix out(tokens.type, rows, tokens.cols);
  for (const Slot& slot : slots) {
    if (slot.row < 0 || (probs != nullptr && slot.column < 0)) {
      continue;
    }
    if (probs == nullptr) {
      CopyRow(tokens, slot.token, out, slot.row);
      continue;
    }
    for (std::int64_t h = 0; h < tokens.cols; ++h) {
      const float value = Widen(tokens.type, tokens.Get(slot.token, h)) * WeightOf(*probs, slot);
      out.Set(slot.row, h, Narrow(tokens.type, value));
    }
  }
  return out;
}

Matrix DotSlots(const Matrix& rows, const Matrix& tokens, const std::vector<Slot>& slots, Type type,
                std::int64_t columns) {
  Matrix out(type, tokens.rows, columns);
  for (const Slot& slot : slots) {
    if (slot.column >= 0) {
      out.Set(slot.token, slot.column,
              slot.row < 0 ? 0 : Dot(rows, slot.row, tokens, slot.token, type));
    }
  }
  return out;
}

Matrix WeightsOfSlots(const Matrix& probs, const std::vector<Slot>& slots) {
  Matrix out(probs.type, static_cast<std::int64_t>(slots.size()), 1);
  for (std::int64_t i = 0; i < out.rows; ++i) {
    const Slot& slot = slots[Index(i)];
    if (slot.column >= 0) {
      out.Set(i, 0, probs.Get(slot.token, slot.column));
    }
  }
  return out;
}

Matrix GatherRows(const Matrix& weights, const std::vector<Slot>& slots, std::int64_t tokens,
                  std::int64_t columns) {
  Matrix out(weights.type, tokens, columns);
  for (const Slot& slot : slots) {
    if (slot.row >= 0) {
      out.Set(slot.token, slot.column, weights.Get(slot.row, 0));
    }
  }
  return out;
}

}  // namespace moeperm_reference
