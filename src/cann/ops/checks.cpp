// SPDX-License-Identifier: Apache-2.0
#include "cann/ops/checks.hpp"

#include <algorithm>
#include <utility>

#include "cann/objects/values.hpp"
#include "cann/ops/messages.hpp"
#include "cann/runtime/stream.hpp"

namespace moeperm::cann {

bool TensorArg::empty() const {
  return std::find(meta->dims.begin(), meta->dims.end(), 0) != meta->dims.end();
}

int CheckGiven(std::string_view function, std::initializer_list<const TensorArg*> args) {
  for (const TensorArg* arg : args) {
    if (arg->handle == nullptr) return op_msg::MissingTensor(function, arg->name);
  }
  return 0;
}

int CheckGivenWith(std::string_view function, const TensorArg& arg, const TensorArg& other) {
  if (arg.handle != nullptr || other.handle == nullptr) return 0;
  return op_msg::MissingBecause(function, arg.name, other.name);
}

int FindTensors(std::string_view function, std::initializer_list<TensorArg*> args) {
  for (TensorArg* const arg : args) {
    if (arg->handle == nullptr) continue;
    arg->tensor = Tensors().Find(arg->handle);
    if (arg->tensor == nullptr) {
      return op_msg::StaleHandle(function, arg->name, arg->handle, "aclTensor");
    }
    arg->meta = arg->tensor->meta();
  }
  return 0;
}

int FindInts(std::string_view function, IntsArg* arg) {
  if (arg->handle == nullptr) return 0;
  const std::shared_ptr<IntArray> array = Live<IntArray>().Find(arg->handle);
  if (array == nullptr) {
    return op_msg::StaleHandle(function, arg->name, arg->handle, "aclIntArray");
  }
  arg->values = array->values;
  return 0;
}

bool DTypeKnown(const TensorArg& arg) {
  return host::Name(static_cast<host::DType>(arg.meta->dtype)) != "undefined";
}

int CheckFloat(std::string_view function, const TensorArg& arg) {
  switch (arg.meta->dtype) {
    case ACL_FLOAT:
    case ACL_FLOAT16:
    case ACL_BF16:
      return 0;
    default:
      return op_msg::WrongDType(function, arg.name, arg.meta->dtype,
                                "float32, float16 or bfloat16");
  }
}

int CheckRoutingMap(std::string_view function, const TensorArg& arg) {
  if (arg.meta->dtype == ACL_INT8 || arg.meta->dtype == ACL_BOOL) return 0;
  return op_msg::WrongDType(function, arg.name, arg.meta->dtype, "int8 or bool");
}

int CheckInt32(std::string_view function, const TensorArg& arg) {
  if (arg.meta->dtype == ACL_INT32) return 0;
  return op_msg::WrongDType(function, arg.name, arg.meta->dtype, "int32");
}

int CheckIndex(std::string_view function, const TensorArg& arg) {
  if (arg.meta->dtype == ACL_INT32 || arg.meta->dtype == ACL_INT64) return 0;
  return op_msg::WrongDType(function, arg.name, arg.meta->dtype, "int32 or int64");
}

int CheckSameDType(std::string_view function, const TensorArg& arg, const TensorArg& other) {
  if (arg.meta->dtype == other.meta->dtype) return 0;
  return op_msg::DTypesDiffer(function, arg.name, arg.meta->dtype, other.name, other.meta->dtype);
}

int CheckProbsDType(std::string_view function, const TensorArg& probs, const TensorArg& tokens) {
  if (probs.meta->dtype == tokens.meta->dtype) return 0;
  if (probs.meta->dtype == ACL_FLOAT && tokens.meta->dtype == ACL_BF16) return 0;
  return op_msg::MixedDTypes(function, probs.name, probs.meta->dtype, tokens.name,
                             tokens.meta->dtype);
}

int CheckDims(std::string_view function, std::initializer_list<const TensorArg*> args) {
  for (const TensorArg* arg : args) {
    if (!*arg) continue;
    for (std::size_t i = 0; i < arg->rank(); ++i) {
      if (arg->dim(i) < 0) return op_msg::NegativeDim(function, arg->name, i, arg->dim(i));
    }
  }
  return 0;
}

int CheckRank(std::string_view function, const TensorArg& arg, std::size_t rank) {
  return arg.rank() == rank ? 0 : op_msg::WrongRank(function, arg.name, arg.rank(), rank);
}

std::optional<host::TensorDesc> Describe(const TensorArg& arg) {
  if (!arg) return std::nullopt;
  return Describe(arg, arg.meta->dims);
}

std::optional<host::TensorDesc> Describe(const TensorArg& arg, host::Shape shape) {
  if (!arg) return std::nullopt;
  return host::TensorDesc{static_cast<host::DType>(arg.meta->dtype), std::move(shape)};
}

std::optional<host::Attr> Describe(const IntsArg& arg) {
  if (!arg.values) return std::nullopt;
  return host::Attr(*arg.values);
}

bool OnAscend950() { return CurrentPlatform().soc == "ascend950"; }

int CheckTiling(const Api& api, const host::Problem& problem) {
  const host::OpDef* const op = host::FindOp(api.name);
  if (op == nullptr || op->compute_tiling == nullptr) return 0;
  host::Tiling tiling;
  const Status status = op->compute_tiling(problem, CurrentPlatform(), &tiling);
  return status.ok() ? 0 : op_msg::TilingFailed(api.name, status.message(), api.no_tiling);
}

}  // namespace moeperm::cann
