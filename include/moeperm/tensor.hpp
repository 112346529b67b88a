// SPDX-License-Identifier: Apache-2.0
// Views of the caller's memory. A view owns nothing and copies nothing.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "moeperm/dtype.hpp"

namespace moeperm {

// Dimensions a view can have.
inline constexpr int kMaxRank = 4;

namespace detail {
// What a typed view can be made of; a mutable one only of what may be written.
template <class T, bool kConst>
concept ElementOf = kDTypeOf<std::remove_const_t<T>>
!= DType::kInvalid && (kConst || !std::is_const_v<T>);
}  // namespace detail

// A strided view. Strides count elements, may be 0 (an expanded dimension) and may be negative;
// `data` is the address of element [0, 0, ...]. Elements need only the alignment of their type. The
// stride of a dimension of one element, or of a view without elements, does not matter: it reads
// as 1.
//
//   float x[6];
//   TensorView whole(x, {2, 3});              // row-major
//   ConstTensorView transposed(x, {3, 2}, {1, 3});
//
// A view whose rank is above kMaxRank, or whose strides do not match its shape, has rank() == -1
// and is refused by every operator.
template <bool kConst>
class BasicTensorView {
 public:
  using Void = std::conditional_t<kConst, const void, void>;

  BasicTensorView() noexcept = default;

  // Row-major, or strided when `strides` is given; for callers that know dtypes at run time.
  BasicTensorView(Void* data, DType dtype, std::span<const std::int64_t> shape,
                  std::span<const std::int64_t> strides) noexcept
      : data_(data), dtype_(dtype) {
    Set(shape, strides);
  }
  BasicTensorView(Void* data, DType dtype, std::span<const std::int64_t> shape) noexcept
      : data_(data), dtype_(dtype) {
    SetRowMajor(shape);
  }

  // Typed: T is float, Float16, BFloat16, int8_t, bool, int32_t or int64_t.
  template <detail::ElementOf<kConst> T>
  BasicTensorView(T* data, std::initializer_list<std::int64_t> shape) noexcept
      : BasicTensorView(data, detail::kDTypeOf<std::remove_const_t<T>>,
                        std::span(shape.begin(), shape.size())) {}
  template <detail::ElementOf<kConst> T>
  BasicTensorView(T* data, std::initializer_list<std::int64_t> shape,
                  std::initializer_list<std::int64_t> strides) noexcept
      : BasicTensorView(data, detail::kDTypeOf<std::remove_const_t<T>>,
                        std::span(shape.begin(), shape.size()),
                        std::span(strides.begin(), strides.size())) {}

  // A mutable view reads as a const one.
  template <bool kOther, class = std::enable_if_t<kConst && !kOther>>
  // NOLINTNEXTLINE(google-explicit-constructor): implicit on purpose
  BasicTensorView(const BasicTensorView<kOther>& other) noexcept
      : data_(other.data()), dtype_(other.dtype()) {
    if (other.rank() < 0) {
      rank_ = -1;
    } else {
      Set(other.shape(), other.strides());
    }
  }

  [[nodiscard]] Void* data() const noexcept { return data_; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] std::int64_t shape(int dim) const noexcept {
    return shape_[static_cast<size_t>(dim)];
  }
  [[nodiscard]] std::int64_t stride(int dim) const noexcept {
    return strides_[static_cast<size_t>(dim)];
  }
  [[nodiscard]] std::span<const std::int64_t> shape() const noexcept {
    return {shape_.data(), static_cast<std::size_t>(rank_ < 0 ? 0 : rank_)};
  }
  [[nodiscard]] std::span<const std::int64_t> strides() const noexcept {
    return {strides_.data(), static_cast<std::size_t>(rank_ < 0 ? 0 : rank_)};
  }

 private:
  void Set(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) noexcept {
    if (shape.size() > static_cast<std::size_t>(kMaxRank) || shape.size() != strides.size()) {
      rank_ = -1;
      return;
    }
    rank_ = static_cast<int>(shape.size());
    bool empty = false;
    for (const std::int64_t size : shape) empty = empty || size == 0;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      shape_[i] = shape[i];
      // A dimension of one element, or of a view without any, is never stepped along: whatever its
      // stride, no code sees it.
      strides_[i] = empty || shape[i] <= 1 ? 1 : strides[i];
    }
  }
  void SetRowMajor(std::span<const std::int64_t> shape) noexcept {
    std::array<std::int64_t, kMaxRank> strides{};
    std::uint64_t step = 1;  // unsigned: a shape that overflows is refused later, not here
    for (std::size_t i = shape.size() < kMaxRank ? shape.size() : kMaxRank; i-- > 0;) {
      strides[i] = static_cast<std::int64_t>(step);
      step *= static_cast<std::uint64_t>(shape[i]);
    }
    Set(shape, std::span<const std::int64_t>(strides.data(), shape.size()));
  }

  Void* data_ = nullptr;
  DType dtype_ = DType::kInvalid;
  int rank_ = 0;
  std::array<std::int64_t, kMaxRank> shape_{};
  std::array<std::int64_t, kMaxRank> strides_{};
};

using TensorView = BasicTensorView<false>;
using ConstTensorView = BasicTensorView<true>;

// What an output must look like, as the infer functions tell.
struct TensorSpec {
  DType dtype = DType::kInvalid;
  std::vector<std::int64_t> shape;

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

}  // namespace moeperm
