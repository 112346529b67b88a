// SPDX-License-Identifier: Apache-2.0
#include "reference/row_map.hpp"

#include <algorithm>
#include <limits>

namespace moeperm_reference {
namespace {

using Ints = std::vector<std::int64_t>;

std::size_t Index(std::int64_t i) { return static_cast<std::size_t>(i); }
std::int64_t SizeOf(const Ints& list) { return static_cast<std::int64_t>(list.size()); }

bool IsRoute(const RoutingMap& map, std::int64_t token, std::int64_t expert) {
  return map.bytes[Index(token * map.experts + expert)] != 0;
}

// The tokens of an expert that keep their route, ascending.
Ints Kept(const RoutingMap& map, const RowMapRules& rules, const Matrix* probs,
          std::int64_t expert) {
  Ints tokens;
  for (std::int64_t token = 0; token < map.tokens; ++token) {
    if (IsRoute(map, token, expert)) {
      tokens.push_back(token);
    }
  }
  const bool limited = rules.drop_and_pad || rules.capacity > 0;
  if (!limited || SizeOf(tokens) <= rules.capacity) {
    return tokens;
  }
  if (rules.keep_highest_probs) {
    const auto prob = [&](std::int64_t token) {
      const float value = Widen(probs->type, probs->Get(token, expert));
      return value == value ? value : -std::numeric_limits<float>::infinity();
    };
    std::stable_sort(tokens.begin(), tokens.end(),
                     [&](std::int64_t a, std::int64_t b) { return prob(a) > prob(b); });
  }
  tokens.resize(Index(rules.capacity));
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

// The rows of an expert after its `kept` first ones.
Ints Pads(const RoutingMap& map, const RowMapRules& rules, std::int64_t expert, std::int64_t kept) {
  Ints pads;
  if (rules.drop_and_pad) {
    for (std::int64_t token = 0; kept + SizeOf(pads) < rules.capacity; ++token) {
      if (rules.mask_pads) {
        pads.push_back(-1);
      } else if (!IsRoute(map, token, expert)) {
        pads.push_back(token);
      }
    }
    return pads;
  }
  while ((kept + SizeOf(pads)) % rules.align != 0 ||
         (kept + SizeOf(pads) == 0 && rules.pad_empty_experts)) {
    pads.push_back(-1);
  }
  return pads;
}

}  // namespace

PlainRowMap MakeRowMap(const RoutingMap& map, const RowMapRules& rules, const Matrix* probs) {
  PlainRowMap out;
  out.expert_offsets.push_back(0);
  Ints row_of(Index(map.tokens * map.experts), -1);  // of a route
  for (std::int64_t expert = 0; expert < map.experts; ++expert) {
    const Ints kept = Kept(map, rules, probs, expert);
    for (const std::int64_t token : kept) {
      row_of[Index(token * map.experts + expert)] = SizeOf(out.row_tokens);
      out.row_tokens.push_back(token);
    }
    const Ints pads = Pads(map, rules, expert, SizeOf(kept));
    out.row_tokens.insert(out.row_tokens.end(), pads.begin(), pads.end());
    out.expert_offsets.push_back(SizeOf(out.row_tokens));
    out.kept_per_expert.push_back(SizeOf(kept));
  }
  if (rules.num_rows && !rules.drop_and_pad) {
    const std::int64_t rows = *rules.num_rows;
    out.row_tokens.resize(Index(rows), -1);
    for (std::int64_t expert = 0; expert < map.experts; ++expert) {
      std::int64_t& kept = out.kept_per_expert[Index(expert)];
      kept = std::clamp<std::int64_t>(rows - out.expert_offsets[Index(expert)], 0, kept);
    }
    for (std::int64_t& offset : out.expert_offsets) {
      offset = std::min(offset, rows);
    }
  }
  for (const std::uint8_t byte : map.bytes) {
    out.num_routes += byte != 0 ? 1 : 0;
  }
  out.num_dropped = out.num_routes;
  for (const std::int64_t kept : out.kept_per_expert) {
    out.num_dropped -= kept;
  }
  if (rules.drop_and_pad) {  // a slot for each row with a token, pad rows included
    for (std::int64_t expert = 0; expert < map.experts; ++expert) {
      for (std::int64_t row = out.expert_offsets[Index(expert)];
           row < out.expert_offsets[Index(expert + 1)]; ++row) {
        if (out.row_tokens[Index(row)] >= 0) {
          out.slots.push_back({out.row_tokens[Index(row)], row, expert, false});
        }
      }
    }
    return out;
  }
  for (std::int64_t token = 0; token < map.tokens; ++token) {  // a slot for each route
    bool first = true;
    for (std::int64_t expert = 0; expert < map.experts; ++expert) {
      if (!IsRoute(map, token, expert)) {
        continue;
      }
      const std::int64_t row = row_of[Index(token * map.experts + expert)];
      out.slots.push_back({token, row < SizeOf(out.row_tokens) ? row : -1, expert, first});
      first = false;
    }
  }
  return out;
}

}  // namespace moeperm_reference
