// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace moeperm::test {
namespace {

constexpr std::size_t kGuardBytes = 64;
constexpr std::size_t kAlignment = 64;
constexpr std::uint8_t kGuardByte = 0xA5;
constexpr std::uint8_t kGapByte = 0xFF;  // between elements, and elements at the start

struct Strides {
  std::int64_t row;
  std::int64_t col;
  std::int64_t shift;  // elements the base stands past an aligned address
};

Strides StridesOf(Layout layout, std::int64_t rows, std::int64_t cols) {
  switch (layout) {
    case Layout::kDense:
      return {cols, 1, 0};
    case Layout::kShifted:
      return {cols, 1, 1};
    case Layout::kRowGaps:
      return {cols + 3, 1, 0};
    case Layout::kShiftedRowGaps:
      return {cols + 3, 1, 1};
    case Layout::kColumnGaps:
      return {2 * cols, 2, 0};
    case Layout::kTransposed:
      return {1, rows, 0};
    case Layout::kReversedRows:
      return {-cols, 1, 0};
    case Layout::kReversedColumns:
      return {cols, -1, 0};
    case Layout::kReversedWithGaps:
      return {-(2 * cols + 3), -2, 1};
    case Layout::kExpandedRows:
      return {0, 1, 0};
    case Layout::kExpanded:
      return {0, 0, 0};
  }
  return {};
}

std::string Place(const Tensor& tensor, std::int64_t row, std::int64_t col) {
  return tensor.shape().size() == 1 ? fmt::format("[{}]", col) : fmt::format("[{}][{}]", row, col);
}

template <class ExpectedBits>
testing::AssertionResult EqualsBits(const std::string& name, const Tensor& actual,
                                    const ExpectedBits& expected) {
  std::int64_t wrong = 0;
  std::string first;
  for (std::int64_t row = 0; row < actual.rows(); ++row) {
    for (std::int64_t col = 0; col < actual.cols(); ++col) {
      const std::uint64_t got = actual.Bits(row, col);
      const std::uint64_t want = expected(row, col);
      if (got != want && wrong++ == 0) {
        first = fmt::format("{}{} = 0x{:x}, want 0x{:x}", name, Place(actual, row, col), got, want);
      }
    }
  }
  if (wrong != 0) {
    return testing::AssertionFailure()
           << first << " (" << wrong << " of " << actual.size() << " elements differ; "
           << Name(actual.dtype()) << ", layout " << Name(actual.layout()) << ")";
  }
  return actual.GuardsIntact(name);
}

}  // namespace

Type ToType(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return Type::kFloat16;
    case DType::kBFloat16:
      return Type::kBFloat16;
    default:
      return Type::kFloat32;
  }
}

DType ToDType(Type type) {
  switch (type) {
    case Type::kFloat16:
      return DType::kFloat16;
    case Type::kBFloat16:
      return DType::kBFloat16;
    case Type::kFloat32:
      break;
  }
  return DType::kFloat32;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

std::string Name(Layout layout) {
  static constexpr const char* kNames[] = {
      "dense",          "shifted",       "row gaps",      "shifted row gaps",
      "column gaps",    "transposed",    "reversed rows", "reversed columns",
      "reversed, gaps", "expanded rows", "expanded"};
  return kNames[static_cast<int>(layout)];
}

Tensor::Tensor(DType dtype, std::vector<std::int64_t> shape, Layout layout)
    : dtype_(dtype), shape_(std::move(shape)), layout_(layout), element_size_(SizeOf(dtype)) {
  if (shape_.size() == 2) {
    rows_ = shape_[0];
  }
  cols_ = shape_.back();
  const Strides strides = StridesOf(layout, rows_, cols_);
  row_stride_ = strides.row;
  col_stride_ = strides.col;
  std::int64_t lowest = 0;
  std::int64_t highest = -1;
  if (size() != 0) {
    const std::int64_t row_end = (rows_ - 1) * row_stride_;
    const std::int64_t col_end = (cols_ - 1) * col_stride_;
    lowest = std::min<std::int64_t>(row_end, 0) + std::min<std::int64_t>(col_end, 0);
    highest = std::max<std::int64_t>(row_end, 0) + std::max<std::int64_t>(col_end, 0);
  }
  const std::size_t bytes = static_cast<std::size_t>(highest - lowest + 1) * element_size_;
  const std::size_t shift = static_cast<std::size_t>(strides.shift) * element_size_;
  storage_.assign(bytes + shift + 2 * kGuardBytes + kAlignment, kGuardByte);
  std::size_t aligned = kGuardBytes;
  while (reinterpret_cast<std::uintptr_t>(storage_.data() + aligned) % kAlignment != 0) {
    ++aligned;
  }
  elements_at_ = aligned + shift;
  elements_end_ = elements_at_ + bytes;
  first_ = elements_at_ + static_cast<std::size_t>(-lowest) * element_size_;
  std::fill(storage_.begin() + static_cast<std::ptrdiff_t>(elements_at_),
            storage_.begin() + static_cast<std::ptrdiff_t>(elements_end_), kGapByte);
}

Tensor Tensor::OfFloats(DType dtype, std::vector<std::int64_t> shape,
                        const std::vector<float>& values, Layout layout) {
  Tensor out(dtype, std::move(shape), layout);
  EXPECT_EQ(out.size(), static_cast<std::int64_t>(values.size())) << "a fault of the test";
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const float value = values[static_cast<std::size_t>(i)];
    out.SetBits(i / out.cols_, i % out.cols_, moeperm_reference::Narrow(ToType(dtype), value));
  }
  out.Freeze();
  return out;
}

