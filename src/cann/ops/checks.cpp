// SPDX-License-Identifier: Apache-2.0
#include "cann/ops/checks.hpp"

#include <algorithm>
#include <utility>

#include "cann/ops/messages.hpp"
#include "cann/runtime/stream.hpp"

namespace moeperm::cann {

bool TensorArg::empty() const {
  return std::find(meta->dims.begin(), meta->dims.end(), 0) != meta->dims.end();
}

int CheckGiven(std::string_view function, std::initializer_list<Handle> handles) {
  for (const Handle& handle : handles) {
    if (handle.tensor == nullptr) return op_msg::MissingTensor(function, handle.name);
  }
  return 0;
}

int FindTensors(std::string_view function, std::initializer_list<Handle> handles) {
  for (const Handle& handle : handles) {
    handle.arg->name = handle.name;
    if (handle.tensor == nullptr) continue;
    handle.arg->tensor = Tensors().Find(handle.tensor);
    if (handle.arg->tensor == nullptr) {
      return op_msg::StaleTensor(function, handle.name, handle.tensor);
    }
    handle.arg->meta = handle.arg->tensor->meta();
  }
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

int CheckTiling(std::string_view function, const host::Problem& problem) {
  const host::OpDef* const op = host::FindOp(function);
  if (op == nullptr || op->compute_tiling == nullptr) return 0;
  host::Tiling tiling;
  const Status status = op->compute_tiling(problem, CurrentPlatform(), &tiling);
  return status.ok() ? 0 : op_msg::TilingFailed(function, status.message());
}

}  // namespace moeperm::cann
