// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "cann/host/layout.hpp"

namespace moeperm::cann::host {
namespace {

using Entry = std::pair<std::string_view, std::string_view>;

constexpr std::array kMeanings = {
    // Addition of rows.
    Entry{"hidden_size", "elements of a row"},
    Entry{"top_k", "slots of a token"},
    Entry{"num_out_tokens", "permuted rows; indices from here on are skipped"},
    Entry{"hidden_splited_length", "elements of a hidden tile"},
    Entry{"hidden_splited_num", "full hidden tiles"},
    Entry{"hidden_splited_remain", "elements of one more, shorter hidden tile"},
    Entry{"tokens_core_length", "tokens of a core"},
    Entry{"tokens_core_remain", "first cores that have one token more"},
    Entry{"tokens_splited_length", "tokens whose indices a core loads at once"},
    Entry{"tokens_splited_num", "full loads of a core"},
    Entry{"tokens_splited_remain", "tokens of one more, smaller load"},
    Entry{"buffer_num", "input rows in flight"},
    // The padded gradient.
    Entry{"capacity", "rows of an expert (drop-and-pad)"},
    Entry{"expertNum", "experts"},
    Entry{"tokenNum", "tokens"},
    Entry{"singleCoreLen", "rows of a core (drop-and-pad)"},
    Entry{"lastCoreLen", "rows of the last core"},
    // The forward.
    Entry{"coreNum", "cores counted for the sort's workspace"},
    Entry{"n", "tokens"},
    Entry{"cols", "elements of a row"},
    Entry{"colsAlign", "the same, up to whole blocks of 32 bytes"},
    Entry{"topK", "slots of a token"},
    Entry{"hasProb", "1: probs are permuted too"},
    Entry{"sortNeedCoreNum", "cores that sort"},
    Entry{"perCoreElements", "keys of a sorting core"},
    Entry{"perCoreLoops", "sorts of a sorting core"},
    Entry{"perCoreLoopElements", "keys of a sort"},
    Entry{"perCoreLastLoopElements", "keys of its last sort"},
    Entry{"lastCoreElements", "keys of the last core"},
    Entry{"lastCoreLoops", "sorts of the last core"},
    Entry{"lastCoreLoopElements", "keys of a sort there"},
    Entry{"lastCoreLastLoopElements", "keys of the last sort there"},
    Entry{"oneLoopMaxElements", "keys that a core can sort at once"},
    Entry{"lastCoreWSindex", "1: the last core's runs end in the other half of the workspace"},
    Entry{"frontcoreTask", "experts of a front core (drop-and-pad)"},
    Entry{"tailcoreTask", "experts of a tail core (drop-and-pad)"},
    Entry{"frontCoreNum", "front cores (drop-and-pad)"},
    Entry{"tailCoreNum", "tail cores (drop-and-pad)"},
    Entry{"mergeNeedCoreNum", "cores that merge sorted runs; 0: one merge does"},
    Entry{"sortOutElements", "keys that a merge writes at once"},
    Entry{"copyNeedCoreNum", "cores that copy rows"},
    Entry{"frontCores", "front cores, which have a token more"},
    Entry{"tailCores", "tail cores"},
    Entry{"frontCoreTokens", "tokens of a front core"},
    Entry{"tailCoreTokens", "tokens of a tail core"},
    Entry{"rowBytes", "bytes of a row"},
    Entry{"copiesPerLoad", "copies for each load of indices"},
    Entry{"rowsPerCopy", "rows of a copy"},
    Entry{"tokensPerLoad", "tokens whose indices are loaded at once"},
    Entry{"indicesPerLoad", "indices of a load"},
    Entry{"lastMoveElements", "elements of the last part of a split row; else 1"},
    Entry{"moveElements", "elements of a part of a split row; else 1"},
    Entry{"moveTimes", "parts of a row; 1: rows are whole"},
    Entry{"frontLoops", "loads of a front core"},
    Entry{"frontLastTokens", "tokens of its last load"},
    Entry{"tailLoops", "loads of a tail core"},
    Entry{"tailLastTokens", "tokens of its last load"},
    Entry{"tailLastCopies", "copies for a tail core's last load"},
    Entry{"tailLastRows", "rows of the last of them"},
    Entry{"frontLastCopies", "copies for a front core's last load"},
    Entry{"frontLastRows", "rows of the last of them"},
    Entry{"numOutTokens", "permuted rows"},
    Entry{"tokenUB", "bytes of a buffer for token rows"},
    Entry{"indicesUB", "bytes of the buffer for indices"},
    Entry{"formerNum", "cores with more of the map"},
    Entry{"formerLength", "elements of the map they have each"},
    Entry{"formertileNum", "tiles of those"},
    Entry{"formertileLength", "elements of a tile"},
    Entry{"formerlasttileLength", "elements of the last tile"},
    Entry{"tailNum", "cores with less of the map"},
    Entry{"tailLength", "elements of the map they have each"},
    Entry{"tailtileNum", "tiles of those"},
    Entry{"tailtileLength", "elements of a tile"},
    Entry{"taillasttileLength", "elements of the last tile"},
    Entry{"needCoreNum", "cores that walk the map"},
    // A range of rows.
    Entry{"start", "first row of the range"},
    Entry{"end", "the row after its last one"},
    Entry{"permuted_probs_grad_length", "1: no probs weigh the rows"},
    Entry{"probBytes", "bytes of a prob; 0: none"},
    Entry{"probsUB", "bytes of the buffer for probs"},
    // The gradients of the ways back.
    Entry{"tokensNum", "tokens"},
    Entry{"hiddenSize", "elements of a row"},
    Entry{"numExpert", "experts"},
    Entry{"formerCoreNum", "front cores, which have one more"},
    Entry{"tailCoreNum", "tail cores"},
    Entry{"tokenNumEachCore", "tokens of a front core"},
    Entry{"tokenNumTailCore", "tokens of a tail core"},
    Entry{"rowIdMapEachCore", "indices of a front core"},
    Entry{"rowIdMapTailCore", "indices of a tail core"},
    Entry{"hiddenSizeAlign", "elements of a hidden tile, up to whole blocks"},
    Entry{"hiddenSizeLoopTimes", "hidden tiles"},
    Entry{"hiddenSizeLoopTimesAlign", "the same, up to a multiple of 8"},
    Entry{"hiddenSizeTail", "elements of the last hidden tile"},
    Entry{"inputReserveNum", "rows loaded at once"},
    Entry{"indicesReserveNum", "indices loaded at once"},
    Entry{"indicesReserveNumAlign", "the same, up to whole blocks"},
    Entry{"numExpertAlign", "experts, up to a multiple of 32"},
    Entry{"totalUbSize", "bytes of the unified buffer"},
    // The padded way back.
    Entry{"used_core_num", "cores that add rows"},
    Entry{"core_num_use", "cores that gather probs (drop-and-pad)"},
    Entry{"num_tokens", "tokens (drop-and-pad)"},
    Entry{"num_experts", "experts (drop-and-pad)"},
    Entry{"front_core", "front cores (drop-and-pad)"},
    Entry{"loop_time_each_front_core", "loads of a front core"},
    Entry{"num_tokens_each_front_core", "rows of a front core"},
    Entry{"num_tokens_front_core_each_loop", "rows of its full loads; 0: one load does"},
    Entry{"num_tokens_front_core_last_loop", "rows of its last load"},
    Entry{"tail_core", "tail cores (drop-and-pad)"},
    Entry{"loop_time_each_tail_core", "loads of a tail core"},
    Entry{"num_tokens_each_tail_core", "rows of a tail core"},
    Entry{"num_tokens_tail_core_each_loop", "rows of its full loads; 0: one load does"},
    Entry{"num_tokens_tail_core_last_loop", "rows of its last load"},
};

}  // namespace

std::string_view MeaningOf(std::string_view field) {
  const auto* const found = std::ranges::find(kMeanings, field, &Entry::first);
  return found != kMeanings.end() ? found->second : std::string_view();
}

}  // namespace moeperm::cann::host
