// SPDX-License-Identifier: Apache-2.0
#include "rowmap/map_view.hpp"

#include <cstdlib>

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
  std::int64_t at = i * view.stride(0);
  if (view.rank() == 2) {
    at = i / view.shape(1) * view.stride(0) + i % view.shape(1) * view.stride(1);
  }
  return view.dtype() == DType::kInt32 ? static_cast<const std::int32_t*>(view.data())[at]
                                       : static_cast<const std::int64_t*>(view.data())[at];
}

void SetIndex(const TensorView& view, std::int64_t i, std::int64_t value) {
  if (view.dtype() == DType::kInt32) {
    static_cast<std::int32_t*>(view.data())[i * view.stride(0)] = static_cast<std::int32_t>(value);
  } else {
    static_cast<std::int64_t*>(view.data())[i * view.stride(0)] = value;
  }
}

template <class Of>
Status IndexValues::Copy(const ConstTensorView& view, const Of& of) {
  const std::int64_t rows = view.shape(0);
  const std::int64_t columns = view.rank() == 2 ? view.shape(1) : 1;
  const std::int64_t column_stride = view.rank() == 2 ? view.stride(1) : 1;
  MOEPERM_TRY(copy_.Allocate(rows * columns));
  const bool wide = view.dtype() == DType::kInt64;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < columns; ++k) {
      const std::int64_t at = i * view.stride(0) + k * column_stride;
      const std::int64_t value = wide ? static_cast<const std::int64_t*>(view.data())[at]
                                      : static_cast<const std::int32_t*>(view.data())[at];
      copy_[i * columns + k] = static_cast<std::int32_t>(value < 0 ? -1 : of(value));
    }
  }
  data_ = copy_.data();
  return {};
}

Status IndexValues::Load(const ConstTensorView& view) {
  const std::int64_t rows = view.shape(0);
  const std::int64_t columns = view.rank() == 2 ? view.shape(1) : 1;
  if (view.dtype() == DType::kInt32 && (columns <= 1 || view.stride(1) == 1) &&
      (rows <= 1 || view.stride(0) == columns)) {
    data_ = static_cast<const std::int32_t*>(view.data());
    return {};
  }
  return Copy(view, [](std::int64_t value) { return value < kTooLarge ? value : kTooLarge; });
}

Status IndexValues::LoadRows(const ConstTensorView& view, std::int64_t first_row,
                             std::int64_t num_rows) {
  if (first_row == 0) return Load(view);  // rows past the end are skipped where they are used
  return Copy(view, [&](std::int64_t value) {
    const std::int64_t row = value - first_row;
    return row < num_rows ? row : -1;
  });
}

}  // namespace moeperm
