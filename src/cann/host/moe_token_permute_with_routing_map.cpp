// SPDX-License-Identifier: Apache-2.0
// The permutation. Not padded: cores walk the transposed map and list the tokens of each expert
// (masked_select.hpp), the list is sorted into slots, and rows are copied (s_tiling.hpp). Padded: a
// column of the map is sorted for each expert, and other operators copy the rows.
#include <array>
#include <string_view>

#include "cann/host/arithmetic.hpp"
#include "cann/host/definition_parts.hpp"
#include "cann/host/definitions.hpp"
#include "cann/host/layout.hpp"
#include "cann/host/masked_select.hpp"
#include "cann/host/messages.hpp"
#include "cann/host/problem.hpp"
#include "cann/host/s_tiling.hpp"
#include "cann/host/tiling_builder.hpp"

namespace moeperm::cann::host {
namespace {

using namespace parts;

constexpr std::string_view kName = "moe_token_permute_with_routing_map";

enum : std::size_t { kTokens, kMap, kProbs };          // positions of the inputs
enum : std::size_t { kPermuteTokens, kPermuteProbs };  // and of the outputs
enum : std::size_t { kNumOutTokens, kDropAndPad };     // and of the attributes

constexpr auto kIndexTypes = All<8>(kI);
constexpr std::array kInputs = {
    TensorDef{"tokens", true, kMapTokenTypes},
    TensorDef{"routing_map", true, kBoolInt8Maps},
    TensorDef{"probs", false, kMapProbTypes},
};
constexpr std::array kOutputs = {
    TensorDef{"permute_tokens", true, kMapTokenTypes},
    TensorDef{"permute_probs", true, kMapProbTypes},
    TensorDef{"sorted_indices", true, kIndexTypes},
};
constexpr auto kSocSupport = On(kName, kA2, kA3, k950);

// A map of at most this many elements is sorted by one core.
constexpr Wide kSmallMap = 32;
constexpr Wide kBlockBytes = 32;
constexpr Wide kIndexBytes = 4;

// The checked sizes of a call.
struct Sizes {
  Wide tokens, experts, hidden;
  Wide top_k;     // slots of a token; counted in drop-and-pad mode too
  Wide capacity;  // rows of an expert; 0 in the other mode
  Wide num_out_tokens;
  Wide element_bytes, prob_bytes;
  Wide cores;
  Wide ub_bytes;
  bool has_probs, drop_and_pad;
};

Status CheckOutputs(const Problem& problem, const Sizes& sizes) {
  const TensorDesc* const out = Output(problem, kPermuteTokens);
  if (out == nullptr) return MissingTensor("permute_tokens");
  if (out->shape.size() < 2) return WrongRank("permute_tokens", out->shape, "at least 2");
  // Without probs there need not be an output for them.
  const TensorDesc* const probs = Output(problem, kPermuteProbs);
  if (probs == nullptr && sizes.has_probs) return MissingTensor("permute_probs");
  if (probs != nullptr && probs->shape.size() != 1) {
    return WrongRank("permute_probs", probs->shape, "1");
  }
  if (sizes.drop_and_pad) return {};
  std::int64_t hidden = 0;
  if (Status status = HiddenOf("permute_tokens", out->shape, &hidden); !status.ok()) return status;
  if (hidden != sizes.hidden) {
    return WrongHidden("permute_tokens", hidden, static_cast<std::int64_t>(sizes.hidden));
  }
  const auto rows = static_cast<std::int64_t>(sizes.tokens * sizes.top_k);
  if (out->shape[0] != rows) {
    return WrongDim("permute_tokens", out->shape, 0, rows, "tokens * top_k");
  }
  return {};
}

Status ReadTensors(const Problem& problem, Sizes* sizes) {
  const TensorDesc* const map = Input(problem, kMap);
  if (map == nullptr) return MissingTensor("routing_map");
  const TensorDesc* const tokens = Input(problem, kTokens);
  if (tokens == nullptr) return MissingTensor("tokens");
  for (Status status : {CheckDims("routing_map", map->shape), CheckDims("tokens", tokens->shape)}) {
    if (!status.ok()) return status;
  }
  // The original takes one dimension, too, to refuse it next for the tokens it does not have.
  if (map->shape.size() != 2) return WrongRank("routing_map (experts, tokens)", map->shape, "2");
  if (tokens->shape.empty()) return WrongRank("tokens", tokens->shape, "at least 1");
  if (tokens->shape[0] != map->shape[1]) {
    return WrongDim("tokens", tokens->shape, 0, map->shape[1], "the routing map's tokens");
  }
  if (tokens->shape[0] <= 0) return Empty("tokens", tokens->shape, "tokens");
  if (map->shape[0] == 0) return Empty("routing_map (experts, tokens)", map->shape, "experts");
  std::int64_t hidden = 0;
  if (Status status = HiddenOf("tokens", tokens->shape, &hidden); !status.ok()) return status;
  sizes->tokens = tokens->shape[0];
  sizes->experts = map->shape[0];
  sizes->hidden = hidden;
  sizes->element_bytes = TilingSizeOf(tokens->dtype);
  const TensorDesc* const probs = Input(problem, kProbs);
  sizes->has_probs = probs != nullptr;
  sizes->prob_bytes = probs != nullptr ? TilingSizeOf(probs->dtype) : 2;
  return {};
}

Status ReadSizes(const Problem& problem, const Platform& platform, Sizes* sizes) {
  std::int64_t num_out_tokens = 0;
  for (Status status : {ReadCount(problem, kNumOutTokens, "num_out_tokens", &num_out_tokens),
                        ReadBool(problem, kDropAndPad, "drop_and_pad", &sizes->drop_and_pad),
                        CheckPlatform(platform), ReadTensors(problem, sizes)}) {
    if (!status.ok()) return status;
  }
  sizes->num_out_tokens = num_out_tokens;
  sizes->top_k = num_out_tokens / sizes->tokens;
  sizes->capacity = sizes->drop_and_pad ? num_out_tokens / sizes->experts : 0;
  sizes->cores = platform.compiled_cores != 0 ? platform.compiled_cores : platform.vector_cores;
  sizes->ub_bytes = AlignDown(platform.ub_bytes, kBlockBytes);
  if (!sizes->drop_and_pad && sizes->top_k > kMaxTopK) {
    return TopKTooLarge(static_cast<std::int64_t>(sizes->top_k), kMaxTopK,
                        "num_out_tokens / tokens");
  }
  const Wide total = sizes->drop_and_pad ? sizes->tokens : sizes->tokens * sizes->top_k;
  if (total >= kMaxTotalLength) {
    return TooLong(sizes->drop_and_pad ? "tokens" : "tokens * top_k",
                   static_cast<std::int64_t>(total), kMaxTotalLength);
  }
  return CheckOutputs(problem, *sizes);
}

// Experts for the cores of the padded kernel, a column each.
struct ColumnTasks {
  Wide front_tasks, tail_tasks, front_cores, tail_cores;
};

ColumnTasks SplitExperts(const Sizes& sizes) {
  ColumnTasks tasks{};
  const Wide rest = sizes.experts % sizes.cores;
  tasks.front_cores = rest != 0 ? rest : sizes.cores;
  tasks.tail_cores = sizes.experts <= sizes.cores ? 0 : sizes.cores - tasks.front_cores;
  tasks.front_tasks = CeilDiv(sizes.experts, sizes.cores);
  tasks.tail_tasks = sizes.experts / sizes.cores;
  return tasks;
}

// All 61 numbers; those of the kernel that does not run are 0.
void AddFields(const Sizes& sizes, Wide core_num, const SortSplit& sort, const ColumnTasks& tasks,
               Wide merge_cores, const IndexCopy& copy, const MaskedSelect& select,
               TilingBuilder* builder) {
  const Wide block_elements = SafeDiv(kBlockBytes, sizes.element_bytes);
  builder->Add("coreNum", core_num);
  builder->Add("n", sizes.tokens);
  builder->Add("cols", sizes.hidden);
  builder->Add("colsAlign", CeilDiv(sizes.hidden, block_elements) * block_elements);
  builder->Add("topK", sizes.top_k);
  builder->Add("expertNum", sizes.experts);
  builder->Add("capacity", sizes.capacity);
  builder->Add("hasProb", sizes.has_probs ? 1 : 0);
  AddSortFields(sort, builder);
  builder->Add("frontcoreTask", tasks.front_tasks);
  builder->Add("tailcoreTask", tasks.tail_tasks);
  builder->Add("frontCoreNum", tasks.front_cores);
  builder->Add("tailCoreNum", tasks.tail_cores);
  builder->Add("mergeNeedCoreNum", merge_cores);
  builder->Add("sortOutElements", kSortOutElements);
  AddIndexCopyFields(copy, builder);
  AddMaskedSelectFields(select, builder);
}

void TileNotPadded(const Sizes& sizes, Wide core_num, TilingBuilder* builder) {
  const Wide total = sizes.tokens * sizes.top_k;
  const SortSplit sort = SplitSort(total, SortMax(sizes.ub_bytes, 0), sizes.cores);
  IndexCopyInput input{};
  input.ub_bytes = sizes.ub_bytes;
  input.cores = sizes.cores;
  input.element_bytes = sizes.element_bytes;
  input.hidden = sizes.hidden;
  input.top_k = sizes.top_k;
  input.tokens = sizes.tokens;
  input.num_out_tokens = sizes.num_out_tokens;
  input.queues = 1;
  const IndexCopy copy = SplitIndexCopy(input);
  const MaskedSelect select =
      SplitMaskedSelect(sizes.ub_bytes, sizes.cores, sizes.tokens, sizes.experts, sizes.prob_bytes);
  AddFields(sizes, core_num, sort, {}, MergeCores(sort), copy, select, builder);
  builder->Key((sort.multi_core ? 2 : 1) + (copy.split_row ? 2 : 0));
  builder->BlockDim(std::max(select.need_cores, copy.need_cores));
  // The lists of the masked select and the sort's buffers share their place.
  const Wide counts = AlignUp(select.need_cores * kIndexBytes, kBlockBytes) / kIndexBytes;
  const Wide lists =
      counts + select.need_cores * sizes.tokens + sizes.experts * sizes.tokens + total;
  builder->Workspace(std::max(total * 4 * kIndexBytes, lists * kIndexBytes) + core_num * 64 +
                     kSystemWorkspaceBytes);
}

// An Ascend950 gathers rows in the kernel: long ones in vector code (9), short or few ones by its
// threads (19).
std::int64_t PaddedKey(const Sizes& sizes, const Platform& platform) {
  constexpr Wide kLongRow = 620;
  constexpr std::int64_t kVectorKey = 9;
  constexpr std::int64_t kThreadsKey = 19;
  if (platform.soc != "ascend950") return kVectorKey;
  const bool vector = sizes.hidden >= kLongRow && sizes.num_out_tokens >= sizes.cores / 2;
  return vector ? kVectorKey : kThreadsKey;
}

void TilePadded(const Sizes& sizes, Wide core_num, const Platform& platform,
                TilingBuilder* builder) {
  const ColumnTasks tasks = SplitExperts(sizes);
  const Wide need_cores = tasks.front_cores + tasks.tail_cores;
  const SortSplit sort = SplitColumns(sizes.tokens, SortMax(sizes.ub_bytes, 0), need_cores);
  AddFields(sizes, core_num, sort, tasks, 0, {}, {}, builder);
  builder->Key(PaddedKey(sizes, platform));
  builder->BlockDim(need_cores);
  builder->Workspace(need_cores * sizes.tokens * 4 * kIndexBytes + need_cores * 64 +
                     kSystemWorkspaceBytes);
}

Status ComputeTiling(const Problem& problem, const Platform& platform, Tiling* tiling) {
  Sizes sizes{};
  if (Status status = ReadSizes(problem, platform, &sizes); !status.ok()) return status;
  const Wide core_num = sizes.experts * sizes.tokens <= kSmallMap ? 1 : sizes.cores;
  TilingBuilder builder;
  if (sizes.drop_and_pad) {
    TilePadded(sizes, core_num, platform, &builder);
  } else {
    TileNotPadded(sizes, core_num, &builder);
  }
  return builder.Finish(tiling);
}

void Describe(const Problem& problem, const Platform& platform, const Tiling& tiling,
              Layout* layout) {
  if (std::get<bool>(*problem.attrs[kDropAndPad])) {
    Stage stage = SortStage(tiling, platform);
    stage.title = "sort a column of the map for each expert";
    stage.unit = "experts";
    stage.cores = {{tiling["frontCoreNum"], tiling["frontcoreTask"]},
                   {tiling["tailCoreNum"], tiling["tailcoreTask"]}};
    stage.steps = {{tiling["frontcoreTask"], 1}};
    layout->stages.push_back(std::move(stage));
    layout->notes.emplace_back(platform.soc == "ascend950"
                                   ? "tokens: the kernel gathers its rows itself"
                                   : "tokens: another operator (Gather) copies the rows");
    return;
  }
  const TensorDesc* const probs = Input(problem, kProbs);
  layout->stages = {
      MaskedSelectStage(tiling, platform, probs != nullptr ? TilingSizeOf(probs->dtype) : 2),
      SortStage(tiling, platform), RowCopyStage(tiling, platform)};
  layout->stages[1].title = "sort the lists into slots";
  if (tiling["needCoreNum"] == 0) {
    layout->notes.emplace_back("no tile of the map fits the unified buffer: nothing is listed");
  }
  if (tiling["topK"] == 0) {
    layout->notes.emplace_back("num_out_tokens is below the number of tokens: no token has a slot");
  } else if (tiling["tokensPerLoad"] <= 0 || tiling["moveElements"] <= 0) {
    layout->notes.emplace_back("no row fits the unified buffer: nothing is copied");
  }
}

// The map transposed, the rows a multiple of what they are divided by.
Problem ProblemOf(const CallSizes& sizes) {
  const std::int64_t divisor = sizes.drop_and_pad ? sizes.experts : sizes.tokens;
  const std::int64_t rows = divisor > 0 ? sizes.rows / divisor * divisor : sizes.rows;
  const Shape map = {sizes.experts, sizes.tokens};
  Problem problem;
  problem.inputs = {TensorDesc{sizes.dtype, {sizes.tokens, sizes.hidden}},
                    TensorDesc{DType::kInt8, map}, ProbsOf(sizes, map)};
  problem.outputs = {TensorDesc{sizes.dtype, {rows, sizes.hidden}}, ProbsOf(sizes, {rows}),
                     TensorDesc{DType::kInt32, {rows}}};
  problem.attrs = {rows, sizes.drop_and_pad};
  return problem;
}

}  // namespace

OpDef MoeTokenPermuteWithRoutingMap() {
  static const std::array attrs = {
      AttrDef{"num_out_tokens", AttrType::kInt, true, std::int64_t{0}},
      AttrDef{"drop_and_pad", AttrType::kBool, false, false},
  };
  return {"MoeTokenPermuteWithRoutingMap",
          kName,
          "aclnnMoeTokenPermuteWithRoutingMap",
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
