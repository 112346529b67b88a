// SPDX-License-Identifier: Apache-2.0
#include "cann/host/s_tiling.hpp"

#include <algorithm>

namespace moeperm::cann::host {
namespace {

constexpr Wide kBlockBytes = 32;
constexpr Wide kMaxRowsPerCopy = 4095;
constexpr Wide kIndexStagingBytes = 2048;
constexpr Wide kIndexLimit = 512;
constexpr Wide kMoveAlignment = 512;
constexpr Wide kIndexBytes = 4;
constexpr Wide kBuffers = 2;

// How a core works through `elements` keys.
struct Loops {
  Wide loops, per_loop, last_loop;
};

Loops LoopsOf(Wide elements, Wide sort_max) {
  Loops loops{};
  loops.loops = CeilDiv(elements, sort_max);
  loops.per_loop = std::min(elements, sort_max);
  loops.last_loop = elements - (loops.loops - 1) * loops.per_loop;
  return loops;
}

// Which half of the workspace holds the result after merging that many runs: every pass over them
// changes sides, and there is at least one.
Wide SideAfterMerging(Wide runs) {
  Wide passes = 0;
  do {
    runs = CeilDiv(runs, kMergeWidth);
    ++passes;
  } while (runs > 1);
  return passes % 2;
}

void FillLoops(SortSplit* split) {
  const Loops each = LoopsOf(split->per_core_elements, split->sort_max);
  split->per_core_loops = each.loops;
  split->per_core_loop_elements = each.per_loop;
  split->per_core_last_loop_elements = each.last_loop;
  const Loops last = LoopsOf(split->last_core_elements, split->sort_max);
  split->last_core_loops = last.loops;
  split->last_core_loop_elements = last.per_loop;
  split->last_core_last_loop_elements = last.last_loop;
}

// The least power of four that is not below `value`.
Wide PowerOfFour(Wide value) {
  Wide power = 1;
  while (power < value) power *= kMergeWidth;
  return power;
}

SortSplit SortOnOneCore(Wide total, Wide sort_max) {
  SortSplit split{};
  split.need_cores = 1;
  split.per_core_elements = split.last_core_elements = total;
  split.per_core_loops = split.last_core_loops = 1;
  split.per_core_loop_elements = split.per_core_last_loop_elements = total;
  split.last_core_loop_elements = split.last_core_last_loop_elements = total;
  split.sort_max = sort_max;
  return split;
}

}  // namespace

Wide SortMax(Wide ub_bytes, Wide cores) {
  return AlignDown((ub_bytes - cores * kBlockBytes) / kSortElementBytes, kSortBlock);
}

SortSplit SplitSort(Wide total, Wide sort_max, Wide most_cores) {
  if (total <= sort_max) return SortOnOneCore(total, sort_max);
  SortSplit split{};
  split.multi_core = true;
  split.sort_max = sort_max;
  split.need_cores = std::min(PowerOfFour(CeilDiv(total, sort_max)), most_cores);
  const Wide per = SafeDiv(total, split.need_cores);
  // Pieces are whole sort blocks. Rounded down, the last core gets what is left; where that is too
  // much they are rounded up and fewer cores may do.
  const Wide floor = AlignDown(per, kSortBlock);
  const Wide ceiling = floor + kSortBlock;
  if (total - (split.need_cores - 1) * floor > ceiling) {
    split.per_core_elements = ceiling;
    split.need_cores = CeilDiv(total, ceiling);
  } else {
    split.per_core_elements = floor;
  }
  split.last_core_elements = total - (split.need_cores - 1) * split.per_core_elements;
  FillLoops(&split);
  const Wide difference =
      SideAfterMerging(split.last_core_loops) - SideAfterMerging(split.per_core_loops);
  split.last_core_side = difference < 0 ? -difference : difference;
  return split;
}

SortSplit SplitColumns(Wide length, Wide sort_max, Wide need_cores) {
  SortSplit split{};
  split.need_cores = need_cores;
  split.sort_max = sort_max;
  split.per_core_elements = length;
  // The original counts as if the cores shared one column; what that gives is not used.
  split.last_core_elements = length - (need_cores - 1) * length;
  FillLoops(&split);
  return split;
}

Wide MergeCores(const SortSplit& split) {
  return split.need_cores <= kMergeWidth ? 0 : CeilDiv(split.need_cores, kMergeWidth);
}

void AddSortFields(const SortSplit& split, TilingBuilder* builder) {
  builder->Add("sortNeedCoreNum", split.need_cores);
  builder->Add("perCoreElements", split.per_core_elements);
  builder->Add("perCoreLoops", split.per_core_loops);
  builder->Add("perCoreLoopElements", split.per_core_loop_elements);
  builder->Add("perCoreLastLoopElements", split.per_core_last_loop_elements);
  builder->Add("lastCoreElements", split.last_core_elements);
  builder->Add("lastCoreLoops", split.last_core_loops);
  builder->Add("lastCoreLoopElements", split.last_core_loop_elements);
  builder->Add("lastCoreLastLoopElements", split.last_core_last_loop_elements);
  builder->Add("oneLoopMaxElements", split.sort_max);
  builder->Add("lastCoreWSindex", split.last_core_side);
}

IndexCopy SplitIndexCopy(const IndexCopyInput& input) {
  IndexCopy copy{};
  const bool with_probs = input.queues == 2;
  const Wide used = with_probs ? 96 : 0;
  const Wide remainder = SafeMod(input.tokens, input.cores);
  copy.front_cores = remainder != 0 ? remainder : input.cores;
  copy.tail_cores = input.tokens <= input.cores ? 0 : input.cores - copy.front_cores;
  copy.need_cores = copy.front_cores + copy.tail_cores;
  copy.front_tokens = CeilDiv(input.tokens, input.cores);
  copy.tail_tokens = SafeDiv(input.tokens, input.cores);
  copy.row_bytes = input.hidden * input.element_bytes;
  copy.num_out_tokens = input.num_out_tokens;

  const Wide row_block = AlignUp(copy.row_bytes, kBlockBytes);
  const Wide left =
      input.ub_bytes - input.queues * kIndexStagingBytes - (with_probs ? kBlockBytes : 0);
  copy.split_row = left < kBuffers * row_block;
  if (!copy.split_row) {
    const Wide slot_bytes = input.queues * input.top_k * kIndexBytes;
    const Wide free = input.ub_bytes - used;
    copy.rows_per_copy =
        std::min(SafeDiv(free, kBuffers * row_block + kBuffers * slot_bytes), kMaxRowsPerCopy);
    copy.copies_per_load =
        SafeDiv(free - copy.rows_per_copy * kBuffers * row_block, copy.rows_per_copy * slot_bytes);
    copy.tokens_per_load = copy.copies_per_load * copy.rows_per_copy;
    copy.indices_per_load = copy.tokens_per_load * input.top_k;
    copy.token_ub_bytes = copy.rows_per_copy * row_block;
    copy.indices_ub_bytes = AlignUp(copy.indices_per_load * kIndexBytes, kBlockBytes);
    copy.first_move = copy.moves = copy.move_times = 1;
  } else {
    copy.copies_per_load = copy.rows_per_copy = 1;
    copy.tokens_per_load = SafeDiv(kIndexLimit, input.top_k);
    copy.indices_per_load = copy.tokens_per_load * input.top_k;
    copy.moves = SafeDiv(AlignDown(left / kBuffers, kMoveAlignment), input.element_bytes);
    copy.move_times = CeilDiv(input.hidden, copy.moves);
    copy.first_move = input.hidden - (copy.move_times - 1) * copy.moves;
    copy.token_ub_bytes = copy.moves * input.element_bytes;
    copy.indices_ub_bytes = kIndexStagingBytes;
  }
  copy.front_loops = CeilDiv(copy.front_tokens, copy.tokens_per_load);
  copy.front_last_tokens = copy.front_tokens - (copy.front_loops - 1) * copy.tokens_per_load;
  copy.tail_loops = CeilDiv(copy.tail_tokens, copy.tokens_per_load);
  copy.tail_last_tokens = copy.tail_tokens - (copy.tail_loops - 1) * copy.tokens_per_load;
  copy.tail_last_copies = CeilDiv(copy.tail_last_tokens, copy.rows_per_copy);
  copy.tail_last_rows = copy.tail_last_tokens - (copy.tail_last_copies - 1) * copy.rows_per_copy;
  copy.front_last_copies = CeilDiv(copy.front_last_tokens, copy.rows_per_copy);
  copy.front_last_rows = copy.front_last_tokens - (copy.front_last_copies - 1) * copy.rows_per_copy;
  return copy;
}

void AddIndexCopyFields(const IndexCopy& copy, TilingBuilder* builder, const CopyRange* range) {
  builder->Add("copyNeedCoreNum", copy.need_cores);
  builder->Add("frontCores", copy.front_cores);
  builder->Add("tailCores", copy.tail_cores);
  builder->Add("frontCoreTokens", copy.front_tokens);
  builder->Add("tailCoreTokens", copy.tail_tokens);
  builder->Add("rowBytes", copy.row_bytes);
  if (range != nullptr) builder->Add("probBytes", range->prob_bytes);
  builder->Add("copiesPerLoad", copy.copies_per_load);
  builder->Add("rowsPerCopy", copy.rows_per_copy);
  builder->Add("tokensPerLoad", copy.tokens_per_load);
  builder->Add("indicesPerLoad", copy.indices_per_load);
  // In a row that is split, the move that is shorter; its elements, and those of the others.
  builder->Add("lastMoveElements", copy.first_move);
  builder->Add("moveElements", copy.moves);
  builder->Add("moveTimes", copy.move_times);
  builder->Add("frontLoops", copy.front_loops);
  builder->Add("frontLastTokens", copy.front_last_tokens);
  builder->Add("tailLoops", copy.tail_loops);
  builder->Add("tailLastTokens", copy.tail_last_tokens);
  builder->Add("tailLastCopies", copy.tail_last_copies);
  builder->Add("tailLastRows", copy.tail_last_rows);
  builder->Add("frontLastCopies", copy.front_last_copies);
  builder->Add("frontLastRows", copy.front_last_rows);
  builder->Add("numOutTokens", copy.num_out_tokens);
  if (range != nullptr) {
    builder->Add("start", range->start);
    builder->Add("end", range->end);
  }
  builder->Add("tokenUB", copy.token_ub_bytes);
  builder->Add("indicesUB", copy.indices_ub_bytes);
  if (range != nullptr) builder->Add("probsUB", copy.indices_ub_bytes);
}

}  // namespace moeperm::cann::host
