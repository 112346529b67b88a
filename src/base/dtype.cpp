// SPDX-License-Identifier: Apache-2.0
#include "moeperm/dtype.hpp"

namespace moeperm {

std::size_t SizeOf(DType dtype) noexcept {
  switch (dtype) {
    case DType::kInvalid:
      return 0;
    case DType::kInt8:
    case DType::kBool:
      return 1;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kInt64:
      return 8;
  }
  return 0;
}

std::string_view Name(DType dtype) noexcept {
  switch (dtype) {
    case DType::kInvalid:
      return "invalid";
    case DType::kFloat32:
      return "float32";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kInt8:
      return "int8";
    case DType::kBool:
      return "bool";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
  }
  return "invalid";
}

}  // namespace moeperm
