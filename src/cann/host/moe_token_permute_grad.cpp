// SPDX-License-Identifier: Apache-2.0
// The gradient of the permutation by a table: each token's rows are added up (u_tiling.hpp).
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

constexpr std::string_view kName = "moe_token_permute_grad";

constexpr auto kIndexTypes = All<3>(kI);
constexpr std::array kInputs = {
    TensorDef{"permuted_output_grad", true, kThreeTypes},
    TensorDef{"sorted_indices", true, kIndexTypes},
};
constexpr std::array kOutputs = {
    TensorDef{"input_grad", true, kThreeTypes},
};
constexpr auto kSocSupport = On(kName, kA2, kA3);

Status InferShape(const Problem& problem, std::vector<Shape>* shapes) {
  const TensorDesc* const grad = Input(problem, 0);
  if (grad == nullptr) return MissingTensor("permuted_output_grad");
  std::int64_t top_k = 0;
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  for (Status status :
       {ReadInt(problem, 0, "num_topk", &top_k), DimOf("permuted_output_grad", *grad, 0, &rows),
        DimOf("permuted_output_grad", *grad, 1, &hidden)}) {
    if (!status.ok()) return status;
  }
  std::int64_t tokens = 0;
  if (Status status = DivideRows("num_topk", rows, top_k, &tokens); !status.ok()) return status;
  *shapes = {{tokens, hidden}};
  return {};
}

Status InferDType(const Problem& problem, std::vector<DType>* dtypes) {
  return InferTypeOfInput0(problem, "permuted_output_grad", dtypes);
}

// Not even top_k is limited. num_topk -1 counts as 1.
Status ComputeTiling(const Problem& problem, const Platform& platform, Tiling* tiling) {
  std::int64_t top_k = 0;
  if (Status status = ReadInt(problem, 0, "num_topk", &top_k); !status.ok()) return status;
  if (top_k == -1) top_k = 1;
  if (top_k < 0) return NegativeAttr("num_topk", top_k);
  UTilingInput input{};
  std::int64_t rows = 0;
  if (Status status = ReadUInput(problem, "permuted_output_grad", platform, &input, &rows);
      !status.ok()) {
    return status;
  }
  input.top_k = top_k;
  input.tokens = SafeDiv(problem.inputs[1]->shape[0], top_k);
  TilingBuilder builder;
  TileU(input, rows, &builder);
  builder.Key(UKey(problem.inputs[0]->dtype, nullptr));
  builder.Workspace(kSystemWorkspaceBytes);
  return builder.Finish(tiling);
}

void Describe(const Problem& problem, const Platform& platform, const Tiling& tiling,
              Layout* layout) {
  DescribeAddition(problem, platform, tiling, 4, layout);
}

Problem ProblemOf(const CallSizes& sizes) {
  Problem problem;
  problem.inputs = {TensorDesc{sizes.dtype, {sizes.rows, sizes.hidden}},
                    TensorDesc{DType::kInt32, {sizes.slots}}};
  problem.outputs = {TensorDesc{sizes.dtype, {sizes.tokens, sizes.hidden}}};
  problem.attrs = {sizes.top_k, false};
  return problem;
}

}  // namespace

OpDef MoeTokenPermuteGrad() {
  static const std::array attrs = {
      AttrDef{"num_topk", AttrType::kInt, true, std::int64_t{0}},
      AttrDef{"padded_mode", AttrType::kBool, false, false},
  };
  return {"MoeTokenPermuteGrad",
          kName,
          "aclnnMoeTokenPermuteGrad",
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