Tensor Tensor::OfInts(DType dtype, std::vector<std::int64_t> shape,
                      const std::vector<std::int64_t>& values, Layout layout) {
  Tensor out(dtype, std::move(shape), layout);
  EXPECT_EQ(out.size(), static_cast<std::int64_t>(values.size())) << "a fault of the test";
  for (std::int64_t i = 0; i < out.size(); ++i) {
    out.SetBits(i / out.cols_, i % out.cols_,
                static_cast<std::uint64_t>(values[static_cast<std::size_t>(i)]));
  }
  out.Freeze();
  return out;
}

std::size_t Tensor::At(std::int64_t row, std::int64_t col) const {
  const std::int64_t elements = row * row_stride_ + col * col_stride_;
  return first_ + static_cast<std::size_t>(elements) * element_size_;
}

ConstTensorView Tensor::in() const {
  const std::int64_t strides[] = {row_stride_, col_stride_};
  return ConstTensorView(storage_.data() + first_, dtype_, shape_,
                         std::span(strides).last(shape_.size()));
}

TensorView Tensor::out() {
  const std::int64_t strides[] = {row_stride_, col_stride_};
  return TensorView(storage_.data() + first_, dtype_, shape_,
                    std::span(strides).last(shape_.size()));
}

std::uint64_t Tensor::Bits(std::int64_t row, std::int64_t col) const {
  std::uint64_t bits = 0;
  std::memcpy(&bits, storage_.data() + At(row, col), element_size_);
  return bits;
}

void Tensor::SetBits(std::int64_t row, std::int64_t col, std::uint64_t bits) {
  std::memcpy(storage_.data() + At(row, col), &bits, element_size_);
}

std::vector<float> Tensor::Floats() const {
  std::vector<float> out;
  for (std::int64_t i = 0; i < size(); ++i) {
    out.push_back(moeperm_reference::Widen(ToType(dtype_),
                                           static_cast<std::uint32_t>(Bits(i / cols_, i % cols_))));
  }
  return out;
}

std::vector<std::int64_t> Tensor::Ints() const {
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(size()));
  const int shift = 64 - 8 * static_cast<int>(element_size_);
  for (std::int64_t i = 0; i < size(); ++i) {
    out.push_back(static_cast<std::int64_t>(Bits(i / cols_, i % cols_) << shift) >> shift);
  }
  return out;
}

Matrix Tensor::ToMatrix() const {
  const bool column = shape_.size() == 1;  // the reference's vectors are [rows, 1]
  Matrix out(ToType(dtype_), column ? cols_ : rows_, column ? 1 : cols_);
  for (std::int64_t i = 0; i < size(); ++i) {
    const std::int64_t row = i / cols_;
    const std::int64_t col = i % cols_;
    out.Set(column ? col : row, column ? 0 : col, static_cast<std::uint32_t>(Bits(row, col)));
  }
  return out;
}

RoutingMap Tensor::ToRoutingMap() const {
  RoutingMap out{rows_, cols_, {}};
  for (std::int64_t i = 0; i < size(); ++i) {
    out.bytes.push_back(static_cast<std::uint8_t>(Bits(i / cols_, i % cols_)));
  }
  return out;
}

bool Tensor::RowBytesEqual(std::span<const std::uint8_t> bytes) const {
  const std::size_t row_bytes = static_cast<std::size_t>(cols_) * element_size_;
  if (!RowsAreDense() || row_bytes == 0) {
    return false;
  }
  for (std::int64_t row = 0; row < rows_; ++row) {
    if (std::memcmp(storage_.data() + At(row, 0),
                    bytes.data() + static_cast<std::size_t>(row) * row_bytes, row_bytes) != 0) {
      return false;
    }
  }
  return true;
}

