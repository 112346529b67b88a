// SPDX-License-Identifier: Apache-2.0
// Element types a tensor view can have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "moeperm/export.h"

namespace moeperm {

// The values are part of the C ABI (`moeperm_dtype`); they never change meaning.
enum class DType : std::int32_t {
  kInvalid = 0,
  kFloat32 = 1,
  kFloat16 = 2,   // IEEE binary16
  kBFloat16 = 3,  // upper half of an IEEE binary32
  kInt8 = 4,
  kBool = 5,  // one byte, 0 or not 0
  kInt32 = 6,
  kInt64 = 7,
};

// Bytes of one element; 0 for kInvalid and values outside the enumeration.
MOEPERM_EXPORT std::size_t SizeOf(DType dtype) noexcept;

// "float32", "bfloat16", ...; "invalid" for values outside the enumeration.
MOEPERM_EXPORT std::string_view Name(DType dtype) noexcept;

// Storage of the 16-bit floating-point types: the bit pattern and nothing else.
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

namespace detail {
template <class T>
inline constexpr DType kDTypeOf = DType::kInvalid;
template <>
inline constexpr DType kDTypeOf<float> = DType::kFloat32;
template <>
inline constexpr DType kDTypeOf<Float16> = DType::kFloat16;
template <>
inline constexpr DType kDTypeOf<BFloat16> = DType::kBFloat16;
template <>
inline constexpr DType kDTypeOf<std::int8_t> = DType::kInt8;
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;
template <>
inline constexpr DType kDTypeOf<std::int32_t> = DType::kInt32;
template <>
inline constexpr DType kDTypeOf<std::int64_t> = DType::kInt64;
}  // namespace detail

}  // namespace moeperm
