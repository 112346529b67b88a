// SPDX-License-Identifier: Apache-2.0
// A tensor of a test: guarded memory, any layout, every element a bit pattern.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "moeperm/tensor.hpp"
#include "reference/reference.hpp"

namespace moeperm::test {

using moeperm_reference::Matrix;
using moeperm_reference::RoutingMap;
using moeperm_reference::Type;

Type ToType(DType dtype);  // float dtypes only
DType ToDType(Type type);
bool IsFloat(DType dtype);

// Where the elements of a [rows, cols] tensor lie. A tensor of one dimension is a row: what a
// layout says of columns holds for it.
enum class Layout {
  kDense,
  kShifted,         // dense, the base one element past a 64-byte boundary
  kRowGaps,         // three elements between rows
  kShiftedRowGaps,  // the same, base shifted
  kColumnGaps,      // one element between columns
  kTransposed,      // column-major
  kReversedRows,    // negative row stride
  kReversedColumns,
  kReversedWithGaps,  // both negative, gaps between columns and rows
  kExpandedRows,      // row stride 0: every row is the same; inputs only
  kExpanded,          // every stride 0; inputs only
};
inline constexpr int kOutputLayouts = 9;  // the first nine fit outputs
inline constexpr int kInputLayouts = 11;
std::string Name(Layout layout);

// Bytes around the elements, and between them where the layout leaves gaps, are known; whether a
// call left them alone can be asked. New tensors hold 0xFF bytes (NaN, -1, a route).
class Tensor {
 public:
  Tensor(DType dtype, std::vector<std::int64_t> shape, Layout layout = Layout::kDense);
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;

  static Tensor OfFloats(DType dtype, std::vector<std::int64_t> shape,
                         const std::vector<float>& values, Layout layout = Layout::kDense);
  static Tensor OfInts(DType dtype, std::vector<std::int64_t> shape,
                       const std::vector<std::int64_t>& values, Layout layout = Layout::kDense);

  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const std::vector<std::int64_t>& shape() const { return shape_; }
  [[nodiscard]] Layout layout() const { return layout_; }
  [[nodiscard]] std::int64_t size() const { return rows_ * cols_; }
  [[nodiscard]] std::int64_t rows() const { return rows_; }  // 1 for one dimension
  [[nodiscard]] std::int64_t cols() const { return cols_; }

  [[nodiscard]] ConstTensorView in() const;
  [[nodiscard]] TensorView out();

  // Element (row, col) as its bit pattern.
  [[nodiscard]] std::uint64_t Bits(std::int64_t row, std::int64_t col) const;
  void SetBits(std::int64_t row, std::int64_t col, std::uint64_t bits);

  // All elements, row-major.
  [[nodiscard]] std::vector<float> Floats() const;
  [[nodiscard]] std::vector<std::int64_t> Ints() const;  // sign-extended
  [[nodiscard]] Matrix ToMatrix() const;
  [[nodiscard]] RoutingMap ToRoutingMap() const;

  // Whether these are the bytes of all elements, row-major; false also where the layout sets the
  // elements of a row apart.
  [[nodiscard]] bool RowBytesEqual(std::span<const std::uint8_t> bytes) const;
  void FillBytes(std::uint8_t byte);  // elements only
  // Takes note of every byte; Unchanged() compares.
  void Freeze() { frozen_ = storage_; }
  [[nodiscard]] testing::AssertionResult Unchanged(const std::string& name) const;
  // Bytes that are no element still hold what they held at the start.
  [[nodiscard]] testing::AssertionResult GuardsIntact(const std::string& name) const;

 private:
  [[nodiscard]] bool RowsAreDense() const { return col_stride_ == 1; }
  [[nodiscard]] std::size_t At(std::int64_t row, std::int64_t col) const;  // in storage_

  DType dtype_;
  std::vector<std::int64_t> shape_;
  Layout layout_;
  std::int64_t rows_ = 1;
  std::int64_t cols_ = 1;
  std::int64_t row_stride_ = 0;
  std::int64_t col_stride_ = 0;
  std::size_t element_size_ = 0;
  std::size_t first_ = 0;        // where element (0, 0) stands in storage_
  std::size_t elements_at_ = 0;  // the bytes of the elements and the gaps between them
  std::size_t elements_end_ = 0;
  std::vector<std::uint8_t> storage_;
  std::vector<std::uint8_t> frozen_;
};

// Bit for bit, guards too; the failure names the first differing element and both bit patterns.
testing::AssertionResult Equals(const std::string& name, const Tensor& actual,
                                const Matrix& expected);
testing::AssertionResult Equals(const std::string& name, const Tensor& actual,
                                std::span<const std::int64_t> expected);
testing::AssertionResult Equals(const std::string& name, const Tensor& actual,
                                const Tensor& expected);

}  // namespace moeperm::test
