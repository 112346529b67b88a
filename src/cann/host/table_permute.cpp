// SPDX-License-Identifier: Apache-2.0
#include "cann/host/table_permute.hpp"

#include "cann/host/messages.hpp"
#include "cann/host/problem.hpp"

namespace moeperm::cann::host {

Status RefusePadded(const Problem& problem, std::size_t attr) {
  bool padded = false;
  if (Status status = ReadBool(problem, attr, "padded_mode", &padded); !status.ok()) return status;
  return padded ? PaddedMode() : Status();
}

Status ReadTable(const Problem& problem, TableSizes* sizes) {
  const TensorDesc* const tokens = Input(problem, 0);
  const TensorDesc* const table = Input(problem, 1);
  if (table == nullptr) return MissingTensor("indices");
  if (tokens == nullptr) return MissingTensor("tokens");
  if (table->shape.empty() || table->shape.size() > 2) {
    return WrongRank("indices", table->shape, "1 or 2");
  }
  if (tokens->shape.empty()) return WrongRank("tokens", tokens->shape, "at least 2");
  for (Status status : {CheckDims("indices", table->shape), CheckDims("tokens", tokens->shape)}) {
    if (!status.ok()) return status;
  }
  if (tokens->shape[0] != table->shape[0]) {
    return WrongDim("tokens", tokens->shape, 0, table->shape[0], "dimension 0 of indices");
  }
  sizes->tokens = table->shape[0];
  sizes->top_k = table->shape.size() == 2 ? table->shape[1] : 1;
  const bool bytes = tokens->dtype == DType::kInt8 || tokens->dtype == DType::kUInt8;
  sizes->element_bytes = bytes ? 1 : TilingSizeOf(tokens->dtype);
  return HiddenOf("tokens", tokens->shape, &sizes->hidden);
}

Status CheckTableLimits(const TableSizes& sizes) {
  if (sizes.top_k > kMaxTopK) return TopKTooLarge(sizes.top_k, kMaxTopK, "dimension 1 of indices");
  // A product with at most 512: the tokens alone decide whether it fits.
  if (sizes.tokens >= kMaxTotalLength) return TooLong("tokens", sizes.tokens, kMaxTotalLength);
  if (sizes.slots() >= kMaxTotalLength) {
    return TooLong("tokens * top_k", sizes.slots(), kMaxTotalLength);
  }
  return {};
}

Status CheckPermuted(const Problem& problem, const TableSizes& sizes) {
  const TensorDesc* const out = Output(problem, 0);
  const TensorDesc* const indices = Output(problem, 1);
  if (out == nullptr) return MissingTensor("permute_tokens");
  if (indices == nullptr) return MissingTensor("sorted_indices");
  if (out->shape.size() < 2) return WrongRank("permute_tokens", out->shape, "at least 2");
  if (indices->shape.size() != 1) return WrongRank("sorted_indices", indices->shape, "1");
  if (indices->shape[0] != sizes.slots()) {
    return WrongDim("sorted_indices", indices->shape, 0, sizes.slots(), "tokens * top_k");
  }
  std::int64_t hidden = 0;
  if (Status status = HiddenOf("permute_tokens", out->shape, &hidden); !status.ok()) return status;
  if (hidden != sizes.hidden) return WrongHidden("permute_tokens", hidden, sizes.hidden);
  if (out->shape[0] != sizes.rows) {
    return WrongDim("permute_tokens", out->shape, 0, sizes.rows, "rows");
  }
  return {};
}

void TileTable(const TableSizes& sizes, const EpRange* range, const Platform& platform,
               TilingBuilder* builder) {
  constexpr Wide kBlockBytes = 32;
  constexpr std::int64_t kSmallTable = 32;
  const Wide slots = sizes.slots();
  const Wide ub_bytes = AlignDown(platform.ub_bytes, kBlockBytes);
  const Wide core_num = slots <= kSmallTable ? 1 : platform.vector_cores;
  const SortSplit sort = SplitSort(slots, SortMax(ub_bytes, core_num), core_num);
  IndexCopyInput input{};
  input.ub_bytes = ub_bytes;
  input.cores = platform.vector_cores;
  input.element_bytes = sizes.element_bytes;
  input.hidden = sizes.hidden;
  input.top_k = sizes.top_k;
  input.tokens = sizes.tokens;
  input.num_out_tokens = sizes.rows;
  input.queues = range != nullptr ? 2 : 1;
  const IndexCopy copy = SplitIndexCopy(input);
  const Wide block_elements = SafeDiv(kBlockBytes, sizes.element_bytes);
  builder->Add("coreNum", core_num);
  builder->Add("n", sizes.tokens);
  builder->Add("cols", sizes.hidden);
  builder->Add("colsAlign", CeilDiv(sizes.hidden, block_elements) * block_elements);
  builder->Add("topK", sizes.top_k);
  AddSortFields(sort, builder);
  builder->Add("mergeNeedCoreNum", MergeCores(sort));
  builder->Add("sortOutElements", kSortOutElements);
  const CopyRange staged =
      range != nullptr ? CopyRange{range->start, range->end, range->prob_bytes} : CopyRange{};
  AddIndexCopyFields(copy, builder, range != nullptr ? &staged : nullptr);
  builder->Key((sort.multi_core ? 2 : 1) + (copy.split_row ? 2 : 0) +
               (sizes.rows != slots ? 4 : 0));
  builder->BlockDim(std::max(core_num, copy.need_cores));
  const Wide buffers = range != nullptr ? 4 : 6;
  builder->Workspace(slots * 4 * buffers + core_num * 64 + kSystemWorkspaceBytes);
}

}  // namespace moeperm::cann::host
