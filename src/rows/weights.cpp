// SPDX-License-Identifier: Apache-2.0
#include "rows/weights.hpp"

#include <algorithm>

namespace moeperm {
namespace {

template <class Element>
void SpreadElements(const Context::Impl& context, const TokenRows& index,
                    const std::int32_t* slot_experts, std::int64_t first_empty_row,
                    const ConstTensorView& src, const TensorView& dst) {
  const auto* from = static_cast<const Element*>(src.data());
  auto* to = static_cast<Element*>(dst.data());
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(Element));
  // A row touches a cache line of src: that is what it costs.
  const int parts = TaskCount(*context.pool, index.num_tokens, dst.shape(0) * 64 / kSize, 4);
  context.pool->Run(parts, [&](int part) {
    const Range tokens = CutRange(index.num_tokens, parts, part);
    for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
      for (std::int64_t slot = index.Begin(token); slot < index.End(token); ++slot) {
        const std::int32_t row = index.rows[slot];
        if (row < 0) continue;
        to[row * dst.stride(0)] = from[token * src.stride(0) + slot_experts[slot] * src.stride(1)];
      }
    }
  });
  for (std::int64_t row = first_empty_row; row < dst.shape(0); ++row) to[row * dst.stride(0)] = 0;
}

}  // namespace

void SpreadWeights(const Context::Impl& context, const TokenRows& index,
                   const std::int32_t* slot_experts, std::int64_t first_empty_row,
                   const ConstTensorView& src, const TensorView& dst) {
  (SizeOf(src.dtype()) == 4
       ? SpreadElements<std::uint32_t>
       : SpreadElements<std::uint16_t>)(context, index, slot_experts, first_empty_row, src, dst);
}

}  // namespace moeperm
