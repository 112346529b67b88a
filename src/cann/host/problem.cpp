// SPDX-License-Identifier: Apache-2.0
#include "cann/host/problem.hpp"

#include <span>
#include <utility>

#include "cann/host/arithmetic.hpp"
#include "cann/host/messages.hpp"

namespace moeperm::cann::host {
namespace {

// Far above any unified buffer there is, and far below where sums of sizes could go wrong.
constexpr std::int64_t kMaxUbBytes = std::int64_t{1} << 40;
// So that cores * elements of a sort * its loops stay within 128 bits.
constexpr std::int64_t kMaxCores = (std::int64_t{1} << 31) - 1;

const TensorDesc* At(const std::vector<std::optional<TensorDesc>>& tensors, std::size_t i) {
  return i < tensors.size() && tensors[i] ? &*tensors[i] : nullptr;
}

const Attr* FindAttr(const Problem& problem, std::size_t i) {
  return i < problem.attrs.size() && problem.attrs[i] ? &*problem.attrs[i] : nullptr;
}

template <class T>
Status Read(const Problem& problem, std::size_t i, std::string_view name, AttrType type, T* value) {
  const Attr* const attr = FindAttr(problem, i);
  if (attr == nullptr) return MissingAttr(name);
  const T* const held = std::get_if<T>(attr);
  if (held == nullptr) return WrongAttrType(name, type);
  *value = *held;
  return {};
}

}  // namespace

const TensorDesc* Input(const Problem& problem, std::size_t i) { return At(problem.inputs, i); }
const TensorDesc* Output(const Problem& problem, std::size_t i) { return At(problem.outputs, i); }

Status ReadInt(const Problem& problem, std::size_t i, std::string_view name, std::int64_t* value) {
  return Read(problem, i, name, AttrType::kInt, value);
}

Status ReadBool(const Problem& problem, std::size_t i, std::string_view name, bool* value) {
  return Read(problem, i, name, AttrType::kBool, value);
}

Status ReadCount(const Problem& problem, std::size_t i, std::string_view name,
                 std::int64_t* value) {
  if (Status status = ReadInt(problem, i, name, value); !status.ok()) return status;
  return *value < 0 ? NegativeAttr(name, *value) : Status();
}

std::optional<std::vector<std::int64_t>> ReadList(const Problem& problem, std::size_t i) {
  const Attr* const attr = FindAttr(problem, i);
  const auto* const list = attr != nullptr ? std::get_if<std::vector<std::int64_t>>(attr) : nullptr;
  return list != nullptr ? std::optional(*list) : std::nullopt;
}

Status CheckDims(std::string_view name, const Shape& shape) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) return NegativeDim(name, shape, i);
  }
  return {};
}

Status CheckPlatform(const Platform& platform) {
  if (platform.vector_cores < 1 || platform.vector_cores > kMaxCores) {
    return BadCores(platform.vector_cores, kMaxCores);
  }
  if (platform.compiled_cores < 0 || platform.compiled_cores > kMaxCores) {
    return BadCores(platform.compiled_cores, kMaxCores);
  }
  if (platform.ub_bytes < 0 || platform.ub_bytes > kMaxUbBytes) return BadUb(platform.ub_bytes);
  return {};
}

Status HiddenOf(std::string_view name, const Shape& shape, std::int64_t* hidden) {
  const std::optional<std::int64_t> product =
      Product(std::span(shape).subspan(shape.empty() ? 0 : 1));
  if (!product) return ProductTooLarge(name, shape);
  *hidden = *product;
  return {};
}

std::int64_t TilingSizeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kInt16:
    case DType::kUInt16:
      return 2;
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kUInt32:
      return 4;
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kUInt64:
      return 8;
    default:
      return 0;
  }
}

std::optional<TensorDesc> ProbsOf(const CallSizes& sizes, Shape shape) {
  if (!sizes.probs) return std::nullopt;
  return TensorDesc{*sizes.probs, std::move(shape)};
}

}  // namespace moeperm::cann::host
