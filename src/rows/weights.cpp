// SPDX-License-Identifier: Apache-2.0
#include "rows/weights.hpp"

#include <algorithm>

#include "rows/convert.hpp"

namespace moeperm {
namespace {

template <class Element>
void SpreadElements(const Context::Impl& context, const TokenRows& index,
                    const std::int32_t* slot_experts, const ConstTensorView& src,
                    const TensorView& dst) {
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
        const std::int64_t column =
            slot_experts != nullptr ? slot_experts[slot] : slot - index.Begin(token);
        to[row * dst.stride(0)] = from[token * src.stride(0) + column * src.stride(1)];
      }
    }
  });
}

// body(token) for every token, in parallel.
template <class Body>
void ForEachToken(const Context::Impl& context, const TokenRows& index, std::int64_t bytes,
                  const Body& body) {
  const int parts = TaskCount(*context.pool, index.num_tokens, bytes, 4);
  context.pool->Run(parts, [&](int part) {
    const Range tokens = CutRange(index.num_tokens, parts, part);
    for (std::int64_t token = tokens.begin; token < tokens.end; ++token) body(token);
  });
}

std::int64_t NumSlots(const TokenRows& index) {
  return index.num_tokens == 0 ? 0 : index.End(index.num_tokens - 1);
}

template <class Element>
void LoadElements(const Context::Impl& context, const SlotColumns& slots,
                  const ConstTensorView& src, float* weights) {
  const auto* from = static_cast<const Element*>(src.data());
  ForEachToken(context, slots.index, NumSlots(slots.index) * 16, [&](std::int64_t token) {
    for (std::int64_t slot = slots.index.Begin(token); slot < slots.index.End(token); ++slot) {
      const std::int64_t column = slots.Of(token, slot);
      weights[slot] =
          column < 0 ? 0.0F : Widen(from[token * src.stride(0) + column * src.stride(1)]);
    }
  });
}

template <class Element>
void StoreElements(const Context::Impl& context, const SlotColumns& slots, const float* values,
                   const TensorView& dst) {
  auto* to = static_cast<Element*>(dst.data());
  const std::int64_t columns = dst.shape(1);
  if (columns == 0) return;
  const std::int64_t bytes = NumSlots(slots.index) * 16 +
                             dst.shape(0) * columns * static_cast<std::int64_t>(sizeof(Element));
  ForEachToken(context, slots.index, bytes, [&](std::int64_t token) {
    Element* row = to + token * dst.stride(0);
    for (std::int64_t c = 0; c < columns; ++c) row[c * dst.stride(1)] = Element{};
    for (std::int64_t slot = slots.index.Begin(token); slot < slots.index.End(token); ++slot) {
      const std::int64_t column = slots.Of(token, slot);
      if (column >= 0) row[column * dst.stride(1)] = Narrow<Element>(values[slot]);
    }
  });
}

template <class Element>
void GatherElements(const Context::Impl& context, const TokenRows& index,
                    const ConstTensorView& src, const TensorView& dst) {
  const auto* from = static_cast<const Element*>(src.data());
  auto* to = static_cast<Element*>(dst.data());
  ForEachToken(context, index, NumSlots(index) * 64, [&](std::int64_t token) {
    const std::int64_t begin = index.Begin(token);
    for (std::int64_t slot = begin; slot < index.End(token); ++slot) {
      const std::int32_t row = index.rows[slot];
      to[token * dst.stride(0) + (slot - begin) * dst.stride(1)] =
          row >= 0 && row < src.shape(0) ? from[row * src.stride(0)] : Element{0};
    }
  });
}

}  // namespace

ConstTensorView AsMatrix(const ConstTensorView& view) {
  if (view.rank() != 1) return view;
  const std::int64_t shape[] = {view.shape(0), 1};
  const std::int64_t strides[] = {view.stride(0), 1};
  return {view.data(), view.dtype(), shape, strides};
}

void GatherWeights(const Context::Impl& context, const TokenRows& index, const ConstTensorView& src,
                   const TensorView& dst) {
  (SizeOf(src.dtype()) == 4 ? GatherElements<std::uint32_t>
                            : GatherElements<std::uint16_t>)(context, index, src, dst);
}

void LoadWeights(const Context::Impl& context, const SlotColumns& slots, const ConstTensorView& src,
                 float* weights) {
  RowKernels::OfDType(src.dtype(), LoadElements<float>, LoadElements<Float16>,
                      LoadElements<BFloat16>)(context, slots, src, weights);
}

void StoreWeights(const Context::Impl& context, const SlotColumns& slots, const float* values,
                  const TensorView& dst) {
  RowKernels::OfDType(dst.dtype(), StoreElements<float>, StoreElements<Float16>,
                      StoreElements<BFloat16>)(context, slots, values, dst);
}

void SpreadWeights(const Context::Impl& context, const TokenRows& index,
                   const std::int32_t* slot_experts, const ConstTensorView& src,
                   const TensorView& dst) {
  (SizeOf(src.dtype()) == 4
       ? SpreadElements<std::uint32_t>
       : SpreadElements<std::uint16_t>)(context, index, slot_experts, src, dst);
}

void ZeroWeights(std::int64_t begin, std::int64_t end, const TensorView& dst) {
  for (std::int64_t row = begin; row < end; ++row) {
    if (SizeOf(dst.dtype()) == 4) {
      static_cast<std::uint32_t*>(dst.data())[row * dst.stride(0)] = 0;
    } else {
      static_cast<std::uint16_t*>(dst.data())[row * dst.stride(0)] = 0;
    }
  }
}

}  // namespace moeperm
