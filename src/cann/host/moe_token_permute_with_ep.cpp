// SPDX-License-Identifier: Apache-2.0
// The permutation of a range of rows by a table of expert numbers (table_permute.hpp).
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

constexpr std::string_view kName = "moe_token_permute_with_ep";

constexpr std::array kTokenTypes = {kB, kB, kH, kH, kF, kF};
constexpr std::array kTableTypes = {kI, kL, kI, kL, kI, kL};
constexpr auto kIndexTypes = All<6>(kI);
constexpr std::array kInputs = {
    TensorDef{"tokens", true, kTokenTypes},
    TensorDef{"indices", true, kTableTypes},
    TensorDef{"probs", false, kTokenTypes},
};
constexpr std::array kOutputs = {
    TensorDef{"permute_tokens", true, kTokenTypes},
    TensorDef{"sorted_indices", true, kIndexTypes},
    TensorDef{"permute_probs", false, kTokenTypes},
};
constexpr auto kSocSupport = On(kName, kA2, kA3);

enum : std::size_t { kRange, kNumOutTokens, kPaddedMode };  // positions of the attributes

// The range; without one the first num_out_tokens rows.
Status ReadRange(const Problem& problem, EpRange* range) {
  if (const auto list = ReadList(problem, kRange)) {
    if (list->size() != 2) return BadRangeSize(list->size());
    range->start = (*list)[0];
    range->end = (*list)[1];
    return {};
  }
  range->start = 0;
  return ReadInt(problem, kNumOutTokens, "num_out_tokens", &range->end);
}

std::int64_t Clamped(Wide rows, std::int64_t slots) {
  return static_cast<std::int64_t>(std::clamp<Wide>(rows, 0, std::max<std::int64_t>(slots, 0)));
}
// A range that ends where it starts, or before, counts on from all.
std::int64_t RowsOf(const EpRange& range, std::int64_t slots) {
  const Wide rows = Wide{range.end} - range.start;
  return Clamped(rows <= 0 ? rows + slots : rows, slots);
}

Status InferShape(const Problem& problem, std::vector<Shape>* shapes) {
  EpRange range{};
  std::int64_t slots = 0;
  for (Status status : {ReadRange(problem, &range), SlotsOfTable(problem, &slots)}) {
    if (!status.ok()) return status;
  }
  *shapes = PermutedShapes(problem, slots, RowsOf(range, slots));
  shapes->emplace_back();  // the probs' is not inferred
  return {};
}

Status InferDType(const Problem& problem, std::vector<DType>* dtypes) {
  if (Status status = InferTypeOfInput0(problem, "tokens", dtypes); !status.ok()) return status;
  const TensorDesc* const probs = Input(problem, 2);
  dtypes->push_back(DType::kInt32);
  dtypes->push_back(probs != nullptr ? probs->dtype : DType::kUndefined);
  return {};
}

Status CheckProbs(const TensorDesc& probs, const Shape& table) {
  if (Status status = CheckDims("probs", probs.shape); !status.ok()) return status;
  if (probs.shape.size() != table.size()) {
    return WrongRank("probs", probs.shape, "those of indices");
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (probs.shape[i] != table[i]) {
      return WrongDim("probs", probs.shape, i, table[i], "that of indices");
    }
  }
  return {};
}

Status CheckPermutedProbs(const Problem& problem, std::int64_t rows) {
  const TensorDesc* const out = Output(problem, 2);
  if (out == nullptr) return MissingTensor("permute_probs");
  if (out->shape.size() != 1) return WrongRank("permute_probs", out->shape, "1");
  if (out->shape[0] != rows) return WrongDim("permute_probs", out->shape, 0, rows, "rows");
  return {};
}

Status ComputeTiling(const Problem& problem, const Platform& platform, Tiling* tiling) {
  TableSizes sizes{};
  EpRange range{};
  for (Status status :
       {ReadRange(problem, &range), RefusePadded(problem, kPaddedMode), CheckPlatform(platform)}) {
    if (!status.ok()) return status;
  }
  if (Status status = ReadTable(problem, &sizes); !status.ok()) return status;
  const TensorDesc* const probs = Input(problem, 2);
  if (probs != nullptr) {
    if (Status status = CheckProbs(*probs, problem.inputs[1]->shape); !status.ok()) return status;
    range.prob_bytes = TilingSizeOf(probs->dtype);
  }
  if (sizes.top_k < 1) return Empty("indices", problem.inputs[1]->shape, "slots");
  if (Status status = CheckTableLimits(sizes); !status.ok()) return status;
  for (const std::int64_t end : {range.start, range.end}) {
    if (end < 0 || end > sizes.slots()) return BadRange(range.start, range.end);
  }
  sizes.rows = RowsOf(range, sizes.slots());
  if (Status status = CheckPermuted(problem, sizes); !status.ok()) return status;
  if (probs != nullptr) {
    if (Status status = CheckPermutedProbs(problem, sizes.rows); !status.ok()) return status;
  }
  TilingBuilder builder;
  TileTable(sizes, &range, platform, &builder);
  return builder.Finish(tiling);
}

void Describe(const Problem& /*problem*/, const Platform& platform, const Tiling& tiling,
              Layout* layout) {
  layout->stages = {SortStage(tiling, platform), RowCopyStage(tiling, platform)};
}

Problem ProblemOf(const CallSizes& sizes) {
  Problem problem;
  problem.inputs = {TensorDesc{sizes.dtype, {sizes.tokens, sizes.hidden}},
                    TensorDesc{DType::kInt32, {sizes.tokens, sizes.top_k}},
                    ProbsOf(sizes, {sizes.tokens, sizes.top_k})};
  problem.outputs = {TensorDesc{sizes.dtype, {sizes.rows, sizes.hidden}},
                     TensorDesc{DType::kInt32, {sizes.slots}}, ProbsOf(sizes, {sizes.rows})};
  problem.attrs = {std::vector<std::int64_t>{0, sizes.rows}, sizes.rows, false};
  return problem;
}

}  // namespace

OpDef MoeTokenPermuteWithEp() {
  static const std::array attrs = {
      AttrDef{"range", AttrType::kIntList, false, std::vector<std::int64_t>{0, 0}},
      AttrDef{"num_out_tokens", AttrType::kInt, false, std::int64_t{0}},
      AttrDef{"padded_mode", AttrType::kBool, false, false},
  };
  return {"MoeTokenPermuteWithEp",
          kName,
          "aclnnMoeTokenPermuteWithEp",
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
