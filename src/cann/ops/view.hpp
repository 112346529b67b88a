// SPDX-License-Identifier: Apache-2.0
// Tensors as a call finds them when it runs: strided memory of any rank. The library below wants
// rows and columns and no overlap; what is not like that is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "cann/ops/checks.hpp"
#include "moeperm/status.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm::cann {

struct View {
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;  // elements
  DType dtype = DType::kInvalid;      // kInvalid where the library has no such dtype
  std::size_t element_bytes = 0;
  std::byte* data = nullptr;  // of element [0, 0, ...]
  // The addresses it may touch; empty where it has no elements.
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::int64_t elements = 0;

  // Elements [from, from + count) along dimension 0, which is there.
  [[nodiscard]] View Slice(std::int64_t from, std::int64_t count) const;
};

// The argument's memory as it is now; refuses what reaches outside the storage, has no address, or
// an address no element can have. The dims are not negative.
Status Resolve(const TensorArg& arg, View* view);

// A tensor of `rows` x `cols` elements, in the order of its own rows and columns, as a view of two
// dimensions, or none where no strides do that. Rank and shape may be any.
std::optional<TensorView> AsMatrix(const View& view, std::int64_t rows, std::int64_t cols);
// Of a rank that needs no such care: 1 or 2.
ConstTensorView AsInput(const View& view);
// The first `count` elements of a matrix of one column, as a vector.
ConstTensorView FirstOf(const ConstTensorView& column, std::int64_t count);

// An input of any rank and shape as rows x cols, copied where no strides do that.
class Reshaped {
 public:
  Reshaped(View view, std::int64_t rows, std::int64_t cols)
      : view_(std::move(view)), rows_(rows), cols_(cols) {}
  // When the call runs.
  Status Load(ConstTensorView* matrix);

 private:
  View view_;
  std::int64_t rows_;
  std::int64_t cols_;
  Buffer<std::byte> copy_;
};

void FillZero(const View& view);
void CopyDense(const std::byte* from, const View& to);
void CopyDense(const View& from, std::byte* to);

// An output that takes rows x cols elements; what it has beyond them gets 0.
class Output {
 public:
  // Whether it can hold them: `rows` first rows of `cols` elements, or as many elements in all.
  static bool Fits(const View& view, std::int64_t rows, std::int64_t cols);

  Output(View view, std::int64_t rows, std::int64_t cols);

  // Where the output shares memory with an input or with another output: results go to memory of
  // our own first, so that it is as if all inputs were read before.
  void AvoidOverlap(const View& other);
  [[nodiscard]] const View& view() const { return view_; }

  // Before the computation: where it is to write. vector: one dimension, of cols = 1.
  Status Begin(bool vector, TensorView* target);
  // After it.
  void Finish();

 private:
  View view_;
  std::int64_t rows_;
  std::int64_t cols_;
  std::optional<TensorView> in_place_;
  std::optional<View> rest_;  // of what is in place
  Buffer<std::byte> buffer_;
};

}  // namespace moeperm::cann
