// SPDX-License-Identifier: Apache-2.0
// The sum of each token's rows by a routing map. Not padded: cores walk the map for the probs
// (masked_select.hpp), then add up rows (u_tiling.hpp). Padded: a kernel gathers the probs of the
// rows, other operators do the rest.
#include <algorithm>
#include <array>
#include <string_view>

#include "cann/host/definition_parts.hpp"
#include "cann/host/definitions.hpp"
#include "cann/host/layout.hpp"
#include "cann/host/masked_select.hpp"
#include "cann/host/messages.hpp"
#include "cann/host/problem.hpp"
#include "cann/host/u_tiling.hpp"

namespace moeperm::cann::host {
namespace {

using namespace parts;

constexpr std::string_view kName = "moe_token_unpermute_with_routing_map";

enum : std::size_t { kTokens, kIndices, kMap, kProbs };  // positions of the inputs
enum : std::size_t { kDropAndPad, kRestoreShape };       // and of the attributes

constexpr auto kIndexTypes = All<8>(kI);
constexpr std::array kInputs = {
    TensorDef{"permuted_tokens", true, kMapTokenTypes},
    TensorDef{"sorted_indices", true, kIndexTypes},
    TensorDef{"routing_map", false, kInt8BoolMaps},
    TensorDef{"probs", false, kMapProbTypes},
};
constexpr std::array kOutputs = {
    TensorDef{"unpermuted_tokens", true, kMapTokenTypes},
    TensorDef{"out_index", true, kIndexTypes},
    TensorDef{"permute_token_id", true, kIndexTypes},
    TensorDef{"permute_probs", true, kMapProbTypes},
};
// Two more chips that a later description names are none that the door knows.
constexpr auto kSocSupport = On(kName, kA2, kA3, k950);

// Rows of the padded kernel.
struct PaddedRows {
  Wide tokens, experts, capacity;
  Wide front_cores, tail_cores;
};

void AddLoops(std::string_view loops, std::string_view rows, std::string_view each,
              std::string_view last, Wide count, Wide most, TilingBuilder* builder) {
  builder->Add(loops, CeilDiv(count, most));
  builder->Add(rows, count);
  builder->Add(each, most == 0 ? 0 : AlignDown(count, most));
  builder->Add(last, SafeMod(count, most));
}

// 13 numbers of the addition, 12 of the masked select, 14 of the padded kernel; those of the kernel
// that does not run are 0.
void AddFields(const UTilingInput& input, Wide rows, const UTiling& split,
               const MaskedSelect& select, TilingBuilder* builder) {
  builder->Add("hidden_size", input.hidden);
  builder->Add("top_k", input.top_k);
  builder->Add("num_out_tokens", rows);
  AddUSplits(split, builder);
  builder->Add("used_core_num", split.used_cores);
  builder->Add("buffer_num", split.buffer_num);
  AddMaskedSelectFields(select, builder);
}

void AddPaddedFields(const PaddedRows& padded, Wide cores, Wide most, TilingBuilder* builder) {
  const Wide rows = padded.experts * padded.capacity;
  builder->Add("core_num_use", padded.front_cores + padded.tail_cores);
  builder->Add("num_tokens", padded.tokens);
  builder->Add("num_experts", padded.experts);
  builder->Add("capacity", padded.capacity);
  builder->Add("front_core", padded.front_cores);
  AddLoops("loop_time_each_front_core", "num_tokens_each_front_core",
           "num_tokens_front_core_each_loop", "num_tokens_front_core_last_loop",
           CeilDiv(rows, cores), most, builder);
  builder->Add("tail_core", padded.tail_cores);
  AddLoops("loop_time_each_tail_core", "num_tokens_each_tail_core",
           "num_tokens_tail_core_each_loop", "num_tokens_tail_core_last_loop", SafeDiv(rows, cores),
           most, builder);
}

Status TilePadded(const TensorDesc* probs, std::int64_t rows, const Platform& platform,
                  TilingBuilder* builder) {
  if (probs == nullptr) return MissingTensor("probs");
  if (probs->shape.size() != 2) return WrongRank("probs", probs->shape, "2");
  PaddedRows padded{};
  padded.tokens = probs->shape[0];
  padded.experts = probs->shape[1];
  padded.capacity = SafeDiv(rows, padded.experts);
  const Wide cores = platform.vector_cores;
  const Wide used = padded.experts * padded.capacity;
  padded.front_cores = used % cores != 0 ? used % cores : cores;
  padded.tail_cores = used <= cores ? 0 : cores - padded.front_cores;
  AddFields({}, 0, {}, {}, builder);
  AddPaddedFields(padded, cores, platform.ub_bytes / (probs->dtype == DType::kFloat32 ? 4 : 2),
                  builder);
  builder->Key(1000);
  builder->BlockDim(padded.front_cores + padded.tail_cores);
  builder->Workspace(kSystemWorkspaceBytes);
  return {};
}

Status TileNotPadded(const Problem& problem, UTilingInput input, std::int64_t rows,
                     TilingBuilder* builder) {
  const TensorDesc* const probs = Input(problem, kProbs);
  std::int64_t tokens = 0;
  if (probs != nullptr) {
    if (probs->shape.size() != 2) return WrongRank("probs", probs->shape, "2");
    tokens = probs->shape[0];
  } else {
    const auto shape = ReadList(problem, kRestoreShape);
    if (!shape || shape->empty()) return MissingAttr("restore_shape");
    tokens = (*shape)[0];
    if (tokens < 0) return NegativeAttr("restore_shape[0]", tokens);
  }
  const Wide top_k = SafeDiv(rows, tokens);
  if (top_k > kMaxTopK) {
    return TopKTooLarge(static_cast<std::int64_t>(top_k), kMaxTopK,
                        "rows of permuted_tokens / tokens");
  }
  input.tokens = tokens;
  input.top_k = top_k;
  input.index_bytes = TilingSizeOf(problem.inputs[kIndices]->dtype);
  input.prob_bytes = probs != nullptr ? TilingSizeOf(probs->dtype) : 0;
  const UTiling split = ComputeUTiling(input);
  const Wide experts = probs != nullptr ? probs->shape[1] : 1;
  const MaskedSelect select =
      SplitMaskedSelect(input.ub_bytes, input.cores, tokens, experts, input.prob_bytes);
  AddFields(input, rows, split, select, builder);
  AddPaddedFields({}, 0, 0, builder);
  builder->Key(probs != nullptr ? 1 : 0);
  builder->BlockDim(std::max(split.used_cores, select.need_cores));
  builder->Workspace(Wide{2} * kSystemWorkspaceBytes);
  return {};
}

Status ComputeTiling(const Problem& problem, const Platform& platform, Tiling* tiling) {
  bool padded = false;
  UTilingInput input{};
  std::int64_t rows = 0;
  if (Status status = ReadBool(problem, kDropAndPad, "drop_and_pad", &padded); !status.ok()) {
    return status;
  }
  if (Status status = ReadUInput(problem, "permuted_tokens", platform, &input, &rows);
      !status.ok()) {
    return status;
  }
  const TensorDesc* const probs = Input(problem, kProbs);
  if (probs != nullptr) {
    if (Status status = CheckDims("probs", probs->shape); !status.ok()) return status;
  }
  TilingBuilder builder;
  if (!padded && problem.inputs[kTokens]->shape.size() != 2) {
    return WrongRank("permuted_tokens", problem.inputs[kTokens]->shape, "2");
  }
  if (Status status =
          padded ? TilePadded(probs, problem.inputs[kIndices]->shape[0], platform, &builder)
                 : TileNotPadded(problem, input, rows, &builder);
      !status.ok()) {
    return status;
  }
  return builder.Finish(tiling);
}

void Describe(const Problem& problem, const Platform& platform, const Tiling& tiling,
              Layout* layout) {
  if (tiling["core_num_use"] > 0) {
    Stage stage;
    stage.title = "gather the probs of the rows";
    stage.unit = "rows";
    stage.cores = {{tiling["front_core"], tiling["num_tokens_each_front_core"]},
                   {tiling["tail_core"], tiling["num_tokens_each_tail_core"]}};
    layout->stages.push_back(std::move(stage));
    layout->notes.emplace_back("tokens: rows are sorted by token and added up by other operators");
    return;
  }
  const TensorDesc* const probs = Input(problem, kProbs);
  if (probs != nullptr) {
    layout->stages.push_back(MaskedSelectStage(tiling, platform, TilingSizeOf(probs->dtype)));
  }
  DescribeAddition(problem, platform, tiling, TilingSizeOf(problem.inputs[kIndices]->dtype),
                   layout);
}

Problem ProblemOf(const CallSizes& sizes) {
  const TensorDesc indices{DType::kInt32, {sizes.rows}};
  Problem problem;
  problem.inputs = {TensorDesc{sizes.dtype, {sizes.rows, sizes.hidden}}, indices,
                    TensorDesc{DType::kInt8, {sizes.tokens, sizes.experts}},
                    ProbsOf(sizes, {sizes.tokens, sizes.experts})};
  problem.outputs = {TensorDesc{sizes.dtype, {sizes.tokens, sizes.hidden}}, indices, indices,
                     ProbsOf(sizes, {sizes.rows})};
  problem.attrs = {sizes.drop_and_pad, std::vector<std::int64_t>{sizes.tokens, sizes.hidden}};
  return problem;
}

}  // namespace

OpDef MoeTokenUnpermuteWithRoutingMap() {
  static const std::array attrs = {
      AttrDef{"drop_and_pad", AttrType::kBool, false, false},
      AttrDef{"restore_shape", AttrType::kIntList, false, std::vector<std::int64_t>{}},
  };
  return {"MoeTokenUnpermuteWithRoutingMap",
          kName,
          "aclnnMoeTokenUnpermuteWithRoutingMap",
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
