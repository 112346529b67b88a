// SPDX-License-Identifier: Apache-2.0
// float16 as the interface has it, without infinities and NaNs, and sizes of dtypes.
#include <bit>
#include <cmath>
#include <cstdint>

#include "acl/acl.h"
#include "cann/runtime/enum_value.hpp"

using moeperm::cann::EnumValue;

extern "C" {

float aclFloat16ToFloat(aclFloat16 value) {
  const int exponent = value >> 10 & 0x1F;
  const int mantissa = value & 0x3FF;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                   : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return (value & 0x8000) != 0 ? -size : size;
}

aclFloat16 aclFloatToFloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  const std::uint32_t size = bits & 0x7FFFFFFF;
  constexpr std::uint32_t kLargest = 0x477FE000;  // 65504
  constexpr std::uint32_t kNormal = 0x38800000;   // 2^-14
  constexpr std::uint32_t kLost = 0x33000000;     // 2^-25, half the smallest subnormal
  if (size >= kLargest) return static_cast<aclFloat16>(sign | 0x7BFF);
  if (size <= kLost) return static_cast<aclFloat16>(sign);
  // The bits that float16 has room for, and below them those that decide about rounding.
  std::uint32_t wide = size - (112U << 23);
  unsigned shift = 13;
  if (size < kNormal) {
    wide = (size & 0x7FFFFF) | 0x800000;
    shift = 126 - (size >> 23);
  }
  const std::uint32_t kept = wide >> shift;
  const std::uint32_t rest = wide & ((1U << shift) - 1);
  const std::uint32_t half = 1U << (shift - 1);
  const std::uint32_t up = rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0;
  return static_cast<aclFloat16>(sign | (kept + up));
}

size_t aclDataTypeSize(aclDataType dataType) {
  switch (EnumValue(dataType)) {
    case ACL_DT_UNDEFINED:
    case ACL_STRING:
      return 0;
    case ACL_BOOL:
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_UINT1:
    case ACL_INT4:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
      return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
      return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
      return 4;
    case ACL_COMPLEX128:
      return 16;
    default:
      return 8;
  }
}

}  // extern "C"
