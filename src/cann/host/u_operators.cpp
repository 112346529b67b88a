// SPDX-License-Identifier: Apache-2.0
// What the operators that add up rows share around their tiling: reading the call, keys, layouts.
#include "cann/host/layout.hpp"
#include "cann/host/messages.hpp"
#include "cann/host/problem.hpp"
#include "cann/host/u_tiling.hpp"

namespace moeperm::cann::host {

Status ReadUInput(const Problem& problem, std::string_view rows_name, const Platform& platform,
                  UTilingInput* input, std::int64_t* rows) {
  if (Status status = CheckPlatform(platform); !status.ok()) return status;
  const TensorDesc* const tensor = Input(problem, 0);
  const TensorDesc* const indices = Input(problem, 1);
  if (tensor == nullptr) return MissingTensor(rows_name);
  if (indices == nullptr) return MissingTensor("sorted_indices");
  if (tensor->shape.size() < 2) return WrongRank(rows_name, tensor->shape, "2");
  if (indices->shape.empty()) return WrongRank("sorted_indices", indices->shape, "1");
  for (Status status :
       {CheckDims(rows_name, tensor->shape), CheckDims("sorted_indices", indices->shape)}) {
    if (!status.ok()) return status;
  }
  *rows = tensor->shape[0];
  input->ub_bytes = platform.ub_bytes;
  input->cores = platform.vector_cores;
  input->element_bytes = TilingSizeOf(tensor->dtype);
  input->hidden = tensor->shape[1];
  return {};
}

Status CheckUProbs(const TensorDesc& probs, const TensorDesc& indices, UTilingInput* input) {
  if (probs.shape.size() != 2) return WrongRank("probs", probs.shape, "2");
  if (Status status = CheckDims("probs", probs.shape); !status.ok()) return status;
  const Wide slots = Wide{probs.shape[0]} * probs.shape[1];
  if (slots != indices.shape[0]) {
    if (!FitsInt64(slots)) return ProductTooLarge("probs", probs.shape);
    return WrongDim("sorted_indices", indices.shape, 0, static_cast<std::int64_t>(slots),
                    "tokens * top_k of probs");
  }
  if (probs.shape[1] > kMaxTopK) {
    return TopKTooLarge(probs.shape[1], kMaxTopK, "dimension 1 of probs");
  }
  input->tokens = probs.shape[0];
  input->top_k = probs.shape[1];
  input->prob_bytes = TilingSizeOf(probs.dtype);
  return {};
}

void TileU(const UTilingInput& input, std::int64_t rows, TilingBuilder* builder) {
  const UTiling split = ComputeUTiling(input);
  builder->Add("hidden_size", input.hidden);
  builder->Add("top_k", input.top_k);
  builder->Add("num_out_tokens", rows);
  AddUFields(split, builder);
  builder->BlockDim(split.used_cores);
}

std::int64_t UKey(DType tokens, const TensorDesc* probs) {
  constexpr std::int64_t kMixed = 8;
  const auto number = [](DType dtype) -> std::int64_t {
    return dtype == DType::kFloat32 ? 2 : dtype == DType::kFloat16 ? 1 : 0;
  };
  std::int64_t key = 2 * number(tokens);
  if (probs == nullptr) return key;
  key += 1;
  return probs->dtype == tokens ? key : key + kMixed * (number(probs->dtype) + 1);
}

Status ReadEp(const Problem& problem, std::string_view rows_name, const Platform& platform,
              EpTiling* ep, UTilingInput* input) {
  std::int64_t top_k = 0;
  if (Status status = ReadCount(problem, 0, "num_topk", &top_k); !status.ok()) return status;
  if (top_k < 1) return ZeroAttr("num_topk", "no token has a slot");
  if (Status status = ReadUInput(problem, rows_name, platform, input, &ep->rows); !status.ok()) {
    return status;
  }
  if (problem.inputs[0]->shape.size() != 2) {
    return WrongRank(rows_name, problem.inputs[0]->shape, "2");
  }
  input->top_k = top_k;
  input->tokens = problem.inputs[1]->shape[0] / top_k;
  if (const auto range = ReadList(problem, 1)) {
    ep->bad_range = range->size() != 2;
    if (!ep->bad_range) {
      ep->start = (*range)[0];
      ep->end = (*range)[1];
    }
  }
  return {};
}

void TileEp(const EpTiling& ep, const UTilingInput& input, TilingBuilder* builder) {
  UTilingInput used = input;
  EpTiling numbers = ep;
  if (ep.bad_range) {
    used = {};
    used.ub_bytes = input.ub_bytes;
    used.cores = input.cores;
    numbers = {};
  }
  const UTiling split = ComputeUTiling(used);
  builder->Add("hidden_size", used.hidden);
  builder->Add("permuted_probs_grad_length", numbers.probs_grad_length);
  builder->Add("top_k", used.top_k);
  builder->Add("start", numbers.start);
  builder->Add("end", numbers.end);
  builder->Add("num_out_tokens", numbers.rows);
  AddUFields(split, builder);
  builder->BlockDim(split.used_cores);
}

void DescribeAddition(const Problem& problem, const Platform& platform, const Tiling& tiling,
                      std::int64_t index_bytes, Layout* layout) {
  Stage stage = AdditionStage(tiling, platform, TilingSizeOf(problem.inputs[0]->dtype));
  // The stage counts indices of four bytes.
  (void)index_bytes;
  layout->stages.push_back(std::move(stage));
  if (tiling["hidden_splited_length"] <= 0 && tiling["hidden_size"] > 0) {
    layout->notes.emplace_back(
        "no part of a row fits the unified buffer: the kernel writes nothing");
  }
}

void DescribeEp(const Problem& problem, const Platform& platform, const Tiling& tiling,
                std::int64_t index_bytes, Layout* layout) {
  DescribeAddition(problem, platform, tiling, index_bytes, layout);
  if (tiling["start"] >= tiling["end"]) {
    layout->notes.emplace_back("the range is empty: the output is zero");
  }
}

}  // namespace moeperm::cann::host
