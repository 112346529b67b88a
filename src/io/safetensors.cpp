// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors.hpp"

#include <array>

namespace moeperm::io {
namespace {

constexpr std::array kElementTypes = {
    ElementType{"F32", 4, DType::kFloat32},     ElementType{"F16", 2, DType::kFloat16},
    ElementType{"BF16", 2, DType::kBFloat16},   ElementType{"I8", 1, DType::kInt8},
    ElementType{"BOOL", 1, DType::kBool},       ElementType{"I32", 4, DType::kInt32},
    ElementType{"I64", 8, DType::kInt64},       ElementType{"U8", 1, DType::kInvalid},
    ElementType{"I16", 2, DType::kInvalid},     ElementType{"U16", 2, DType::kInvalid},
    ElementType{"U32", 4, DType::kInvalid},     ElementType{"U64", 8, DType::kInvalid},
    ElementType{"F64", 8, DType::kInvalid},     ElementType{"F8_E4M3", 1, DType::kInvalid},
    ElementType{"F8_E5M2", 1, DType::kInvalid}, ElementType{"F8_E8M0", 1, DType::kInvalid},
    ElementType{"C64", 8, DType::kInvalid},
};

}  // namespace

const ElementType* FindElementType(std::string_view name) noexcept {
  for (const ElementType& type : kElementTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

const ElementType* FindElementType(DType dtype) noexcept {
  for (const ElementType& type : kElementTypes) {
    if (type.dtype == dtype && dtype != DType::kInvalid) return &type;
  }
  return nullptr;
}

bool DenseBytes(std::span<const std::int64_t> shape, std::size_t element, std::uint64_t* bytes) {
  bool empty = false;
  std::int64_t product = static_cast<std::int64_t>(element);
  bool overflow = false;
  for (const std::int64_t dim : shape) {
    if (dim < 0) return false;
    empty = empty || dim == 0;
    // Overflow before a dimension of 0 is no overflow, so this goes on to the last dimension.
    overflow = __builtin_mul_overflow(product, dim, &product) || overflow;
  }
  if (overflow && !empty) return false;
  *bytes = empty ? 0 : static_cast<std::uint64_t>(product);
  return true;
}

}  // namespace moeperm::io
