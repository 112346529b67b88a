// SPDX-License-Identifier: Apache-2.0
// The two parts of tiling that the permuting operators share: how a sort is cut for the cores, and
// how rows are copied to their places ("index copy").
#pragma once

#include "cann/host/arithmetic.hpp"
#include "cann/host/tiling_builder.hpp"

namespace moeperm::cann::host {

// A sort of `total` keys: cores sort pieces, then runs are merged four at a time.
struct SortSplit {
  Wide need_cores;
  Wide per_core_elements, per_core_loops, per_core_loop_elements, per_core_last_loop_elements;
  Wide last_core_elements, last_core_loops, last_core_loop_elements, last_core_last_loop_elements;
  Wide sort_max;        // keys that one core can sort at once
  Wide last_core_side;  // 1: the last core's runs end up in the other half of the workspace
  bool multi_core;
};

inline constexpr std::int64_t kSortBlock = 32;
inline constexpr std::int64_t kSortElementBytes = 32;  // unified buffer that a key takes
inline constexpr std::int64_t kMergeWidth = 4;
inline constexpr std::int64_t kSortOutElements = 1024;
// A sort has to be shorter than this.
inline constexpr std::int64_t kMaxTotalLength = 16777215;

// Keys that fit the buffer. The routing-map forward passes 0 cores, the others the sorting cores.
Wide SortMax(Wide ub_bytes, Wide cores);
// `most_cores` limits the cores of a sort that needs more than one.
SortSplit SplitSort(Wide total, Wide sort_max, Wide most_cores);
// A column of `length` keys for each of `need_cores` cores (the padded forward).
SortSplit SplitColumns(Wide length, Wide sort_max, Wide need_cores);
// Merging cores: a quarter of the sorting ones; 0 where one merge does it.
Wide MergeCores(const SortSplit& split);
void AddSortFields(const SortSplit& split, TilingBuilder* builder);

struct IndexCopyInput {
  Wide ub_bytes;  // a multiple of 32
  Wide cores;
  Wide element_bytes;
  Wide hidden;
  Wide top_k;
  Wide tokens;
  Wide num_out_tokens;
  Wide queues = 1;  // 2 where probs are staged beside the indices
};

struct IndexCopy {
  Wide need_cores, front_cores, tail_cores, front_tokens, tail_tokens;
  Wide row_bytes;
  Wide copies_per_load, rows_per_copy, tokens_per_load, indices_per_load;
  Wide first_move, moves, move_times;
  Wide front_loops, front_last_tokens, tail_loops, tail_last_tokens;
  Wide tail_last_copies, tail_last_rows, front_last_copies, front_last_rows;
  Wide num_out_tokens;
  Wide token_ub_bytes, indices_ub_bytes;
  bool split_row;  // a row does not fit the buffer twice
};

IndexCopy SplitIndexCopy(const IndexCopyInput& input);
// What the permutation of a range of rows has beside.
struct CopyRange {
  Wide start, end;
  Wide prob_bytes;
};
// The 24 numbers, as permute and the routing-map forward serialise them; with a range 28.
void AddIndexCopyFields(const IndexCopy& copy, TilingBuilder* builder,
                        const CopyRange* range = nullptr);

}  // namespace moeperm::cann::host
