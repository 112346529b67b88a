// SPDX-License-Identifier: Apache-2.0
#include "rowmap/map_view.hpp"

#include <cstdlib>
#include <utility>

#include "base/status_macros.hpp"

namespace moeperm {

const std::uint8_t* MapRows::Rows(std::int64_t token, std::int64_t count, std::int64_t* row_bytes) {
  const auto* base = static_cast<const std::uint8_t*>(map_.data()) + token * map_.stride(0);
  if (in_place()) {
    *row_bytes = map_.stride(0);
    return base;
  }
  const std::int64_t experts = map_.shape(1);
  *row_bytes = experts;
  if (std::abs(map_.stride(0)) < std::abs(map_.stride(1))) {  // stored expert by expert
    for (std::int64_t e = 0; e < experts; ++e) {
      for (std::int64_t t = 0; t < count; ++t) {
        tile_[t * experts + e] = base[t * map_.stride(0) + e * map_.stride(1)];
      }
    }
  } else {
    for (std::int64_t t = 0; t < count; ++t) {
      for (std::int64_t e = 0; e < experts; ++e) {
        tile_[t * experts + e] = base[t * map_.stride(0) + e * map_.stride(1)];
      }
    }
  }
  return tile_.data();
}

std::int64_t IndexAt(const ConstTensorView& view, std::int64_t i) {
  if (view.dtype() == DType::kInt32) {
    return static_cast<const std::int32_t*>(view.data())[i * view.stride(0)];
  }
  return static_cast<const std::int64_t*>(view.data())[i * view.stride(0)];
}

void SetIndex(const TensorView& view, std::int64_t i, std::int64_t value) {
  if (view.dtype() == DType::kInt32) {
    static_cast<std::int32_t*>(view.data())[i * view.stride(0)] = static_cast<std::int32_t>(value);
  } else {
    static_cast<std::int64_t*>(view.data())[i * view.stride(0)] = value;
  }
}

Status IndexValues::Load(const ConstTensorView& view) {
  const std::int64_t rows = view.shape(0);
  const std::int64_t columns = view.rank() == 2 ? view.shape(1) : 1;
  const std::int64_t row_stride = view.stride(0);
  const std::int64_t column_stride = view.rank() == 2 ? view.stride(1) : 1;
  if (view.dtype() == DType::kInt32 && (columns <= 1 || column_stride == 1) &&
      (rows <= 1 || row_stride == columns)) {
    data_ = static_cast<const std::int32_t*>(view.data());
    return {};
  }
  MOEPERM_TRY(copy_.Allocate(rows * columns));
  const bool wide = view.dtype() == DType::kInt64;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < columns; ++k) {
      const std::int64_t at = i * row_stride + k * column_stride;
      const std::int64_t value = wide ? static_cast<const std::int64_t*>(view.data())[at]
                                      : static_cast<const std::int32_t*>(view.data())[at];
      copy_[i * columns + k] =
          value < 0 ? -1 : static_cast<std::int32_t>(value < kTooLarge ? value : kTooLarge);
    }
  }
  data_ = copy_.data();
  return {};
}

Status IndexValues::Shift(std::int64_t size, std::int64_t first_row, std::int64_t num_rows) {
  if (first_row == 0) {  // rows past the end are skipped where they are used
    return {};
  }
  Buffer<std::int32_t> shifted;
  MOEPERM_TRY(shifted.Allocate(size));
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t row = data_[i] - first_row;
    shifted[i] = row >= 0 && row < num_rows ? static_cast<std::int32_t>(row) : -1;
  }
  copy_ = std::move(shifted);
  data_ = copy_.data();
  return {};
}

}  // namespace moeperm
