// SPDX-License-Identifier: Apache-2.0
// The tiling of the gradients of unpermute: tokens are cut for the cores; with probs a token's rows
// are multiplied and dotted, without them rows are copied.
#pragma once

#include "cann/host/arithmetic.hpp"
#include "cann/host/inference.hpp"
#include "cann/host/tiling_builder.hpp"

namespace moeperm::cann::host {

struct GTilingInput {
  const TensorDesc* rows;  // whose dimension 0 is num_out_tokens; set by the caller
  bool rows_by_slot;       // without probs: as the operator for a range of rows does it
  Wide tokens, top_k, hidden, num_out_tokens;
  Wide element_bytes;
  Wide prob_bytes;  // 0: no probs
  Wide cores, ub_bytes;
};

// `top_k` is that of a call without probs.
Status ReadGInput(const UnpermuteGradInputs& inputs, std::int64_t top_k, const Platform& platform,
                  GTilingInput* input);
// The 17 numbers, key, block dim and workspace.
void TileG(const GTilingInput& input, TilingBuilder* builder);

struct Layout;
void DescribeG(const UnpermuteGradInputs& inputs, const Platform& platform, const Tiling& tiling,
               Layout* layout);

}  // namespace moeperm::cann::host
