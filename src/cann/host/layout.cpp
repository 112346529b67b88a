// SPDX-License-Identifier: Apache-2.0
#include "cann/host/layout.hpp"

#include <limits>
#include <utility>

#include "cann/host/arithmetic.hpp"
#include "cann/host/masked_select.hpp"
#include "cann/host/s_tiling.hpp"
#include "cann/host/u_tiling.hpp"

namespace moeperm::cann::host {
namespace {

// Layouts are looked at, not computed with: what is too large is shown as the largest there is.
std::int64_t Saturated(Wide value) {
  constexpr Wide kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp<Wide>(value, 0, kMost));
}

// The groups that have something, neighbours of one size together.
std::vector<Group> Groups(std::initializer_list<Group> groups) {
  std::vector<Group> kept;
  for (const Group& group : groups) {
    if (group.count <= 0 || group.each <= 0) continue;
    if (!kept.empty() && kept.back().each == group.each) {
      kept.back().count = Saturated(Wide{kept.back().count} + group.count);
    } else {
      kept.push_back(group);
    }
  }
  return kept;
}

// `loops` steps, the last of them another one.
std::vector<Group> Loops(std::int64_t loops, std::int64_t each, std::int64_t last) {
  return Groups({{loops - 1, each}, {1, last}});
}

// What is left of the buffer comes last.
void Fill(Stage* stage, const std::vector<BufferPart>& parts, std::int64_t ub_bytes) {
  Wide left = ub_bytes;
  for (const BufferPart& part : parts) {
    if (part.bytes <= 0) continue;
    stage->buffer.push_back(part);
    left -= part.bytes;
  }
  if (left > 0) stage->buffer.push_back({"free", static_cast<std::int64_t>(left)});
  stage->ub_bytes = ub_bytes;
}

}  // namespace

std::int64_t TotalOf(const std::vector<Group>& groups) {
  Wide total = 0;
  for (const Group& group : groups) total = Saturated(total + Wide{group.count} * group.each);
  return static_cast<std::int64_t>(total);
}

Stage AdditionStage(const Tiling& tiling, const Platform& platform, std::int64_t element_bytes) {
  Stage stage;
  stage.title = "add up each token's rows";
  stage.unit = "tokens";
  const std::int64_t length = tiling["tokens_core_length"];
  const std::int64_t more = tiling["tokens_core_remain"];
  stage.cores = Groups({{more, length + 1}, {tiling.block_dim - more, length}});
  // A core with one token more has it in its last step.
  stage.steps = Groups({{tiling["tokens_splited_num"], tiling["tokens_splited_length"]},
                        {1, tiling["tokens_splited_remain"] + (more > 0 ? 1 : 0)}});
  stage.row_parts = Groups({{tiling["hidden_splited_num"], tiling["hidden_splited_length"]},
                            {1, tiling["hidden_splited_remain"]}});
  const Wide row = AlignUp(tiling["hidden_splited_length"], kURowAlignment);
  const std::int64_t buffers = tiling["buffer_num"];
  const bool casts = element_bytes != 4;
  Fill(&stage,
       {{"input rows", Saturated(row * element_bytes * buffers)},
        {"output row", Saturated(row * element_bytes)},
        {"float32 rows", casts ? Saturated(row * 4 * 2) : 0},
        {"indices", Saturated(Wide{tiling["tokens_splited_length"]} * tiling["top_k"] * 4)},
        {"reserve", kUBufferReserve}},
       platform.ub_bytes);
  return stage;
}

Stage MaskedSelectStage(const Tiling& tiling, const Platform& platform, std::int64_t prob_bytes) {
  Stage stage;
  stage.title = "list each expert's tokens";
  stage.unit = "elements of the map";
  stage.cores = Groups(
      {{tiling["formerNum"], tiling["formerLength"]}, {tiling["tailNum"], tiling["tailLength"]}});
  stage.steps =
      Loops(tiling["formertileNum"], tiling["formertileLength"], tiling["formerlasttileLength"]);
  const Wide tile = tiling["formertileLength"];
  Fill(&stage,
       {{"map, token ids, lists", Saturated(tile * 19)},
        {"probs", Saturated(tile * 4 * prob_bytes)},
        {"reserve", kMaskedSelectReserve}},
       platform.ub_bytes);
  return stage;
}

Stage SortStage(const Tiling& tiling, const Platform& platform) {
  Stage stage;
  stage.title = "sort";
  stage.unit = "keys";
  stage.cores = Groups({{tiling["sortNeedCoreNum"] - 1, tiling["perCoreElements"]},
                        {1, tiling["lastCoreElements"]}});
  stage.steps = Loops(tiling["perCoreLoops"], tiling["perCoreLoopElements"],
                      tiling["perCoreLastLoopElements"]);
  Fill(&stage,
       {{"keys and positions", Saturated(Wide{tiling["perCoreLoopElements"]} * kSortElementBytes)}},
       platform.ub_bytes);
  return stage;
}

Stage RowCopyStage(const Tiling& tiling, const Platform& platform) {
  Stage stage;
  stage.title = "copy rows to their places";
  stage.unit = "tokens";
  stage.cores = Groups({{tiling["frontCores"], tiling["frontCoreTokens"]},
                        {tiling["tailCores"], tiling["tailCoreTokens"]}});
  stage.steps = Loops(tiling["frontLoops"], tiling["tokensPerLoad"], tiling["frontLastTokens"]);
  if (tiling["moveTimes"] > 1) {
    stage.row_parts =
        Loops(tiling["moveTimes"], tiling["moveElements"], tiling["lastMoveElements"]);
  } else {
    stage.row_parts = Groups({{1, tiling["cols"]}});
  }
  Fill(&stage,
       {{"token rows (twice)", Saturated(Wide{tiling["tokenUB"]} * 2)},
        {"indices", tiling["indicesUB"]}},
       platform.ub_bytes);
  return stage;
}

}  // namespace moeperm::cann::host