void Tensor::FillBytes(std::uint8_t byte) {
  for (std::int64_t row = 0; row < rows_; ++row) {
    for (std::int64_t col = 0; col < cols_; ++col) {
      std::memset(storage_.data() + At(row, col), byte, element_size_);
    }
  }
}

testing::AssertionResult Tensor::Unchanged(const std::string& name) const {
  if (frozen_.size() != storage_.size()) {
    return testing::AssertionFailure() << name << " was never frozen: a fault of the test";
  }
  if (storage_ != frozen_) {
    const auto at = std::mismatch(storage_.begin(), storage_.end(), frozen_.begin()).first;
    return testing::AssertionFailure()
           << name << ", an input, was written to, at byte "
           << (at - storage_.begin()) - static_cast<std::ptrdiff_t>(elements_at_);
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult Tensor::GuardsIntact(const std::string& name) const {
  // The memory with the elements wiped out must be what it was at the start.
  std::vector<std::uint8_t> memory = storage_;
  for (std::int64_t row = 0; row < rows_; ++row) {
    if (RowsAreDense()) {
      std::memset(memory.data() + At(row, 0), kGapByte,
                  static_cast<std::size_t>(cols_) * element_size_);
      continue;
    }
    for (std::int64_t col = 0; col < cols_; ++col) {
      std::memset(memory.data() + At(row, col), kGapByte, element_size_);
    }
  }
  const auto begin = memory.begin();
  const auto elements_at = begin + static_cast<std::ptrdiff_t>(elements_at_);
  const auto elements_end = begin + static_cast<std::ptrdiff_t>(elements_end_);
  const auto not_byte = [](auto from, auto to, std::uint8_t byte) {
    return std::find_if(from, to, [byte](std::uint8_t at) { return at != byte; });
  };
  auto wrong = not_byte(begin, elements_at, kGuardByte);
  if (wrong == elements_at) {
    wrong = not_byte(elements_at, elements_end, kGapByte);
  }
  if (wrong == elements_end) {
    wrong = not_byte(elements_end, memory.end(), kGuardByte);
  }
  if (wrong != memory.end()) {
    return testing::AssertionFailure()
           << name << ": a byte that is no element was written, " << wrong - elements_at
           << " bytes from the lowest element (" << elements_end_ - elements_at_
           << " bytes to the end; layout " << Name(layout_) << ")";
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult Equals(const std::string& name, const Tensor& actual,
                                const Matrix& expected) {
  const bool column = actual.shape().size() == 1;
  if (ToType(actual.dtype()) != expected.type || !IsFloat(actual.dtype()) ||
      actual.size() != expected.rows * expected.cols ||
      (column ? actual.cols() : actual.rows()) != expected.rows) {
    return testing::AssertionFailure() << name << ": dtype or shape differ from the expected ones";
  }
  // Large tensors: look at single elements only where something differs.
  if (actual.RowBytesEqual(expected.bytes)) {
    return actual.GuardsIntact(name);
  }
  return EqualsBits(name, actual, [&](std::int64_t row, std::int64_t col) -> std::uint64_t {
    return column ? expected.Get(col, 0) : expected.Get(row, col);
  });
}

testing::AssertionResult Equals(const std::string& name, const Tensor& actual,
                                std::span<const std::int64_t> expected) {
  if (actual.size() != static_cast<std::int64_t>(expected.size())) {
    return testing::AssertionFailure()
           << name << ": " << actual.size() << " elements, want " << expected.size();
  }
  const std::uint64_t mask = SizeOf(actual.dtype()) == 8
                                 ? ~std::uint64_t{0}
                                 : (std::uint64_t{1} << (8 * SizeOf(actual.dtype()))) - 1;
  return EqualsBits(name, actual, [&](std::int64_t row, std::int64_t col) {
    const std::int64_t i = row * actual.cols() + col;
    return static_cast<std::uint64_t>(expected[static_cast<std::size_t>(i)]) & mask;
  });
}

testing::AssertionResult Equals(const std::string& name, const Tensor& actual,
                                const Tensor& expected) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    return testing::AssertionFailure() << name << ": dtype or shape differ from the expected ones";
  }
  return EqualsBits(name, actual,
                    [&](std::int64_t row, std::int64_t col) { return expected.Bits(row, col); });
}

}  // namespace moeperm::test
