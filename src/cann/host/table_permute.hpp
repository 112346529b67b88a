// SPDX-License-Identifier: Apache-2.0
// The permutations by a table of expert numbers: a sort of the table's numbers, then copies of rows
// (s_tiling.hpp).
#pragma once

#include <algorithm>

#include "cann/host/op_def.hpp"
#include "cann/host/s_tiling.hpp"

namespace moeperm::cann::host {

struct TableSizes {
  std::int64_t tokens, top_k, hidden, element_bytes;
  std::int64_t rows;                                                   // permuted ones
  [[nodiscard]] std::int64_t slots() const { return tokens * top_k; }  // after CheckTableLimits()
};
struct EpRange {
  std::int64_t start, end;
  std::int64_t prob_bytes;  // 0: no probs
};

Status RefusePadded(const Problem& problem, std::size_t attr);
// Inputs 0 and 1; all but the rows.
Status ReadTable(const Problem& problem, TableSizes* sizes);
Status CheckTableLimits(const TableSizes& sizes);
// Outputs 0 and 1.
Status CheckPermuted(const Problem& problem, const TableSizes& sizes);
// All numbers, key, block dim, workspace. `range`: of the operator that has one.
void TileTable(const TableSizes& sizes, const EpRange* range, const Platform& platform,
               TilingBuilder* builder);

}  // namespace moeperm::cann::host
