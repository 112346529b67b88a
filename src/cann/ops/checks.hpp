// SPDX-License-Identifier: Apache-2.0
// Phase 1: the arguments of a call, and the checks that operators string together in the order of
// the original. Each check gives 0, or a code whose text is noted.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "cann/host/op_def.hpp"
#include "cann/objects/tensor.hpp"

// Passes on a code that is not 0.
#define MOEPERM_CANN_TRY(call)                    \
  do {                                            \
    const int moeperm_code_ = (call);             \
    if (moeperm_code_ != 0) return moeperm_code_; \
  } while (false)

namespace moeperm::cann {

// A tensor argument: the object, whose address is read when the call runs, and its metadata as it
// was in phase 1. Without an object where an optional one is not given.
struct TensorArg {
  std::string_view name;
  std::shared_ptr<Tensor> tensor;
  std::shared_ptr<const TensorMeta> meta;

  explicit operator bool() const { return tensor != nullptr; }
  [[nodiscard]] std::size_t rank() const { return meta->dims.size(); }
  [[nodiscard]] std::int64_t dim(std::size_t i) const { return meta->dims[i]; }
  [[nodiscard]] bool empty() const;
};

struct Handle {
  std::string_view name;
  const aclTensor* tensor;
  TensorArg* arg;
};

// 161001 for the first that is null.
int CheckGiven(std::string_view function, std::initializer_list<Handle> handles);
// Looks all up; null ones stay without an object. 161002 for the first that is not live.
int FindTensors(std::string_view function, std::initializer_list<Handle> handles);

// Whether the dtype is one that elements can have.
bool DTypeKnown(const TensorArg& arg);

// What follows gives 161002.
int CheckFloat(std::string_view function, const TensorArg& arg);       // float16, bfloat16, float32
int CheckRoutingMap(std::string_view function, const TensorArg& arg);  // int8, bool
int CheckInt32(std::string_view function, const TensorArg& arg);
int CheckSameDType(std::string_view function, const TensorArg& arg, const TensorArg& other);
// The probs' dtype is that of the tokens, or float32 beside bfloat16.
int CheckProbsDType(std::string_view function, const TensorArg& probs, const TensorArg& tokens);
// Of those that are given.
int CheckDims(std::string_view function, std::initializer_list<const TensorArg*> args);
int CheckRank(std::string_view function, const TensorArg& arg, std::size_t rank);

// The shape as the host side sees it. `shape` in place of the tensor's own where it is given.
std::optional<host::TensorDesc> Describe(const TensorArg& arg);
std::optional<host::TensorDesc> Describe(const TensorArg& arg, host::Shape shape);

// 561103 where the operator has no tiling for the problem on the current SoC.
int CheckTiling(std::string_view function, const host::Problem& problem);

}  // namespace moeperm::cann
