// SPDX-License-Identifier: Apache-2.0
// The gradient of unpermute (g_tiling.hpp).
#include <array>
#include <string_view>

#include "cann/host/definition_parts.hpp"
#include "cann/host/definitions.hpp"
#include "cann/host/g_tiling.hpp"
#include "cann/host/inference.hpp"
#include "cann/host/layout.hpp"
#include "cann/host/messages.hpp"
#include "cann/host/problem.hpp"

namespace moeperm::cann::host {
namespace {

using namespace parts;

constexpr std::string_view kName = "moe_token_unpermute_grad";

constexpr auto kIndexTypes = All<9>(kI);
constexpr std::array kInputs = {
    TensorDef{"permuted_tokens", false, kNineTokenTypes},
    TensorDef{"unpermuted_tokens_grad", true, kNineTokenTypes},
    TensorDef{"sorted_indices", true, kIndexTypes},
    TensorDef{"probs", false, kNineProbTypes},
};
constexpr std::array kOutputs = {
    TensorDef{"permuted_tokens_grad", true, kNineTokenTypes},
    TensorDef{"probs_grad", false, kNineProbTypes},
};
constexpr auto kSocSupport = On(kName, kA2, kA3);

enum : std::size_t { kPermuted, kGrad, kIndices, kProbs };  // positions of the inputs

UnpermuteGradInputs InputsOf(const Problem& problem) {
  return {Input(problem, kGrad), Input(problem, kIndices), Input(problem, kPermuted),
          Input(problem, kProbs)};
}

Status InferShape(const Problem& problem, std::vector<Shape>* shapes) {
  return InferUnpermuteGrad(InputsOf(problem), shapes);
}

Status InferDType(const Problem& problem, std::vector<DType>* dtypes) {
  return InferUnpermuteGradTypes(InputsOf(problem), dtypes);
}

Status ComputeTiling(const Problem& problem, const Platform& platform, Tiling* tiling) {
  const UnpermuteGradInputs inputs = InputsOf(problem);
  GTilingInput input{};
  input.rows = inputs.indices;
  if (Status status = ReadGInput(inputs, 1, platform, &input); !status.ok()) return status;
  TilingBuilder builder;
  TileG(input, &builder);
  return builder.Finish(tiling);
}

// Without probs a token has one row.
Problem ProblemOf(const CallSizes& sizes) {
  const std::int64_t tokens = sizes.probs ? sizes.tokens : sizes.slots;
  Problem problem;
  problem.inputs = {TensorDesc{sizes.dtype, {sizes.rows, sizes.hidden}},
                    TensorDesc{sizes.dtype, {tokens, sizes.hidden}},
                    TensorDesc{DType::kInt32, {sizes.slots}},
                    ProbsOf(sizes, {sizes.tokens, sizes.top_k})};
  problem.outputs = {TensorDesc{sizes.dtype, {sizes.rows, sizes.hidden}},
                     ProbsOf(sizes, {sizes.tokens, sizes.top_k})};
  problem.attrs = {false, std::nullopt};
  return problem;
}

void Describe(const Problem& problem, const Platform& platform, const Tiling& tiling,
              Layout* layout) {
  DescribeG(InputsOf(problem), platform, tiling, layout);
}

}  // namespace

OpDef MoeTokenUnpermuteGrad() {
  static const std::array attrs = {
      AttrDef{"padded_mode", AttrType::kBool, false, false},
      AttrDef{"restore_shape", AttrType::kIntList, false, std::vector<std::int64_t>{1, 1}},
  };
  return {"MoeTokenUnpermuteGrad",
          kName,
          "aclnnMoeTokenUnpermuteGrad",
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
