// SPDX-License-Identifier: Apache-2.0
// Checks of arguments before any work. `name` is the argument's, for the message.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>

#include "moeperm/status.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm {

// Row, token and expert numbers are int32 inside the library.
inline constexpr std::int64_t kMaxRows = std::numeric_limits<std::int32_t>::max();

// *product = a * b; false where that needs more than 63 bits. For sizes: a, b >= 0.
inline bool CheckedMul(std::int64_t a, std::int64_t b, std::int64_t* product) {
  return !__builtin_mul_overflow(a, b, product);
}

enum class Kind { kFloat, kRoutingMap, kIndex, kAny };

// Everything that can be wrong with a view by itself: rank, dtype, sizes, null data, alignment, an
// address range that does not fit in 63 bits.
Status CheckInput(std::string_view name, const ConstTensorView& view, int rank, Kind kind);
// That, and that no two elements share an address.
Status CheckOutput(std::string_view name, const TensorView& view, int rank, Kind kind);
// The part of CheckInput that looks at no data: for the infer functions.
Status CheckShape(std::string_view name, const ConstTensorView& view, int rank, Kind kind);

// A dense tensor of this shape, sizes not negative, fits in 63 bits.
Status CheckBytes(std::string_view name, DType dtype, std::initializer_list<std::int64_t> shape);

Status CheckDim(std::string_view name, const ConstTensorView& view, int dim, std::int64_t want,
                std::string_view why);
Status CheckSameDType(std::string_view name, const ConstTensorView& view, std::string_view other,
                      DType want);
// view.shape[dim] <= kMaxRows
Status CheckCount(std::string_view name, const ConstTensorView& view, int dim);

// 0 <= capacity <= tokens, and capacity * experts <= kMaxRows. `row_bytes` as in the message.
Status CheckCapacity(std::int64_t capacity, std::int64_t tokens, std::int64_t experts,
                     double row_bytes);
// 0 <= value <= kMaxRows
Status CheckRowCount(std::string_view name, std::int64_t value);

struct NamedOutput {
  std::string_view name;
  TensorView view;
};
struct NamedInput {
  std::string_view name;
  ConstTensorView view;
};
// CheckDisjoint of every output with every input and every other output.
Status CheckAllDisjoint(std::span<const NamedOutput> outputs, std::span<const NamedInput> inputs);

// Refuses two views that are both dense and share bytes. Interleaved strided views are the
// caller's duty: telling them apart exactly is an integer programming problem.
Status CheckDisjoint(std::string_view output_name, const TensorView& output,
                     std::string_view other_name, const ConstTensorView& other);

}  // namespace moeperm
