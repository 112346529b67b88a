// SPDX-License-Identifier: Apache-2.0
#include "cann/host/op_def.hpp"

#include <array>
#include <utility>

#include "cann/host/definitions.hpp"

namespace moeperm::cann::host {
namespace {

// The first name of a dtype is the one it is shown by.
constexpr std::pair<std::string_view, DType> kNames[] = {
    {"float32", DType::kFloat32}, {"float16", DType::kFloat16}, {"bfloat16", DType::kBFloat16},
    {"int8", DType::kInt8},       {"uint8", DType::kUInt8},     {"int16", DType::kInt16},
    {"uint16", DType::kUInt16},   {"int32", DType::kInt32},     {"uint32", DType::kUInt32},
    {"int64", DType::kInt64},     {"uint64", DType::kUInt64},   {"float64", DType::kFloat64},
    {"bool", DType::kBool},       {"fp32", DType::kFloat32},    {"fp16", DType::kFloat16},
    {"bf16", DType::kBFloat16},   {"float", DType::kFloat32},   {"half", DType::kFloat16},
    {"double", DType::kFloat64},  {"fp64", DType::kFloat64},
};

}  // namespace

std::string_view Name(DType dtype) {
  for (const auto& [name, value] : kNames) {
    if (value == dtype) return name;
  }
  return "undefined";
}

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const auto& [known, value] : kNames) {
    if (known == name) return value;
  }
  return std::nullopt;
}

std::span<const OpDef> Ops() {
  static const std::array ops = {
      MoeTokenPermuteWithRoutingMap(),
      MoeTokenPermuteWithRoutingMapGrad(),
      MoeTokenUnpermuteWithRoutingMap(),
      MoeTokenUnpermuteWithRoutingMapGrad(),
      MoeTokenPermute(),
      MoeTokenPermuteWithEp(),
      MoeTokenPermuteGrad(),
      MoeTokenUnpermute(),
      MoeTokenUnpermuteGrad(),
      MoeTokenPermuteWithEpGrad(),
      MoeTokenUnpermuteWithEp(),
      MoeTokenUnpermuteWithEpGrad(),
  };
  return ops;
}

const OpDef* FindOp(std::string_view name) {
  for (const OpDef& op : Ops()) {
    if (name == op.type || name == op.name || name == op.api) return &op;
  }
  return nullptr;
}

}  // namespace moeperm::cann::host
