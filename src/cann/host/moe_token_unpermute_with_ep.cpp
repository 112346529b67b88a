// SPDX-License-Identifier: Apache-2.0
// The sum of each token's rows that are in a range, weighted by its probs (u_tiling.hpp).
#include <array>
#include <string_view>

#include "cann/host/definition_parts.hpp"
#include "cann/host/definitions.hpp"
#include "cann/host/inference.hpp"
#include "cann/host/layout.hpp"
#include "cann/host/messages.hpp"
#include "cann/host/problem.hpp"
#include "cann/host/u_tiling.hpp"

namespace moeperm::cann::host {
namespace {

using namespace parts;

constexpr std::string_view kName = "moe_token_unpermute_with_ep";

constexpr auto kIndexTypes = All<9>(kI);
constexpr std::array kInputs = {
    TensorDef{"permuted_tokens", true, kNineTokenTypes},
    TensorDef{"sorted_indices", true, kIndexTypes},
    TensorDef{"probs", false, kNineProbTypes},
};
constexpr std::array kOutputs = {
    TensorDef{"unpermuted_tokens", true, kNineTokenTypes},
};
constexpr auto kSocSupport = On(kName, kA2, kA3);

Status InferShape(const Problem& problem, std::vector<Shape>* shapes) {
  const TensorDesc* const tokens = Input(problem, 0);
  const TensorDesc* const probs = Input(problem, 2);
  const TensorDesc* const indices = Input(problem, 1);
  if (tokens == nullptr) return MissingTensor("permuted_tokens");
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  if (Status status = DimOf("permuted_tokens", *tokens, 1, &hidden); !status.ok()) return status;
  if (probs != nullptr) {
    if (Status status = DimOf("probs", *probs, 0, &rows); !status.ok()) return status;
    *shapes = {{rows, hidden}};
    return {};
  }
  if (indices == nullptr) return MissingTensor("sorted_indices");
  std::int64_t top_k = 0;
  for (Status status :
       {ReadInt(problem, 0, "num_topk", &top_k), DimOf("sorted_indices", *indices, 0, &rows)}) {
    if (!status.ok()) return status;
  }
  std::int64_t unpermuted = 0;
  if (Status status = DivideRows("num_topk", rows, top_k, &unpermuted); !status.ok()) return status;
  *shapes = {{unpermuted, hidden}};
  return {};
}

Status InferDType(const Problem& problem, std::vector<DType>* dtypes) {
  return InferTypeOfInput0(problem, "permuted_tokens", dtypes);
}

// By the probs, not the tokens.
std::int64_t KeyOf(const TensorDesc* probs) {
  if (probs == nullptr) return 0;
  if (probs->dtype == DType::kFloat32) return 1;
  return probs->dtype == DType::kFloat16 ? 2 : 3;
}

Status ComputeTiling(const Problem& problem, const Platform& platform, Tiling* tiling) {
  EpTiling ep{};
  UTilingInput input{};
  const TensorDesc* const probs = Input(problem, 2);
  if (Status status = ReadEp(problem, "permuted_tokens", platform, &ep, &input); !status.ok()) {
    return status;
  }
  input.index_bytes = TilingSizeOf(problem.inputs[1]->dtype);
  if (probs != nullptr) {
    if (probs->shape.size() != 2) return WrongRank("probs", probs->shape, "2");
    if (probs->shape[1] != input.top_k) {
      return WrongDim("probs", probs->shape, 1, static_cast<std::int64_t>(input.top_k), "num_topk");
    }
    if (Status status = CheckUProbs(*probs, *problem.inputs[1], &input); !status.ok()) {
      return status;
    }
  }
  ep.probs_grad_length = probs != nullptr ? 0 : 1;
  TilingBuilder builder;
  TileEp(ep, input, &builder);
  builder.Key(ep.bad_range ? 0 : KeyOf(probs));
  builder.Workspace(kSystemWorkspaceBytes);
  return builder.Finish(tiling);
}

void Describe(const Problem& problem, const Platform& platform, const Tiling& tiling,
              Layout* layout) {
  DescribeEp(problem, platform, tiling, TilingSizeOf(problem.inputs[1]->dtype), layout);
}

Problem ProblemOf(const CallSizes& sizes) {
  Problem problem;
  problem.inputs = {TensorDesc{sizes.dtype, {sizes.rows, sizes.hidden}},
                    TensorDesc{DType::kInt32, {sizes.slots}},
                    ProbsOf(sizes, {sizes.tokens, sizes.top_k})};
  problem.outputs = {TensorDesc{sizes.dtype, {sizes.tokens, sizes.hidden}}};
  problem.attrs = {sizes.top_k, std::vector<std::int64_t>{0, sizes.rows}, false, std::nullopt};
  return problem;
}

}  // namespace

OpDef MoeTokenUnpermuteWithEp() {
  static const std::array attrs = {
      AttrDef{"num_topk", AttrType::kInt, false, std::int64_t{1}},
      AttrDef{"range", AttrType::kIntList, false, std::vector<std::int64_t>{0, 0}},
      AttrDef{"padded_mode", AttrType::kBool, false, false},
      AttrDef{"restore_shape", AttrType::kIntList, false, std::vector<std::int64_t>{}},
  };
  return {"MoeTokenUnpermuteWithEp",
          kName,
          "aclnnMoeTokenUnpermuteWithEp",
          kInputs,
          kOutputs,
          attrs,
          kSocSupport,
          {},  // the descriptions list no prebuilt ones
          InferShape,
          InferDType,
          ComputeTiling,
          Describe,
          ProblemOf};
}

}  // namespace moeperm::cann::host
