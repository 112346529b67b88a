// SPDX-License-Identifier: Apache-2.0
// Dense row access to what callers may give strided: routing maps and index tensors.
#pragma once

#include <cstdint>

#include "base/buffer.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm {

// Rows of a routing map as contiguous bytes: in place where the map's columns are neighbours, else
// gathered a tile of tokens at a time.
class MapRows {
 public:
  // Tokens gathered at a time: a cache line's worth where the map is stored expert by expert.
  static constexpr std::int64_t kTile = 64;

  explicit MapRows(const ConstTensorView& map) : map_(map) {}

  [[nodiscard]] bool in_place() const { return map_.stride(1) == 1 || map_.shape(1) <= 1; }
  Status Prepare() { return in_place() ? Status() : tile_.Allocate(kTile * map_.shape(1)); }

  // How many rows Rows() gives at a time.
  [[nodiscard]] std::int64_t MaxRows() const { return in_place() ? map_.shape(0) : kTile; }
  // The bytes of the rows token .. token + count - 1, count <= MaxRows(), *row_bytes apart.
  const std::uint8_t* Rows(std::int64_t token, std::int64_t count, std::int64_t* row_bytes);

 private:
  ConstTensorView map_;
  Buffer<std::uint8_t> tile_;
};

// An int32 or int64 tensor of one or two dimensions as contiguous int32, row-major: in place where
// it is that already, else a copy. Values an int32 cannot hold become `kTooLarge`, or -1 where
// negative.
class IndexValues {
 public:
  static constexpr std::int32_t kTooLarge = 0x7FFFFFFF;

  Status Load(const ConstTensorView& view);
  // Row numbers of the full layout as ones of the rows [first_row, first_row + num_rows) alone:
  // others become -1, or with first_row 0 stay as Load makes them.
  Status LoadRows(const ConstTensorView& view, std::int64_t first_row, std::int64_t num_rows);
  [[nodiscard]] const std::int32_t* data() const { return data_; }

 private:
  // of(value) for every value, -1 for negative ones.
  template <class Of>
  Status Copy(const ConstTensorView& view, const Of& of);

  const std::int32_t* data_ = nullptr;
  Buffer<std::int32_t> copy_;
};

// Element i, row-major, of an int32 or int64 tensor of one or two dimensions.
std::int64_t IndexAt(const ConstTensorView& view, std::int64_t i);
// As IndexAt; of one dimension.
void SetIndex(const TensorView& view, std::int64_t i, std::int64_t value);

}  // namespace moeperm
