// SPDX-License-Identifier: Apache-2.0
#include "cann/host/u_tiling.hpp"

#include <algorithm>

namespace moeperm::cann::host {
namespace {

constexpr Wide kFloatBytes = 4;
constexpr Wide kMinBuffers = 2;
constexpr Wide kMaxBuffers = 4;
constexpr Wide kQueues = 2;
constexpr Wide kCastRows = 2;
constexpr Wide kReserve = 5120;

// The longest row part that fits with `buffers` input buffers; not positive in a tiny buffer.
Wide MaxHidden(const UTilingInput& input, Wide buffers) {
  const Wide fits =
      SafeDiv(input.ub_bytes - kReserve, UBytesPerElement(input.element_bytes, buffers));
  return AlignUp(fits - kURowAlignment, kURowAlignment);
}

void SplitHidden(const UTilingInput& input, UTiling* split) {
  const Wide most = MaxHidden(input, kMinBuffers);
  if (AlignUp(input.hidden, kURowAlignment) <= most) {
    split->hidden_splited_length = input.hidden;
    split->hidden_splited_num = 1;
    split->hidden_splited_remain = 0;
  } else {
    split->hidden_splited_length = most;
    split->hidden_splited_num = SafeDiv(input.hidden, most);
    split->hidden_splited_remain = SafeMod(input.hidden, most);
  }
  split->buffer_num = kMaxBuffers;
  while (split->buffer_num > kMinBuffers &&
         split->hidden_splited_length > MaxHidden(input, split->buffer_num)) {
    --split->buffer_num;
  }
}

void SplitTokens(const UTilingInput& input, UTiling* split) {
  split->used_cores = std::min(input.tokens, input.cores);
  split->tokens_core_length = SafeDiv(input.tokens, split->used_cores);
  split->tokens_core_remain = SafeMod(input.tokens, split->used_cores);

  const Wide free = input.ub_bytes - kUBufferReserve -
                    AlignUp(split->hidden_splited_length, kURowAlignment) *
                        UBytesPerElement(input.element_bytes, split->buffer_num);
  Wide slot_bytes = input.index_bytes;
  if (input.prob_bytes != 0) {
    slot_bytes += input.prob_bytes + (input.prob_bytes == kFloatBytes ? 0 : kFloatBytes);
  }
  const Wide token_bytes = input.top_k * slot_bytes;
  if (free >= split->tokens_core_length * token_bytes) {
    split->tokens_splited_length = split->tokens_core_length;
    split->tokens_splited_num = 1;
    split->tokens_splited_remain = 0;
  } else {
    split->tokens_splited_length = SafeDiv(free, token_bytes);
    split->tokens_splited_num = SafeDiv(split->tokens_core_length, split->tokens_splited_length);
    split->tokens_splited_remain = SafeMod(split->tokens_core_length, split->tokens_splited_length);
  }
}

}  // namespace

Wide UBytesPerElement(Wide element_bytes, Wide buffers) {
  return element_bytes * (kQueues + buffers - 1) +
         kFloatBytes * (element_bytes == kFloatBytes ? 0 : kCastRows);
}

UTiling ComputeUTiling(const UTilingInput& input) {
  UTiling split{};
  SplitHidden(input, &split);
  SplitTokens(input, &split);
  return split;
}

void AddUSplits(const UTiling& split, TilingBuilder* builder) {
  builder->Add("hidden_splited_length", split.hidden_splited_length);
  builder->Add("hidden_splited_num", split.hidden_splited_num);
  builder->Add("hidden_splited_remain", split.hidden_splited_remain);
  builder->Add("tokens_core_length", split.tokens_core_length);
  builder->Add("tokens_core_remain", split.tokens_core_remain);
  builder->Add("tokens_splited_length", split.tokens_splited_length);
  builder->Add("tokens_splited_num", split.tokens_splited_num);
  builder->Add("tokens_splited_remain", split.tokens_splited_remain);
}

void AddUFields(const UTiling& split, TilingBuilder* builder) {
  AddUSplits(split, builder);
  builder->Add("buffer_num", split.buffer_num);
}

}  // namespace moeperm::cann::host
