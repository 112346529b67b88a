// SPDX-License-Identifier: Apache-2.0
// Phase 1: the arguments of a call, and the checks that operators string together in the order of
// the original. Each check gives 0, or a code whose text is noted.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
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

// What the parts of an operator's two functions share.
struct Api {
  std::string_view name;  // of phase 2; phase 1 has GetWorkspaceSize behind it
  // What phase 1 returns where there is no tiling: 561002, and of hand-written interfaces 561103.
  int no_tiling = 561002;
  // Whether workspaceSize and executor are checked before the arguments, or after.
  bool results_first = false;
  // Arguments whose names the library spells otherwise: its name, then the interface's.
  std::span<const std::pair<std::string_view, std::string_view>> names = {};
};

// A tensor argument: the object, whose address is read when the call runs, and its metadata as it
// was in phase 1. Without an object where an optional one is not given.
struct TensorArg {
  std::string_view name;
  const aclTensor* handle = nullptr;
  std::shared_ptr<Tensor> tensor = nullptr;
  std::shared_ptr<const TensorMeta> meta = nullptr;

  explicit operator bool() const { return tensor != nullptr; }
  [[nodiscard]] std::size_t rank() const { return meta->dims.size(); }
  [[nodiscard]] std::int64_t dim(std::size_t i) const { return meta->dims[i]; }
  [[nodiscard]] bool empty() const;
};

// An array of numbers; without values where it is not given.
struct IntsArg {
  std::string_view name;
  const aclIntArray* handle = nullptr;
  std::optional<std::vector<std::int64_t>> values = std::nullopt;
};

// 161001 for the first that is null.
int CheckGiven(std::string_view function, std::initializer_list<const TensorArg*> args);
// 161001 where `arg` is null although `other` is given.
int CheckGivenWith(std::string_view function, const TensorArg& arg, const TensorArg& other);
// Looks all up; null ones stay without an object. 161002 for the first that is not live.
int FindTensors(std::string_view function, std::initializer_list<TensorArg*> args);
int FindInts(std::string_view function, IntsArg* arg);

// Whether the dtype is one that elements can have.
bool DTypeKnown(const TensorArg& arg);

// What follows gives 161002.
int CheckFloat(std::string_view function, const TensorArg& arg);       // float16, bfloat16, float32
int CheckRoutingMap(std::string_view function, const TensorArg& arg);  // int8, bool
int CheckInt32(std::string_view function, const TensorArg& arg);
int CheckIndex(std::string_view function, const TensorArg& arg);  // int32, int64
int CheckSameDType(std::string_view function, const TensorArg& arg, const TensorArg& other);
// The probs' dtype is that of the tokens, or float32 beside bfloat16.
int CheckProbsDType(std::string_view function, const TensorArg& probs, const TensorArg& tokens);
// Of those that are given.
int CheckDims(std::string_view function, std::initializer_list<const TensorArg*> args);
int CheckRank(std::string_view function, const TensorArg& arg, std::size_t rank);

// The shape as the host side sees it. `shape` in place of the tensor's own where it is given.
std::optional<host::TensorDesc> Describe(const TensorArg& arg);
std::optional<host::TensorDesc> Describe(const TensorArg& arg, host::Shape shape);

std::optional<host::Attr> Describe(const IntsArg& arg);

// Whether the current SoC is of the family whose plain operators have interfaces of their own:
// other checks, and no tiling.
bool OnAscend950();

// `api.no_tiling` where the operator has no tiling for the problem on the current SoC.
int CheckTiling(const Api& api, const host::Problem& problem);

}  // namespace moeperm::cann
