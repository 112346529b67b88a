// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/status_macros.hpp"
#include "rowmap/row_map_impl.hpp"

namespace moeperm {

// Each task owns a range of tokens and reads all of row_tokens, which is small beside what it
// scatters; so rows stay in order without a histogram a task.
Status TokenOfRowIndex::Build(const Context::Impl& context, const std::int32_t* row_tokens,
                              std::int64_t num_rows, std::int64_t num_tokens, std::int64_t* bad) {
  MOEPERM_TRY(offsets.Allocate(num_tokens + 1));
  MOEPERM_TRY(rows.Allocate(num_rows));
  std::int32_t* const count = offsets.data() + 1;  // shifted: the sums below make begins of ends
  std::fill_n(offsets.data(), num_tokens + 1, 0);
  const int parts = TaskCount(*context.pool, num_tokens, num_rows * std::int64_t{4}, 1);
  context.pool->Run(parts, [&](int part) {
    const Range own = CutRange(num_tokens, parts, part);
    const auto width = static_cast<std::uint64_t>(own.end - own.begin);
    for (std::int64_t row = 0; row < num_rows; ++row) {
      const std::int64_t token = row_tokens[row];
      if (static_cast<std::uint64_t>(token - own.begin) < width) ++count[token];
    }
  });
  for (std::int64_t token = 0; token < num_tokens; ++token) offsets[token + 1] += offsets[token];
  *bad = -1;
  if (offsets[num_tokens] != num_rows) {
    for (std::int64_t row = 0; *bad < 0; ++row) {
      if (row_tokens[row] < 0 || row_tokens[row] >= num_tokens) *bad = row;
    }
  }
  context.pool->Run(parts, [&](int part) {
    const Range own = CutRange(num_tokens, parts, part);
    const auto width = static_cast<std::uint64_t>(own.end - own.begin);
    for (std::int64_t row = 0; row < num_rows; ++row) {
      const std::int64_t token = row_tokens[row];
      if (static_cast<std::uint64_t>(token - own.begin) < width) {
        rows[offsets[token]++] = static_cast<std::int32_t>(row);
      }
    }
  });
  // Every begin has moved to its end, which is the next begin.
  for (std::int64_t token = num_tokens; token > 0; --token) offsets[token] = offsets[token - 1];
  offsets[0] = 0;
  return {};
}

}  // namespace moeperm
