// SPDX-License-Identifier: Apache-2.0
// The sum of each token's rows, weighted by its probs (u_tiling.hpp). Without probs a token has one
// row.
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

constexpr std::string_view kName = "moe_token_unpermute";

constexpr auto kIndexTypes = All<9>(kI);
constexpr std::array kInputs = {
    TensorDef{"permuted_tokens", true, kNineTokenTypes},
    TensorDef{"sorted_indices", true, kIndexTypes},
    TensorDef{"probs", false, kNineProbTypes},
};
constexpr std::array kOutputs = {
    TensorDef{"unpermuted_tokens", true, kNineTokenTypes},
};
constexpr auto kSocSupport = On(kName, kA2, kA3, k310P);

Status InferShape(const Problem& problem, std::vector<Shape>* shapes) {
  const TensorDesc* const tokens = Input(problem, 0);
  const TensorDesc* const probs = Input(problem, 2);
  const TensorDesc* const counted = probs != nullptr ? probs : Input(problem, 1);
  if (tokens == nullptr) return MissingTensor("permuted_tokens");
  if (counted == nullptr) return MissingTensor("sorted_indices");
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  for (Status status : {DimOf(probs != nullptr ? "probs" : "sorted_indices", *counted, 0, &rows),
                        DimOf("permuted_tokens", *tokens, 1, &hidden)}) {
    if (!status.ok()) return status;
  }
  *shapes = {{rows, hidden}};
  return {};
}

Status InferDType(const Problem& problem, std::vector<DType>* dtypes) {
  return InferTypeOfInput0(problem, "permuted_tokens", dtypes);
}

// What an Ascend310P cannot do.
Status Check310P(const TensorDesc& tokens, const TensorDesc* probs) {
  constexpr std::int64_t kMultiple = 128;
  constexpr std::int64_t kMost = 10240;
  const std::int64_t hidden = tokens.shape[1];
  if (hidden % kMultiple != 0 || hidden > kMost) {
    return HiddenNotFor310P("permuted_tokens", hidden, kMultiple, kMost);
  }
  if (tokens.dtype == DType::kBFloat16) return DTypeNotFor("permuted_tokens", tokens.dtype, k310P);
  if (probs != nullptr && probs->dtype == DType::kBFloat16) {
    return DTypeNotFor("probs", probs->dtype, k310P);
  }
  return {};
}

Status ComputeTiling(const Problem& problem, const Platform& platform, Tiling* tiling) {
  UTilingInput input{};
  std::int64_t rows = 0;
  if (Status status = ReadUInput(problem, "permuted_tokens", platform, &input, &rows);
      !status.ok()) {
    return status;
  }
  const TensorDesc& tokens = *problem.inputs[0];
  const TensorDesc& indices = *problem.inputs[1];
  const TensorDesc* const probs = Input(problem, 2);
  if (tokens.shape.size() != 2) return WrongRank("permuted_tokens", tokens.shape, "2");
  if (platform.soc == k310P) {
    if (Status status = Check310P(tokens, probs); !status.ok()) return status;
  }
  input.index_bytes = TilingSizeOf(indices.dtype);
  input.tokens = indices.shape[0];
  input.top_k = 1;
  if (probs != nullptr) {
    if (Status status = CheckUProbs(*probs, indices, &input); !status.ok()) return status;
  }
  TilingBuilder builder;
  TileU(input, rows, &builder);
  builder.Key(UKey(tokens.dtype, probs));
  builder.Workspace(kSystemWorkspaceBytes);
  return builder.Finish(tiling);
}

void Describe(const Problem& problem, const Platform& platform, const Tiling& tiling,
              Layout* layout) {
  DescribeAddition(problem, platform, tiling, TilingSizeOf(problem.inputs[1]->dtype), layout);
  if (Input(problem, 2) == nullptr) {
    layout->notes.emplace_back("without probs a token has one row: nothing is added up");
  }
}

Problem ProblemOf(const CallSizes& sizes) {
  Problem problem;
  problem.inputs = {TensorDesc{sizes.dtype, {sizes.rows, sizes.hidden}},
                    TensorDesc{DType::kInt32, {sizes.slots}},
                    ProbsOf(sizes, {sizes.tokens, sizes.top_k})};
  problem.outputs = {
      TensorDesc{sizes.dtype, {sizes.probs ? sizes.tokens : sizes.slots, sizes.hidden}}};
  problem.attrs = {false, std::nullopt};
  return problem;
}

}  // namespace

OpDef MoeTokenUnpermute() {
  static const std::array attrs = {
      AttrDef{"padded_mode", AttrType::kBool, false, false},
      AttrDef{"restore_shape", AttrType::kIntList, false, std::vector<std::int64_t>{}},
  };
  return {"MoeTokenUnpermute",
          kName,
          "aclnnMoeTokenUnpermute",
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
