// SPDX-License-Identifier: Apache-2.0
// The probs path: the row primitives at width 1, where a token's element is chosen by the expert.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/context.hpp"
#include "moeperm/tensor.hpp"
#include "rows/kernels.hpp"

namespace moeperm {

// dst[row] = src[token][expert] for every slot with a row. src [tokens, experts] and dst [rows] of
// one dtype, any strides. slot_experts null: a slot's expert is its place in the token.
void SpreadWeights(const Context::Impl& context, const TokenRows& index,
                   const std::int32_t* slot_experts, const ConstTensorView& src,
                   const TensorView& dst);

// dst[row] = 0 for the rows [begin, end).
void ZeroWeights(std::int64_t begin, std::int64_t end, const TensorView& dst);

// A view of one dimension as a matrix of one column; others as they are.
ConstTensorView AsMatrix(const ConstTensorView& view);

// dst[token][k] = src[row of the token's k-th slot], +0 where src has no such row. src [rows] and
// dst [tokens, slots a token] of one dtype, any strides.
void GatherWeights(const Context::Impl& context, const TokenRows& index, const ConstTensorView& src,
                   const TensorView& dst);

// How the slots find their weight in a matrix: slot s of token t has column columns[s], -1 none; or
// where columns is null, s - Begin(t).
struct SlotColumns {
  const TokenRows& index;
  const std::int32_t* columns = nullptr;
  [[nodiscard]] std::int64_t Of(std::int64_t token, std::int64_t slot) const {
    return columns != nullptr ? columns[slot] : slot - index.Begin(token);
  }
};

// weights[slot] = src[token][column of slot] as float32, +0 where it has none. src [tokens,
// columns] float of any dtype and strides.
void LoadWeights(const Context::Impl& context, const SlotColumns& slots, const ConstTensorView& src,
                 float* weights);

// dst[token][column] = values[slot] rounded to the dtype of dst, +0 where no slot has that column;
// the last slot of a column wins. As LoadWeights.
void StoreWeights(const Context::Impl& context, const SlotColumns& slots, const float* values,
                  const TensorView& dst);

// Writes a gradient [tokens, experts] of the weights, token after token. Almost all of it is zeros:
// a few tokens' elements are put together in cache, then written once. One writer a task.
template <class Element>  // uint16_t or uint32_t: the bits of a weight
class WeightGradWriter {
 public:
  // src [rows], dst [tokens, experts] of one dtype of sizeof(Element) bytes, any strides. Tokens
  // from `token` on.
  WeightGradWriter(const RowKernels& kernels, const ConstTensorView& src, const TensorView& dst,
                   bool stream, std::int64_t token)
      : kernels_(kernels),
        src_(static_cast<const Element*>(src.data())),
        src_rows_(src.shape(0)),
        src_stride_(src.stride(0)),
        dst_(dst),
        stream_(stream),
        token_(token),
        experts_(dst.shape(1)),
        tile_tokens_(experts_ == 0 ? 1 : std::max<std::int64_t>(1, kTileElements / experts_)),
        tile_(static_cast<std::size_t>(tile_tokens_ * experts_)),
        row_(tile_.data()) {}

  // The token's element of this expert is src[row]; rows that src does not have leave +0.
  void Set(std::int32_t expert, std::int64_t row) {
    if (row < 0 || row >= src_rows_) return;
    row_[expert] = src_[row * src_stride_];
  }

  // The next token.
  void Next() {
    row_ += experts_;
    if (++filled_ == tile_tokens_) Flush();
  }

  // Writes what is filled; call it at the end.
  void Flush() {
    const auto bytes = static_cast<std::size_t>(filled_ * experts_) * sizeof(Element);
    if (bytes != 0) {
      if (dst_.stride(1) == 1 && (dst_.stride(0) == experts_ || filled_ == 1)) {
        Copy(To(token_), tile_.data(), bytes);
      } else {
        for (std::int64_t i = 0; i < filled_; ++i) WriteRow(To(token_ + i), &tile_[At(i)]);
      }
      std::memset(tile_.data(), 0, bytes);
    }
    token_ += filled_;
    filled_ = 0;
    row_ = tile_.data();
  }

 private:
  static constexpr std::int64_t kTileElements = (std::int64_t{16} << 10) / sizeof(Element);

  [[nodiscard]] std::size_t At(std::int64_t i) const {
    return static_cast<std::size_t>(i * experts_);
  }
  [[nodiscard]] Element* To(std::int64_t token) const {
    return static_cast<Element*>(dst_.data()) + token * dst_.stride(0);
  }
  void Copy(Element* to, const Element* from, std::size_t bytes) const {
    kernels_.copy(reinterpret_cast<std::uint8_t*>(to), reinterpret_cast<const std::uint8_t*>(from),
                  static_cast<std::int64_t>(bytes), stream_);
  }
  void WriteRow(Element* to, const Element* from) const {
    if (dst_.stride(1) == 1) {
      Copy(to, from, static_cast<std::size_t>(experts_) * sizeof(Element));
      return;
    }
    for (std::int64_t e = 0; e < experts_; ++e) to[e * dst_.stride(1)] = from[e];
  }

  const RowKernels& kernels_;
  const Element* src_;
  std::int64_t src_rows_;
  std::int64_t src_stride_;
  TensorView dst_;
  bool stream_;
  std::int64_t token_;  // of the first row of the tile
  std::int64_t experts_;
  std::int64_t tile_tokens_;
  std::int64_t filled_ = 0;
  std::vector<Element> tile_;
  Element* row_;  // of the token being filled
};

// Calls body(writer) with a writer for the dtype of src that starts at `token`; writes what is left
// and orders the stores before the return.
template <class Body>
void WithWeightGradWriter(const Context::Impl& context, const ConstTensorView& src,
                          const TensorView& dst, bool stream, std::int64_t token,
                          const Body& body) {
  const RowKernels& kernels = RowKernelsFor(*context.isa);
  const auto run = [&](auto writer) {
    body(writer);
    writer.Flush();
  };
  if (SizeOf(src.dtype()) == 4) {
    run(WeightGradWriter<std::uint32_t>(kernels, src, dst, stream, token));
  } else {
    run(WeightGradWriter<std::uint16_t>(kernels, src, dst, stream, token));
  }
  kernels.flush_stream();
}

}  // namespace moeperm
