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
  const std::int64_t size = view.shape(0);
  if (view.dtype() == DType::kInt32 && (view.stride(0) == 1 || size <= 1)) {
    data_ = static_cast<const std::int32_t*>(view.data());
    return {};
  }
  MOEPERM_TRY(copy_.Allocate(size));
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t value = IndexAt(view, i);
    copy_[i] = value < 0 ? -1 : static_cast<std::int32_t>(value < kTooLarge ? value : kTooLarge);
  }
  data_ = copy_.data();
  return {};
}

}  // namespace moeperm
