// SPDX-License-Identifier: Apache-2.0
#include "cann/host/g_tiling.hpp"

#include <algorithm>

#include "cann/host/layout.hpp"
#include "cann/host/messages.hpp"
#include "cann/host/problem.hpp"

namespace moeperm::cann::host {
namespace {

constexpr Wide kBlockBytes = 32;
constexpr Wide kRowAlignmentBytes = 512;
constexpr Wide kIndexBytes = 4;
constexpr Wide kRowGranule = 8;

struct Split {
  Wide hidden_align, loops, tail;
  Wide rows, indices, indices_align;  // the three reserves
};

void CutHidden(Wide hidden, Wide piece, Split* split) {
  split->hidden_align = piece;
  split->loops = CeilDiv(hidden, piece);
  split->tail = hidden - (split->loops - 1) * piece;
}

Split CopyRows(const GTilingInput& input) {
  const Wide d = input.element_bytes;
  const Wide block = kBlockBytes / d;
  Wide piece = AlignUp(input.hidden, block);
  Wide rows = 0;
  Wide most = 0;
  if (input.rows_by_slot) {
    constexpr Wide kLong = 512;
    rows = (input.ub_bytes - 64) / (2 * (piece * d + input.top_k * kIndexBytes));
    rows = std::max(rows * input.top_k, input.top_k);
    rows = rows < kLong ? AlignUp(rows, kRowGranule) : AlignDown(rows, kRowGranule);
    most = SafeDiv(input.ub_bytes - rows * kRowGranule, 2 * d * SafeDiv(rows, input.top_k));
  } else {
    rows = AlignDown(input.ub_bytes / (2 * (piece * d + kIndexBytes)), kRowGranule);
    rows = std::max(rows, kRowGranule);
    most = SafeDiv(input.ub_bytes - rows * kRowGranule, 2 * d * rows);
  }
  if (most < piece) piece = std::max<Wide>(AlignDown(most, block), 0);
  Split split{};
  CutHidden(input.hidden, piece, &split);
  split.rows = split.indices = split.indices_align = rows;
  return split;
}

// Zeros where not even a piece of a row fits; the original then goes on, too.
Split MultiplyRows(const GTilingInput& input, Wide slots_of_core) {
  constexpr Wide kSlots = 256;
  constexpr Wide kReserve = 256;
  const Wide d = input.element_bytes;
  const Wide k = input.top_k;
  const Wide row = AlignUp(input.hidden, kRowAlignmentBytes / d);
  const Wide slots = k <= kSlots ? std::min(slots_of_core, kSlots / k * k) : k;
  const Wide slots_align = AlignUp(slots, kBlockBytes / input.prob_bytes);
  const Wide free =
      input.ub_bytes - 4 * input.prob_bytes * slots_align - 12 * slots_align - kReserve;
  Wide rows = (free - (4 * d + 12) * row) / (2 * d * row);
  Split split{};
  if (rows < 1) {
    const Wide piece = AlignDown(free / (6 * d + 12), kRowAlignmentBytes / d);
    if (piece <= 0) return split;
    CutHidden(input.hidden, piece, &split);
    split.rows = 1;
  } else {
    rows = std::min(rows, k);
    while (k % rows != 0) --rows;
    split.hidden_align = row;
    split.loops = 1;
    split.tail = input.hidden;
    split.rows = rows;
  }
  split.indices = slots;
  split.indices_align = slots_align;
  return split;
}

}  // namespace

Status ReadGInput(const UnpermuteGradInputs& inputs, std::int64_t top_k, const Platform& platform,
                  GTilingInput* input) {
  if (Status status = CheckPlatform(platform); !status.ok()) return status;
  constexpr std::string_view kGrad = "unpermuted_tokens_grad";
  constexpr std::string_view kIndices = "sorted_indices";
  if (inputs.grad == nullptr) return MissingTensor(kGrad);
  if (inputs.indices == nullptr) return MissingTensor(kIndices);
  if (inputs.indices->shape.size() != 1) return WrongRank(kIndices, inputs.indices->shape, "1");
  if (inputs.grad->shape.size() < 2) return WrongRank(kGrad, inputs.grad->shape, "2");
  const std::string_view rows_name =
      input->rows == inputs.indices ? kIndices : std::string_view("permuted_tokens");
  if (input->rows->shape.empty()) return WrongRank(rows_name, input->rows->shape, "2");
  for (Status status :
       {CheckDims(kGrad, inputs.grad->shape), CheckDims(kIndices, inputs.indices->shape),
        CheckDims(rows_name, input->rows->shape)}) {
    if (!status.ok()) return status;
  }
  if (inputs.probs != nullptr) {
    if (inputs.probs->shape.size() != 2) return WrongRank("probs", inputs.probs->shape, "2");
    if (Status status = CheckDims("probs", inputs.probs->shape); !status.ok()) return status;
    top_k = inputs.probs->shape[1];
    input->prob_bytes = TilingSizeOf(inputs.probs->dtype);
    if (input->prob_bytes == 0) return UnknownDType("probs", inputs.probs->dtype);
    if (top_k == 0) return Empty("probs", inputs.probs->shape, "slots");
  }
  if (top_k == 0) return ZeroAttr("topk_num", "no token has a slot");
  if (top_k > kMaxTopK) return TopKTooLarge(top_k, kMaxTopK, "slots of a token");
  if (inputs.grad->shape[0] == 0) return Empty(kGrad, inputs.grad->shape, "tokens");
  if (inputs.grad->shape[1] == 0) return Empty(kGrad, inputs.grad->shape, "hidden elements");
  if (input->rows->shape[0] == 0) return Empty(rows_name, input->rows->shape, "rows");
  input->element_bytes = TilingSizeOf(inputs.grad->dtype);
  if (input->element_bytes == 0) return UnknownDType(kGrad, inputs.grad->dtype);
  input->tokens = inputs.grad->shape[0];
  input->hidden = inputs.grad->shape[1];
  input->top_k = top_k;
  input->num_out_tokens = input->rows->shape[0];
  input->cores = platform.vector_cores;
  input->ub_bytes = platform.ub_bytes;
  return {};
}

void TileG(const GTilingInput& input, TilingBuilder* builder) {
  const Wide tail_tokens = input.tokens / input.cores;
  const Wide former = input.tokens % input.cores;
  const Wide each = former == 0 ? tail_tokens : tail_tokens + 1;
  const bool probs = input.prob_bytes != 0;
  const Split split = probs ? MultiplyRows(input, each * input.top_k) : CopyRows(input);
  builder->Add("tokensNum", input.tokens);
  builder->Add("topK", input.top_k);
  builder->Add("hiddenSize", input.hidden);
  builder->Add("numOutTokens", input.num_out_tokens);
  builder->Add("formerCoreNum", former);
  builder->Add("tailCoreNum", input.cores - former);
  builder->Add("tokenNumEachCore", each);
  builder->Add("tokenNumTailCore", tail_tokens);
  builder->Add("rowIdMapEachCore", each * input.top_k);
  builder->Add("rowIdMapTailCore", tail_tokens * input.top_k);
  builder->Add("hiddenSizeAlign", split.hidden_align);
  builder->Add("hiddenSizeLoopTimes", split.loops);
  builder->Add("hiddenSizeTail", split.tail);
  builder->Add("inputReserveNum", split.rows);
  builder->Add("indicesReserveNum", split.indices);
  builder->Add("indicesReserveNumAlign", split.indices_align);
  builder->Add("totalUbSize", input.ub_bytes);
  builder->Key(probs ? 1 : 0);
  builder->BlockDim(input.cores);
  builder->Workspace(kSystemWorkspaceBytes);
}

void DescribeG(const UnpermuteGradInputs& inputs, const Platform& platform, const Tiling& tiling,
               Layout* layout) {
  Stage stage;
  stage.title =
      inputs.probs != nullptr ? "multiply and dot each token's rows" : "copy rows to their places";
  stage.unit = "tokens";
  for (const Group& group : {Group{tiling["formerCoreNum"], tiling["tokenNumEachCore"]},
                             Group{tiling["tailCoreNum"], tiling["tokenNumTailCore"]}}) {
    if (group.count > 0 && group.each > 0) stage.cores.push_back(group);
  }
  const std::int64_t loops = tiling["hiddenSizeLoopTimes"];
  if (loops > 1) stage.row_parts.push_back({loops - 1, tiling["hiddenSizeAlign"]});
  if (loops > 0) stage.row_parts.push_back({1, tiling["hiddenSizeTail"]});
  stage.ub_bytes = platform.ub_bytes;
  layout->stages.push_back(std::move(stage));
  if (tiling["hiddenSizeAlign"] <= 0) {
    layout->notes.emplace_back(
        "no part of a row fits the unified buffer: the kernel writes nothing");
  }
}

}  // namespace moeperm::cann::host
