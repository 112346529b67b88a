// SPDX-License-Identifier: Apache-2.0
// What the definitions of the operators are written with: dtypes by a letter, columns that several
// of them have, and chips. Where the descriptions give a set of combinations and not their order,
// ours is tokens before probs before indices, bfloat16, float16, float32.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "cann/host/op_def.hpp"

namespace moeperm::cann::host::parts {

inline constexpr DType kB = DType::kBFloat16;
inline constexpr DType kH = DType::kFloat16;
inline constexpr DType kF = DType::kFloat32;
inline constexpr DType kI = DType::kInt32;
inline constexpr DType kL = DType::kInt64;
inline constexpr DType k8 = DType::kInt8;
inline constexpr DType k1 = DType::kBool;

// The same dtype in all combinations.
template <std::size_t n>
constexpr std::array<DType, n> All(DType dtype) {
  std::array<DType, n> all{};
  all.fill(dtype);
  return all;
}

// The routing-map operators: probs of the tokens' dtype, or float32 beside bfloat16; each with a
// map of int8 and of bool.
inline constexpr std::array kMapTokenTypes = {kB, kH, kF, kB, kH, kF, kB, kB};
inline constexpr std::array kMapProbTypes = {kB, kH, kF, kB, kH, kF, kF, kF};
inline constexpr std::array kInt8BoolMaps = {k8, k8, k8, k1, k1, k1, k8, k1};
inline constexpr std::array kBoolInt8Maps = {k1, k1, k1, k8, k8, k8, k1, k8};

// Probs of the tokens' dtype.
inline constexpr std::array kThreeTypes = {kB, kH, kF};
// Probs of any dtype.
inline constexpr std::array kNineTokenTypes = {kB, kB, kB, kH, kH, kH, kF, kF, kF};
inline constexpr std::array kNineProbTypes = {kB, kH, kF, kB, kH, kF, kB, kH, kF};

// The descriptions print the flags of one operator only (the gradient of the routing-map
// permutation); those of the others are the same here.
template <class... Socs>
constexpr std::array<SocSupport, sizeof...(Socs)> On(std::string_view op_file, Socs... socs) {
  return {SocSupport{socs, true, false, true, true, false, op_file}...};
}
inline constexpr std::string_view kA2 = "ascend910b";
inline constexpr std::string_view kA3 = "ascend910_93";
inline constexpr std::string_view k950 = "ascend950";
inline constexpr std::string_view k310P = "ascend310p";

}  // namespace moeperm::cann::host::parts
