// SPDX-License-Identifier: Apache-2.0
// The gradient of the permutation of a range of rows: each token's rows are added up
// (u_tiling.hpp).
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

constexpr std::string_view kName = "moe_token_permute_with_ep_grad";

constexpr auto kIndexTypes = All<3>(kI);
constexpr std::array kInputs = {
    TensorDef{"permuted_tokens_output_grad", true, kThreeTypes},
    TensorDef{"sorted_indices", true, kIndexTypes},
    TensorDef{"permuted_probs_output_grad", false, kThreeTypes},
};
constexpr std::array kOutputs = {
    TensorDef{"token_grad", true, kThreeTypes},
    TensorDef{"probs_grad", false, kThreeTypes},
};
constexpr auto kSocSupport = On(kName, kA2, kA3);

// The probs' gradient is not inferred, and the range is not considered.
Status InferShape(const Problem& problem, std::vector<Shape>* shapes) {
  const TensorDesc* const grad = Input(problem, 0);
  if (grad == nullptr) return MissingTensor("permuted_tokens_output_grad");
  std::int64_t top_k = 0;
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  for (Status status : {ReadInt(problem, 0, "num_topk", &top_k),
                        DimOf("permuted_tokens_output_grad", *grad, 0, &rows),
                        DimOf("permuted_tokens_output_grad", *grad, 1, &hidden)}) {
    if (!status.ok()) return status;
  }
  std::int64_t tokens = 0;
  if (Status status = DivideRows("num_topk", rows, top_k, &tokens); !status.ok()) return status;
  *shapes = {{tokens, hidden}, {}};
  return {};
}

Status InferDType(const Problem& problem, std::vector<DType>* dtypes) {
  if (Status status = InferTypeOfInput0(problem, "permuted_tokens_output_grad", dtypes);
      !status.ok()) {
    return status;
  }
  dtypes->push_back(DType::kUndefined);
  return {};
}

Status ComputeTiling(const Problem& problem, const Platform& platform, Tiling* tiling) {
  EpTiling ep{};
  UTilingInput input{};
  const TensorDesc* const probs = Input(problem, 2);
  if (Status status = ReadEp(problem, "permuted_tokens_output_grad", platform, &ep, &input);
      !status.ok()) {
    return status;
  }
  if (probs != nullptr && probs->shape.size() != 1) {
    return WrongRank("permuted_probs_output_grad", probs->shape, "1");
  }
  ep.probs_grad_length = 1;
  TilingBuilder builder;
  TileEp(ep, input, &builder);
  builder.Key(ep.bad_range || probs == nullptr ? 0 : 1);
  return builder.Finish(tiling);
}

void Describe(const Problem& problem, const Platform& platform, const Tiling& tiling,
              Layout* layout) {
  DescribeEp(problem, platform, tiling, 4, layout);
}

Problem ProblemOf(const CallSizes& sizes) {
  Problem problem;
  problem.inputs = {TensorDesc{sizes.dtype, {sizes.rows, sizes.hidden}},
                    TensorDesc{DType::kInt32, {sizes.slots}}, ProbsOf(sizes, {sizes.rows})};
  problem.outputs = {TensorDesc{sizes.dtype, {sizes.tokens, sizes.hidden}},
                     ProbsOf(sizes, {sizes.tokens, sizes.top_k})};
  problem.attrs = {sizes.top_k, std::vector<std::int64_t>{0, sizes.rows}, false};
  return problem;
}

}  // namespace

OpDef MoeTokenPermuteWithEpGrad() {
  static const std::array attrs = {
      AttrDef{"num_topk", AttrType::kInt, true, std::int64_t{1}},
      AttrDef{"range", AttrType::kIntList, false, std::vector<std::int64_t>{0, 0}},
      AttrDef{"padded_mode", AttrType::kBool, false, false},
  };
  return {"MoeTokenPermuteWithEpGrad",
          kName,
          "aclnnMoeTokenPermuteWithEpGrad",
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
