// SPDX-License-Identifier: Apache-2.0
// The tiling of the kernel that adds up a token's rows ("unpermute"): tokens are cut for the cores,
// a core's tokens into tiles whose indices fit its buffer, rows into hidden tiles that fit it
// several times. Shared by the gradients of permute and by unpermute.
#pragma once

#include "cann/host/arithmetic.hpp"
#include "cann/host/op_def.hpp"
#include "cann/host/tiling_builder.hpp"

namespace moeperm::cann::host {

struct UTilingInput {
  Wide ub_bytes;
  Wide cores;
  Wide element_bytes;  // of a token; 0 for a dtype that tilings do not know
  Wide hidden;
  Wide top_k;
  Wide tokens;
  Wide index_bytes = 4;
  Wide prob_bytes = 0;  // 0: no probs
};

struct UTiling {
  Wide used_cores;  // the block dim
  Wide hidden_splited_length, hidden_splited_num, hidden_splited_remain;
  Wide tokens_core_length, tokens_core_remain;
  Wide tokens_splited_length, tokens_splited_num, tokens_splited_remain;
  Wide buffer_num;
};

UTiling ComputeUTiling(const UTilingInput& input);

// Bytes that one hidden element takes in the unified buffer: `buffers` input rows, an output row
// and, unless the tokens are float32 themselves, two float32 rows.
Wide UBytesPerElement(Wide element_bytes, Wide buffers);

// The eight split numbers; with buffer_num, as they are serialised in.
void AddUSplits(const UTiling& split, TilingBuilder* builder);
void AddUFields(const UTiling& split, TilingBuilder* builder);

// The checks and sizes of the operators that have rows as input 0 (an error names it `rows_name`)
// and indices as input 1; `rows` is the number of rows.
Status ReadUInput(const Problem& problem, std::string_view rows_name, const Platform& platform,
                  UTilingInput* input, std::int64_t* rows);
// tokens and top_k out of probs [tokens, top_k], which the indices have to fit.
Status CheckUProbs(const TensorDesc& probs, const TensorDesc& indices, UTilingInput* input);
// The twelve numbers, and the block dim.
void TileU(const UTilingInput& input, std::int64_t rows, TilingBuilder* builder);
// By the tokens' dtype and the probs', if there are any.
std::int64_t UKey(DType tokens, const TensorDesc* probs);

// The fifteen numbers of the operators for a range of rows; their attributes 0 and 1 are num_topk
// and range. A range of another size than two leaves every size 0, with success.
struct EpTiling {
  std::int64_t probs_grad_length, start, end, rows;
  bool bad_range;
};
Status ReadEp(const Problem& problem, std::string_view rows_name, const Platform& platform,
              EpTiling* ep, UTilingInput* input);
void TileEp(const EpTiling& ep, const UTilingInput& input, TilingBuilder* builder);

struct Layout;
void DescribeAddition(const Problem& problem, const Platform& platform, const Tiling& tiling,
                      std::int64_t index_bytes, Layout* layout);
void DescribeEp(const Problem& problem, const Platform& platform, const Tiling& tiling,
                std::int64_t index_bytes, Layout* layout);

// Rows are laid out in the buffer as multiples of this many elements.
inline constexpr std::int64_t kURowAlignment = 512;
inline constexpr std::int64_t kUBufferReserve = 256;

}  // namespace moeperm::cann::host
