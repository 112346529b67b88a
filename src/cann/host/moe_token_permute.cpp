// SPDX-License-Identifier: Apache-2.0
// The permutation by a table of expert numbers (table_permute.hpp).
#include <array>
#include <string_view>

#include "cann/host/definition_parts.hpp"
#include "cann/host/definitions.hpp"
#include "cann/host/inference.hpp"
#include "cann/host/layout.hpp"
#include "cann/host/messages.hpp"
#include "cann/host/problem.hpp"
#include "cann/host/table_permute.hpp"

namespace moeperm::cann::host {
namespace {

using namespace parts;

constexpr std::string_view kName = "moe_token_permute";

constexpr std::array kTokenTypes = {kB, kB, kH, kH, kF, kF, k8, k8};
constexpr std::array kTableTypes = {kI, kL, kI, kL, kI, kL, kI, kL};
constexpr auto kIndexTypes = All<8>(kI);
constexpr std::array kInputs = {
    TensorDef{"tokens", true, kTokenTypes},
    TensorDef{"indices", true, kTableTypes},
};
constexpr std::array kOutputs = {
    TensorDef{"permute_tokens", true, kTokenTypes},
    TensorDef{"sorted_indices", true, kIndexTypes},
};
constexpr auto kSocSupport = On(kName, kA2, kA3);

enum : std::size_t { kNumOutTokens, kPaddedMode };  // positions of the attributes

// The rows that num_out_tokens asks for: 0 all, a negative number all but so many.
std::int64_t RowsOf(std::int64_t num_out_tokens, std::int64_t slots) {
  const Wide rows = num_out_tokens <= 0 ? Wide{num_out_tokens} + slots : Wide{num_out_tokens};
  return static_cast<std::int64_t>(std::clamp<Wide>(rows, 0, std::max<std::int64_t>(slots, 0)));
}

Status InferShape(const Problem& problem, std::vector<Shape>* shapes) {
  std::int64_t num_out_tokens = 0;
  std::int64_t slots = 0;
  for (Status status : {ReadInt(problem, kNumOutTokens, "num_out_tokens", &num_out_tokens),
                        SlotsOfTable(problem, &slots)}) {
    if (!status.ok()) return status;
  }
  *shapes = PermutedShapes(problem, slots, RowsOf(num_out_tokens, slots));
  return {};
}

Status InferDType(const Problem& problem, std::vector<DType>* dtypes) {
  if (Status status = InferTypeOfInput0(problem, "tokens", dtypes); !status.ok()) return status;
  dtypes->push_back(DType::kInt32);
  return {};
}

Status ComputeTiling(const Problem& problem, const Platform& platform, Tiling* tiling) {
  TableSizes sizes{};
  std::int64_t num_out_tokens = 0;
  for (Status status : {ReadInt(problem, kNumOutTokens, "num_out_tokens", &num_out_tokens),
                        RefusePadded(problem, kPaddedMode), CheckPlatform(platform)}) {
    if (!status.ok()) return status;
  }
  if (Status status = ReadTable(problem, &sizes); !status.ok()) return status;
  if (Status status = CheckTableLimits(sizes); !status.ok()) return status;
  sizes.rows = RowsOf(num_out_tokens, sizes.slots());
  if (Status status = CheckPermuted(problem, sizes); !status.ok()) return status;
  TilingBuilder builder;
  TileTable(sizes, nullptr, platform, &builder);
  return builder.Finish(tiling);
}

void Describe(const Problem& /*problem*/, const Platform& platform, const Tiling& tiling,
              Layout* layout) {
  layout->stages = {SortStage(tiling, platform), RowCopyStage(tiling, platform)};
}

Problem ProblemOf(const CallSizes& sizes) {
  Problem problem;
  problem.inputs = {TensorDesc{sizes.dtype, {sizes.tokens, sizes.hidden}},
                    TensorDesc{DType::kInt32, {sizes.tokens, sizes.top_k}}};
  problem.outputs = {TensorDesc{sizes.dtype, {sizes.rows, sizes.hidden}},
                     TensorDesc{DType::kInt32, {sizes.slots}}};
  problem.attrs = {sizes.rows, false};
  return problem;
}

}  // namespace

OpDef MoeTokenPermute() {
  static const std::array attrs = {
      AttrDef{"num_out_tokens", AttrType::kInt, false, std::int64_t{0}},
      AttrDef{"padded_mode", AttrType::kBool, false, false},
  };
  return {"MoeTokenPermute", kName,      "aclnnMoeTokenPermute", kInputs,  kOutputs, attrs,
          kSocSupport,       {},  // the descriptions list no prebuilt ones
          InferShape,        InferDType, ComputeTiling,          Describe, ProblemOf};
}

}  // namespace moeperm::cann::host
