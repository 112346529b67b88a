// SPDX-License-Identifier: Apache-2.0
// The probs path: the row primitives at width 1, where a token's element is chosen by the expert.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/context.hpp"
#include "moeperm/tensor.hpp"
#include "rows/kernels.hpp"

namespace moeperm {

// dst[row] = src[token][expert] for every slot with a row; dst[row] = 0 for the rows from
// `first_empty_row` on. src [tokens, experts] and dst [rows] of one dtype, any strides.
void SpreadWeights(const Context::Impl& context, const TokenRows& index,
                   const std::int32_t* slot_experts, std::int64_t first_empty_row,
                   const ConstTensorView& src, const TensorView& dst);

// Writes a gradient [tokens, experts] of the weights token by token. Almost all of it is zeros: a
// row is put together in cache and written once. One writer a task.
template <class Element>  // uint16_t or uint32_t: the bits of a weight
class WeightGradWriter {
 public:
  // src [rows], dst [tokens, experts] of one dtype of sizeof(Element) bytes, any strides.
  WeightGradWriter(const RowKernels& kernels, const ConstTensorView& src, const TensorView& dst,
                   bool stream)
      : kernels_(kernels),
        src_(src),
        dst_(dst),
        stream_(stream),
        row_(static_cast<std::size_t>(dst.shape(1))) {}

  // The token's element of this expert is src[row]; rows that src does not have leave +0.
  void Set(std::int32_t expert, std::int64_t row) {
    if (row < 0 || row >= src_.shape(0)) return;
    row_[static_cast<std::size_t>(expert)] =
        static_cast<const Element*>(src_.data())[row * src_.stride(0)];
  }

  // Writes the token's elements, those not set as +0, and starts the next token.
  void Write(std::int64_t token) {
    const auto bytes = row_.size() * sizeof(Element);
    if (bytes == 0) return;
    Element* to = static_cast<Element*>(dst_.data()) + token * dst_.stride(0);
    if (dst_.stride(1) == 1) {
      kernels_.copy(reinterpret_cast<std::uint8_t*>(to),
                    reinterpret_cast<const std::uint8_t*>(row_.data()),
                    static_cast<std::int64_t>(bytes), stream_);
    } else {
      for (const Element element : row_) {
        *to = element;
        to += dst_.stride(1);
      }
    }
    std::memset(row_.data(), 0, bytes);
  }

 private:
  const RowKernels& kernels_;
  ConstTensorView src_;
  TensorView dst_;
  bool stream_;
  std::vector<Element> row_;
};

// Calls body(writer) with a writer for the dtype of src, and orders its stores before the return.
template <class Body>
void WithWeightGradWriter(const Context::Impl& context, const ConstTensorView& src,
                          const TensorView& dst, bool stream, const Body& body) {
  const RowKernels& kernels = RowKernelsFor(*context.isa);
  if (SizeOf(src.dtype()) == 4) {
    WeightGradWriter<std::uint32_t> writer(kernels, src, dst, stream);
    body(writer);
  } else {
    WeightGradWriter<std::uint16_t> writer(kernels, src, dst, stream);
    body(writer);
  }
  kernels.flush_stream();
}

}  // namespace moeperm
