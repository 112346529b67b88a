// SPDX-License-Identifier: Apache-2.0
// The gradient of unpermute of a range of rows (g_tiling.hpp).
#include <algorithm>
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

constexpr std::string_view kName = "moe_token_unpermute_with_ep_grad";

constexpr auto kIndexTypes = All<9>(kI);
constexpr std::array kInputs = {
    TensorDef{"unpermuted_tokens_grad", true, kNineTokenTypes},
    TensorDef{"sorted_indices", true, kIndexTypes},
    TensorDef{"permuted_tokens", false, kNineTokenTypes},
    TensorDef{"probs", false, kNineProbTypes},
};
constexpr std::array kOutputs = {
    TensorDef{"permuted_tokens_grad", true, kNineTokenTypes},
    TensorDef{"probs_grad", false, kNineProbTypes},
};
constexpr auto kSocSupport = On(kName, kA2, kA3);

enum : std::size_t { kGrad, kIndices, kPermuted, kProbs };  // positions of the inputs

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

enum : std::size_t { kPaddedMode, kRestoreShape, kRange, kTopkNum };  // and of the attributes

// [start, end) in slots: a negative end counts from the slots' number, both are clamped to it.
struct Range {
  std::int64_t start, end;
};
Range Normalised(const std::vector<std::int64_t>& range, std::int64_t slots) {
  const auto clamped = [slots](std::int64_t end) {
    return std::clamp<std::int64_t>(end < 0 ? end + slots : end, 0, slots);
  };
  return {clamped(range[0]), clamped(range[1])};
}

Status ComputeTiling(const Problem& problem, const Platform& platform, Tiling* tiling) {
  const UnpermuteGradInputs inputs = InputsOf(problem);
  bool padded = false;  // read, and ignored
  if (inputs.grad == nullptr) return MissingTensor("unpermuted_tokens_grad");
  if (inputs.permuted != nullptr && inputs.permuted->dtype != inputs.grad->dtype) {
    return OtherDType("permuted_tokens", inputs.permuted->dtype, "unpermuted_tokens_grad",
                      inputs.grad->dtype);
  }
  if (Status status = ReadBool(problem, kPaddedMode, "padded_mode", &padded); !status.ok()) {
    return status;
  }
  std::int64_t top_k = 1;
  if (problem.attrs.size() > kTopkNum && problem.attrs[kTopkNum]) {
    if (Status status = ReadCount(problem, kTopkNum, "topk_num", &top_k); !status.ok()) {
      return status;
    }
  }
  GTilingInput input{};
  input.rows = inputs.permuted != nullptr ? inputs.permuted : inputs.indices;
  if (Status status = ReadGInput(inputs, top_k, platform, &input); !status.ok()) return status;
  input.rows_by_slot = true;
  const std::int64_t slots = inputs.indices->shape[0];
  Range range{0, slots};
  bool bad_range = false;
  if (const auto list = ReadList(problem, kRange)) {
    // A list of another size ends the original's reading of the range, not its tiling.
    bad_range = list->size() != 2;
    range = bad_range ? Range{0, 0} : Normalised(*list, slots);
  }
  if (range.end < range.start) return BadRange(range.start, range.end);
  if (bad_range) input.num_out_tokens = 0;
  if (range.start != 0) input.num_out_tokens = range.end;
  TilingBuilder builder;
  TileG(input, &builder);
  builder.Add("start", range.start);
  builder.Add("end", range.end);
  if (bad_range) builder.BlockDim(0);
  return builder.Finish(tiling);
}

Problem ProblemOf(const CallSizes& sizes) {
  Problem problem;
  problem.inputs = {TensorDesc{sizes.dtype, {sizes.tokens, sizes.hidden}},
                    TensorDesc{DType::kInt32, {sizes.slots}},
                    TensorDesc{sizes.dtype, {sizes.rows, sizes.hidden}},
                    ProbsOf(sizes, {sizes.tokens, sizes.top_k})};
  problem.outputs = {TensorDesc{sizes.dtype, {sizes.rows, sizes.hidden}},
                     ProbsOf(sizes, {sizes.tokens, sizes.top_k})};
  problem.attrs = {false, std::nullopt, std::vector<std::int64_t>{0, sizes.rows}, sizes.top_k};
  return problem;
}

void Describe(const Problem& problem, const Platform& platform, const Tiling& tiling,
              Layout* layout) {
  DescribeG(InputsOf(problem), platform, tiling, layout);
}

}  // namespace

OpDef MoeTokenUnpermuteWithEpGrad() {
  static const std::array attrs = {
      AttrDef{"padded_mode", AttrType::kBool, false, false},
      AttrDef{"restore_shape", AttrType::kIntList, false, std::vector<std::int64_t>{1, 1}},
      AttrDef{"range", AttrType::kIntList, false, std::vector<std::int64_t>{-1, -1}},
      AttrDef{"topk_num", AttrType::kInt, false, std::int64_t{1}},
  };
  return {"MoeTokenUnpermuteWithEpGrad",
          kName,
          "aclnnMoeTokenUnpermuteWithEpGrad",
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
