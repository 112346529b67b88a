// SPDX-License-Identifier: Apache-2.0
// The gradient of the permutation. Not padded, a kernel adds up each token's rows (u_tiling.hpp);
// padded, one scatters the probs' gradient and other operators bring the tokens' gradient back.
#include <array>
#include <string_view>

#include "cann/host/arithmetic.hpp"
#include "cann/host/definition_parts.hpp"
#include "cann/host/definitions.hpp"
#include "cann/host/layout.hpp"
#include "cann/host/messages.hpp"
#include "cann/host/problem.hpp"
#include "cann/host/tiling_builder.hpp"
#include "cann/host/u_tiling.hpp"

namespace moeperm::cann::host {
namespace {

using namespace parts;

constexpr std::string_view kName = "moe_token_permute_with_routing_map_grad";
constexpr std::string_view kGradName = "permuted_token_output_grad";

// Positions of the attributes.
enum : std::size_t { kNumExperts, kTokensNum, kPaddedMode };

constexpr auto kIndexTypes = All<8>(kI);
constexpr std::array kInputs = {
    TensorDef{kGradName, true, kMapTokenTypes},
    TensorDef{"permuted_probs_output_grad_optional", false, kMapProbTypes},
    TensorDef{"sorted_indices", true, kIndexTypes},
    TensorDef{"routing_map_optional", false, kInt8BoolMaps},
};
constexpr std::array kOutputs = {
    TensorDef{"tokens_grad_out", true, kMapTokenTypes},
    TensorDef{"probs_grad_out_optional", false, kMapProbTypes},
};
constexpr auto kSocSupport = On(kName, kA2, kA3, k950);
constexpr std::array kBinaries = {
    Binary{"bf16_routing_int8", 0},     Binary{"fp16_routing_int8", 1},
    Binary{"fp32_routing_int8", 2},     Binary{"bf16_routing_bool", 3},
    Binary{"fp16_routing_bool", 4},     Binary{"fp32_routing_bool", 5},
    Binary{"bf16_routing_int8_mix", 6}, Binary{"bf16_routing_bool_mix", 7},
};

// tokens_grad (tokens_num, hidden), and (tokens_num, rows / tokens_num) for the probs' gradient:
// that is what the original infers, not (tokens_num, num_experts). A negative dimension stands for
// an unknown one and is divided like any other. Of an unknown rank (-2) the hidden size and the
// number of rows stay unknown.
Status InferShape(const Problem& problem, std::vector<Shape>* shapes) {
  const TensorDesc* const grad = Input(problem, 0);
  if (grad == nullptr) return MissingTensor(kGradName);
  std::int64_t tokens = 0;
  if (Status status = ReadInt(problem, kTokensNum, "tokens_num", &tokens); !status.ok()) {
    return status;
  }
  if (grad->shape == Shape{-2}) {
    *shapes = {{tokens, -1}, {tokens, -1}};
    return {};
  }
  if (grad->shape.size() < 2) return WrongRank(kGradName, grad->shape, "2");
  if (tokens == 0) return ZeroAttr("tokens_num", "the rows cannot be divided among tokens");
  const Wide slots = Wide{grad->shape[0]} / tokens;
  if (!FitsInt64(slots)) return FieldTooLarge("rows / tokens_num");
  *shapes = {{tokens, grad->shape[1]}, {tokens, static_cast<std::int64_t>(slots)}};
  return {};
}

// Both outputs are inferred as the tokens' dtype, the probs' gradient too where it is float32.
Status InferDType(const Problem& problem, std::vector<DType>* dtypes) {
  const TensorDesc* const grad = Input(problem, 0);
  if (grad == nullptr) return MissingTensor(kGradName);
  *dtypes = {grad->dtype, grad->dtype};
  return {};
}

struct DropPadding {
  Wide capacity, expert_num, token_num, single_core_len, last_core_len;
};

// The twelve numbers of the not padded kernel, then the five of the padded one; those of the kernel
// that does not run are 0.
void AddFields(Wide hidden, Wide top_k, Wide rows, const UTiling& split, const DropPadding& drop,
               TilingBuilder* builder) {
  builder->Add("hidden_size", hidden);
  builder->Add("top_k", top_k);
  builder->Add("num_out_tokens", rows);
  AddUFields(split, builder);
  builder->Add("capacity", drop.capacity);
  builder->Add("expertNum", drop.expert_num);
  builder->Add("tokenNum", drop.token_num);
  builder->Add("singleCoreLen", drop.single_core_len);
  builder->Add("lastCoreLen", drop.last_core_len);
}

constexpr std::int64_t kNotPaddedKey = 0;
constexpr std::int64_t kPaddedKey = 1000;

Status TileNotPadded(const TensorDesc& grad, std::int64_t tokens_num, const Platform& platform,
                     TilingBuilder* builder) {
  const Wide rows = grad.shape[0];
  const Wide top_k = SafeDiv(rows, tokens_num);
  if (top_k > kMaxTopK) {
    return TopKTooLarge(static_cast<std::int64_t>(top_k), kMaxTopK,
                        "rows of permuted_token_output_grad / tokens_num");
  }
  UTilingInput input{};
  input.ub_bytes = platform.ub_bytes;
  input.cores = platform.vector_cores;
  input.element_bytes = TilingSizeOf(grad.dtype);
  input.hidden = grad.shape[1];
  input.top_k = top_k;
  // Not tokens_num: the two differ where the rows are no multiple of it.
  input.tokens = SafeDiv(rows, top_k);
  input.index_bytes = 4;
  const UTiling split = ComputeUTiling(input);
  AddFields(input.hidden, top_k, rows, split, {}, builder);
  builder->Key(kNotPaddedKey);
  builder->BlockDim(split.used_cores);
  return {};
}

void TilePadded(const TensorDesc& grad, std::int64_t num_experts, std::int64_t tokens_num,
                const Platform& platform, TilingBuilder* builder) {
  DropPadding drop{};
  drop.capacity = SafeDiv(grad.shape[0], num_experts);
  drop.expert_num = num_experts;
  drop.token_num = tokens_num;
  const Wide elements = drop.capacity * num_experts;
  const Wide cores = elements > platform.vector_cores ? platform.vector_cores : 1;
  drop.single_core_len = elements / cores;
  drop.last_core_len = elements - drop.single_core_len * (cores - 1);
  AddFields(0, 0, 0, {}, drop, builder);
  builder->Key(kPaddedKey);
  builder->BlockDim(cores);
}

Status ComputeTiling(const Problem& problem, const Platform& platform, Tiling* tiling) {
  bool padded = false;
  std::int64_t num_experts = 0;
  std::int64_t tokens_num = 0;
  for (Status status :
       {ReadBool(problem, kPaddedMode, "padded_mode", &padded),
        ReadCount(problem, kNumExperts, "num_experts", &num_experts),
        ReadCount(problem, kTokensNum, "tokens_num", &tokens_num), CheckPlatform(platform)}) {
    if (!status.ok()) return status;
  }
  const TensorDesc* const grad = Input(problem, 0);
  if (grad == nullptr) return MissingTensor(kGradName);
  if (grad->shape.size() < 2) return WrongRank(kGradName, grad->shape, "2");
  if (Status status = CheckDims(kGradName, grad->shape); !status.ok()) return status;

  TilingBuilder builder;
  builder.Workspace(kSystemWorkspaceBytes);
  if (padded) {
    TilePadded(*grad, num_experts, tokens_num, platform, &builder);
  } else if (Status status = TileNotPadded(*grad, tokens_num, platform, &builder); !status.ok()) {
    return status;
  }
  return builder.Finish(tiling);
}

void Describe(const Problem& problem, const Platform& platform, const Tiling& tiling,
              Layout* layout) {
  if (tiling.key == kNotPaddedKey) {
    layout->stages.push_back(
        AdditionStage(tiling, platform, TilingSizeOf(problem.inputs[0]->dtype)));
    if (tiling["top_k"] == 0) {
      layout->notes.emplace_back(
          "there are fewer rows than tokens, so no token has a slot: the gradient is zero");
    } else if (tiling["hidden_splited_length"] <= 0 && tiling["hidden_size"] > 0) {
      layout->notes.emplace_back(
          "no part of a row fits the unified buffer: the kernel writes nothing");
    } else if (tiling["tokens_splited_length"] <= 0 && tiling["tokens_core_length"] > 0) {
      layout->notes.emplace_back(
          "the indices of one token do not fit the unified buffer: the kernel writes nothing");
    }
    const std::int64_t tokens_num = std::get<std::int64_t>(*problem.attrs[kTokensNum]);
    const std::int64_t tokens = TotalOf(layout->stages.back().cores);
    if (tiling["top_k"] != 0 && tokens != tokens_num) {
      layout->notes.emplace_back(
          "tokens_num does not divide the rows: the tiling has more tokens than the output, and "
          "the call is refused");
    }
    return;
  }
  Stage stage;
  stage.title = "scatter the probs' gradient";
  stage.unit = "rows";
  const std::int64_t cores = tiling.block_dim;
  stage.cores = {{cores - 1, tiling["singleCoreLen"]}, {1, tiling["lastCoreLen"]}};
  layout->stages.push_back(std::move(stage));
  layout->notes.emplace_back(
      "tokens: rows are sorted by token and added up by other operators (Sort, "
      "InplaceIndexAddWithSorted)");
}

Problem ProblemOf(const CallSizes& sizes) {
  const Shape map = {sizes.tokens, sizes.experts};
  Problem problem;
  problem.inputs = {TensorDesc{sizes.dtype, {sizes.rows, sizes.hidden}},
                    ProbsOf(sizes, {sizes.rows}), TensorDesc{DType::kInt32, {sizes.rows}},
                    TensorDesc{DType::kInt8, map}};
  problem.outputs = {TensorDesc{sizes.dtype, {sizes.tokens, sizes.hidden}}, ProbsOf(sizes, map)};
  problem.attrs = {sizes.experts, sizes.tokens, sizes.drop_and_pad};
  return problem;
}

}  // namespace

OpDef MoeTokenPermuteWithRoutingMapGrad() {
  static const std::array attrs = {
      AttrDef{"num_experts", AttrType::kInt, true, std::int64_t{1}},
      AttrDef{"tokens_num", AttrType::kInt, true, std::int64_t{0}},
      AttrDef{"padded_mode", AttrType::kBool, false, false},
  };
  return {"MoeTokenPermuteWithRoutingMapGrad",
          kName,
          "aclnnMoeTokenPermuteWithRoutingMapGrad",
          kInputs,
          kOutputs,
          attrs,
          kSocSupport,
          kBinaries,
          InferShape,
          InferDType,
          ComputeTiling,
          Describe,
          ProblemOf};
}

}  // namespace moeperm::cann::host
