// SPDX-License-Identifier: Apache-2.0
#include "cann/host/messages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>

namespace moeperm::cann::host {
namespace {

template <class... Args>
Status Invalid(fmt::format_string<Args...> text, Args&&... args) {
  return {Code::kInvalidArgument, fmt::format(text, std::forward<Args>(args)...)};
}

std::string Text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string_view Name(AttrType type) {
  switch (type) {
    case AttrType::kInt:
      return "an integer";
    case AttrType::kBool:
      return "a bool";
    case AttrType::kIntList:
      return "a list of integers";
  }
  return "?";
}

}  // namespace

Status MissingTensor(std::string_view name) { return Invalid("{} is missing", name); }

Status MissingAttr(std::string_view name) { return Invalid("attribute {} is missing", name); }

Status WrongAttrType(std::string_view name, AttrType expected) {
  return Invalid("attribute {} is not {}", name, Name(expected));
}

Status WrongRank(std::string_view name, const Shape& shape, std::string_view expected) {
  return Invalid("{} has shape {}, which has {} dimensions, but needs {}", name, Text(shape),
                 shape.size(), expected);
}

Status NegativeDim(std::string_view name, const Shape& shape, std::size_t dim) {
  return Invalid("{} has shape {}; dimension {} is negative ({})", name, Text(shape), dim,
                 shape[dim]);
}

Status NegativeAttr(std::string_view name, std::int64_t value) {
  return Invalid("attribute {} = {} is negative", name, value);
}

Status ZeroAttr(std::string_view name, std::string_view meaning) {
  return Invalid("attribute {} = 0, so {}", name, meaning);
}

Status ProductTooLarge(std::string_view name, const Shape& shape) {
  return Invalid("{} has shape {}, whose product does not fit 64 bits", name, Text(shape));
}

Status TopKTooLarge(std::int64_t top_k, std::int64_t limit, std::string_view how) {
  return Invalid("top_k = {} ({}) is above the limit of {}", top_k, how, limit);
}

Status WrongDim(std::string_view name, const Shape& shape, std::size_t dim, std::int64_t expected,
                std::string_view meaning) {
  return Invalid("{} has shape {}; dimension {} is {} but should be {} ({})", name, Text(shape),
                 dim, shape[dim], expected, meaning);
}

Status WrongHidden(std::string_view name, std::int64_t hidden, std::int64_t expected) {
  return Invalid("{} has rows of {} elements but tokens has rows of {}", name, hidden, expected);
}

Status Empty(std::string_view name, const Shape& shape, std::string_view meaning) {
  return Invalid("{} has shape {}, so there are no {}", name, Text(shape), meaning);
}

Status TooLong(std::string_view meaning, std::int64_t length, std::int64_t limit) {
  return Invalid("{} = {}, but it has to be below {}", meaning, length, limit);
}

Status UnknownDType(std::string_view name, DType dtype) {
  return Invalid("{} is of dtype {}, for which there is no tiling", name, Name(dtype));
}

Status DTypeNotFor(std::string_view name, DType dtype, std::string_view soc) {
  return Invalid("{} is of dtype {}, which {} does not have", name, Name(dtype), soc);
}

Status OtherDType(std::string_view name, DType dtype, std::string_view other, DType expected) {
  return Invalid("{} is of dtype {} but {} of dtype {}", name, Name(dtype), other, Name(expected));
}

Status HiddenNotFor310P(std::string_view name, std::int64_t hidden, std::int64_t multiple,
                        std::int64_t most) {
  return Invalid(
      "{} has rows of {} elements; on ascend310p they have to be a multiple of {} and at "
      "most {}",
      name, hidden, multiple, most);
}

Status PaddedMode() { return Invalid("padded_mode is true, which there is no kernel for"); }

Status BadRangeSize(std::size_t size) { return Invalid("range has {} entries, but needs 2", size); }

Status BadRange(std::int64_t start, std::int64_t end) {
  return Invalid("range is {} to {}, which ends before it starts or is outside the slots", start,
                 end);
}

Status BadCores(std::int64_t cores, std::int64_t limit) {
  return Invalid("the platform has {} vector cores; they have to be 1 to {}", cores, limit);
}

Status BadUb(std::int64_t bytes) {
  return Invalid("the platform has a unified buffer of {} bytes", bytes);
}

Status FieldTooLarge(std::string_view field) {
  return Invalid("the tiling's {} does not fit 64 bits; a dimension is too large", field);
}

}  // namespace moeperm::cann::host
