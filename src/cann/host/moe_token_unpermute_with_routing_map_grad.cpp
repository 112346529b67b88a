// SPDX-License-Identifier: Apache-2.0
// The gradient of unpermute by a routing map: rows are copied, or multiplied by the probs and
// dotted with the permuted tokens.
#include <algorithm>
#include <array>
#include <string_view>

#include "cann/host/arithmetic.hpp"
#include "cann/host/definition_parts.hpp"
#include "cann/host/definitions.hpp"
#include "cann/host/layout.hpp"
#include "cann/host/messages.hpp"
#include "cann/host/problem.hpp"
#include "cann/host/tiling_builder.hpp"

namespace moeperm::cann::host {
namespace {

using namespace parts;

constexpr std::string_view kName = "moe_token_unpermute_with_routing_map_grad";

enum : std::size_t { kGrad, kOutIndex, kTokenId, kMap, kPermuted, kProbs };  // of the inputs

constexpr auto kIndexTypes = All<8>(kI);
constexpr std::array kInputs = {
    TensorDef{"unpermuted_tokens_grad", true, kMapTokenTypes},
    TensorDef{"out_index", true, kIndexTypes},
    TensorDef{"permute_token_id", true, kIndexTypes},
    TensorDef{"routing_map", false, kInt8BoolMaps},
    TensorDef{"permuted_tokens", false, kMapTokenTypes},
    TensorDef{"probs", false, kMapProbTypes},
};
constexpr std::array kOutputs = {
    TensorDef{"permuted_tokens_grad", true, kMapTokenTypes},
    TensorDef{"probs_grad", false, kMapProbTypes},
};
constexpr auto kSocSupport = On(kName, kA2, kA3, k950);

struct Sizes {
  Wide tokens, hidden, rows, experts, top_k, capacity;
  Wide element_bytes, prob_bytes;  // 0: no probs
  Wide cores, ub_bytes;
  bool padded;
};

Status CheckShapes(const Problem& problem) {
  for (std::size_t i = 0; i < std::size(kInputs); ++i) {
    const TensorDesc* const tensor = Input(problem, i);
    const bool index = i == kOutIndex || i == kTokenId;
    const bool needed = kInputs[i].required || Input(problem, kProbs) != nullptr;
    if (!needed) continue;
    if (tensor == nullptr) return MissingTensor(kInputs[i].name);
    if (tensor->shape.size() != (index ? 1U : 2U)) {
      return WrongRank(kInputs[i].name, tensor->shape, index ? "1" : "2");
    }
    if (Status status = CheckDims(kInputs[i].name, tensor->shape); !status.ok()) return status;
  }
  const TensorDesc& id = *problem.inputs[kTokenId];
  const std::int64_t rows = problem.inputs[kOutIndex]->shape[0];
  if (id.shape[0] != rows) {
    return WrongDim("permute_token_id", id.shape, 0, rows, "that of out_index");
  }
  return {};
}

Status ReadSizes(const Problem& problem, const Platform& platform, Sizes* sizes) {
  for (Status status : {ReadBool(problem, 0, "drop_and_pad", &sizes->padded),
                        CheckPlatform(platform), CheckShapes(problem)}) {
    if (!status.ok()) return status;
  }
  const TensorDesc& grad = *problem.inputs[kGrad];
  const TensorDesc* const probs = Input(problem, kProbs);
  sizes->tokens = grad.shape[0];
  sizes->hidden = grad.shape[1];
  sizes->rows = problem.inputs[kOutIndex]->shape[0];
  sizes->cores = platform.vector_cores;
  sizes->ub_bytes = platform.ub_bytes;
  sizes->element_bytes = TilingSizeOf(grad.dtype);
  if (sizes->element_bytes == 0) return UnknownDType("unpermuted_tokens_grad", grad.dtype);
  if (probs != nullptr) {
    const bool mixed = grad.dtype == DType::kBFloat16 && probs->dtype == DType::kFloat32;
    if (probs->dtype != grad.dtype && !mixed) {
      return OtherDType("probs", probs->dtype, "unpermuted_tokens_grad", grad.dtype);
    }
    sizes->prob_bytes = TilingSizeOf(probs->dtype);
    sizes->experts = probs->shape[1];
  }
  if (sizes->padded) {
    sizes->capacity = SafeDiv(sizes->rows, sizes->experts);
    return {};
  }
  if (sizes->tokens == 0) return Empty("unpermuted_tokens_grad", grad.shape, "tokens");
  sizes->top_k = sizes->rows / sizes->tokens;
  return {};
}

struct Split {
  Wide hidden_align, loops, loops_align, tail;
  Wide rows, indices, indices_align, experts_align;
};

void CutHidden(const Sizes& sizes, Wide most, Split* split) {
  const Wide block = 32 / sizes.element_bytes;
  Wide piece = AlignUp(sizes.hidden, block);
  if (most < piece) piece = std::max<Wide>(AlignDown(most, block), 0);
  split->hidden_align = piece;
  split->loops = CeilDiv(sizes.hidden, piece);
  split->tail = sizes.hidden - (split->loops - 1) * piece;
}

constexpr Wide kStagingBytes = 2048;

Status SplitPadded(const Sizes& sizes, Split* split) {
  constexpr Wide kMaxLoops = 512;
  if (sizes.capacity > sizes.tokens) {
    return TooLong("capacity (rows / experts)", static_cast<std::int64_t>(sizes.capacity),
                   static_cast<std::int64_t>(sizes.tokens) + 1);
  }
  const Wide most = (sizes.ub_bytes - 32 - kStagingBytes) / (2 * (8 + sizes.element_bytes));
  if (sizes.hidden > kMaxLoops * most) {
    return TooLong("hidden", static_cast<std::int64_t>(sizes.hidden),
                   static_cast<std::int64_t>(std::max<Wide>(kMaxLoops * most, 0)) + 1);
  }
  CutHidden(sizes, most, split);
  split->loops_align = AlignUp(split->loops, 8);
  split->rows = split->indices = 1;
  return {};
}

Status SplitNotPadded(const Sizes& sizes, Wide tokens_of_core, Split* split) {
  constexpr Wide kSlots = 256;
  const Wide d = sizes.element_bytes;
  const Wide k = sizes.top_k;
  if (k > kMaxTopK) return TopKTooLarge(static_cast<std::int64_t>(k), kMaxTopK, "rows / tokens");
  if (k > sizes.experts) {
    return TopKTooLarge(static_cast<std::int64_t>(k), static_cast<std::int64_t>(sizes.experts),
                        "rows / tokens; there are so many experts");
  }
  const Wide free = sizes.ub_bytes - 256 * d - kStagingBytes;
  const Wide most_experts = (free - (6 * d + 12)) / (1 + sizes.prob_bytes);
  if (sizes.experts > most_experts) {
    return TooLong("experts", static_cast<std::int64_t>(sizes.experts),
                   static_cast<std::int64_t>(std::max<Wide>(most_experts, 0)) + 1);
  }
  split->indices = k <= kSlots ? std::min(tokens_of_core * k, SafeDiv(kSlots, k) * k) : k;
  split->indices_align = AlignUp(split->indices, 32 / d);
  split->experts_align = AlignUp(sizes.experts, 32);
  CutHidden(sizes, (free - (1 + sizes.prob_bytes) * split->experts_align) / (6 * d + 12), split);
  return {};
}

Status ComputeTiling(const Problem& problem, const Platform& platform, Tiling* tiling) {
  Sizes sizes{};
  if (Status status = ReadSizes(problem, platform, &sizes); !status.ok()) return status;
  const bool probs = sizes.prob_bytes != 0;
  const bool by_token = probs && !sizes.padded;
  const Wide units = by_token ? sizes.tokens : sizes.rows;
  const Wide tail = units / sizes.cores;
  const Wide former = units % sizes.cores;
  const Wide each = former == 0 ? tail : tail + 1;
  Split split{};
  if (!probs) {
    CutHidden(sizes, sizes.ub_bytes / (2 * sizes.element_bytes), &split);
    split.rows = split.indices = 1;
  } else if (Status status =
                 sizes.padded ? SplitPadded(sizes, &split) : SplitNotPadded(sizes, each, &split);
             !status.ok()) {
    return status;
  }
  const Wide slots = by_token ? sizes.top_k : 1;
  TilingBuilder builder;
  builder.Add("tokensNum", sizes.tokens);
  builder.Add("topK", sizes.top_k);
  builder.Add("capacity", sizes.capacity);
  builder.Add("numExpert", sizes.experts);
  builder.Add("hiddenSize", sizes.hidden);
  builder.Add("numOutTokens", sizes.rows);
  builder.Add("formerCoreNum", former);
  builder.Add("tailCoreNum", sizes.cores - former);
  builder.Add("tokenNumEachCore", by_token ? each : 0);
  builder.Add("tokenNumTailCore", by_token ? tail : 0);
  builder.Add("rowIdMapEachCore", each * slots);
  builder.Add("rowIdMapTailCore", tail * slots);
  builder.Add("hiddenSizeAlign", split.hidden_align);
  builder.Add("hiddenSizeLoopTimes", split.loops);
  builder.Add("hiddenSizeLoopTimesAlign", split.loops_align);
  builder.Add("hiddenSizeTail", split.tail);
  builder.Add("inputReserveNum", split.rows);
  builder.Add("indicesReserveNum", split.indices);
  builder.Add("indicesReserveNumAlign", split.indices_align);
  builder.Add("numExpertAlign", split.experts_align);
  builder.Add("totalUbSize", sizes.ub_bytes);
  const bool mixed = probs && sizes.prob_bytes != sizes.element_bytes;
  builder.Key((mixed ? 100 : 0) + (sizes.padded ? 10 : 0) + (probs ? 1 : 0));
  builder.BlockDim(sizes.cores);
  builder.Workspace(kSystemWorkspaceBytes);
  return builder.Finish(tiling);
}

void Describe(const Problem& problem, const Platform& platform, const Tiling& tiling,
              Layout* layout) {
  Stage stage;
  stage.title =
      Input(problem, kProbs) != nullptr ? "multiply and dot rows" : "copy rows to their places";
  stage.unit = "slots";
  stage.cores = {{tiling["formerCoreNum"], tiling["rowIdMapEachCore"]},
                 {tiling["tailCoreNum"], tiling["rowIdMapTailCore"]}};
  stage.ub_bytes = platform.ub_bytes;
  layout->stages.push_back(std::move(stage));
}

Problem ProblemOf(const CallSizes& sizes) {
  const Shape map = {sizes.tokens, sizes.experts};
  const TensorDesc indices{DType::kInt32, {sizes.rows}};
  Problem problem;
  problem.inputs = {TensorDesc{sizes.dtype, {sizes.tokens, sizes.hidden}},
                    indices,
                    indices,
                    TensorDesc{DType::kInt8, map},
                    TensorDesc{sizes.dtype, {sizes.rows, sizes.hidden}},
                    ProbsOf(sizes, map)};
  problem.outputs = {TensorDesc{sizes.dtype, {sizes.rows, sizes.hidden}}, ProbsOf(sizes, map)};
  problem.attrs = {sizes.drop_and_pad, std::vector<std::int64_t>{}};
  return problem;
}

}  // namespace

OpDef MoeTokenUnpermuteWithRoutingMapGrad() {
  static const std::array attrs = {
      AttrDef{"drop_and_pad", AttrType::kBool, false, false},
      AttrDef{"restore_shape", AttrType::kIntList, false, std::vector<std::int64_t>{}},
  };
  return {"MoeTokenUnpermuteWithRoutingMapGrad",
          kName,
          "aclnnMoeTokenUnpermuteWithRoutingMapGrad",
          kInputs,
          kOutputs,
          attrs,
          kSocSupport,
          {},  // the descriptions list no prebuilt ones
          nullptr,
          nullptr,
          ComputeTiling,
          Describe,
          ProblemOf};
}

}  // namespace moeperm::cann::host
