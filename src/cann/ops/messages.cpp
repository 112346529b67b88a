// SPDX-License-Identifier: Apache-2.0
#include "cann/ops/messages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "aclnn/opdev/op_errno.h"
#include "cann/host/op_def.hpp"
#include "cann/runtime/error.hpp"

namespace moeperm::cann::op_msg {
namespace {

template <class... Args>
int Invalid(std::string_view function, fmt::format_string<Args...> text, Args&&... args) {
  return Fail(ACLNN_ERR_PARAM_INVALID,
              fmt::format("{}: {}", function, fmt::format(text, std::forward<Args>(args)...)));
}

template <class... Args>
Status Refuse(fmt::format_string<Args...> text, Args&&... args) {
  return {Code::kInvalidArgument, fmt::format(text, std::forward<Args>(args)...)};
}

std::string List(Dims dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

std::string DTypeText(std::int32_t dtype) {
  return fmt::format("{} ({})", host::Name(static_cast<host::DType>(dtype)), dtype);
}

}  // namespace

int MissingTensor(std::string_view function, std::string_view argument) {
  return Fail(ACLNN_ERR_PARAM_NULLPTR, fmt::format("{}: {} is a null pointer", function, argument));
}
int MissingBecause(std::string_view function, std::string_view argument, std::string_view other) {
  return Fail(ACLNN_ERR_PARAM_NULLPTR,
              fmt::format("{}: {} is a null pointer but {} is given", function, argument, other));
}
int StaleHandle(std::string_view function, std::string_view argument, const void* handle,
                std::string_view what) {
  return Invalid(function, "{} = {} is no live {}", argument, handle, what);
}
int Unsupported(std::string_view function, std::string_view attribute, std::string_view value,
                std::string_view allowed) {
  return Invalid(function, "{} is {} but must be {}", attribute, value, allowed);
}
int NotPositive(std::string_view function, std::string_view attribute, std::int64_t value) {
  return Invalid(function, "{} is {} but must be above 0", attribute, value);
}
int Negative(std::string_view function, std::string_view attribute, std::int64_t value) {
  return Invalid(function, "{} is {} but must not be negative", attribute, value);
}
int WrongDType(std::string_view function, std::string_view argument, std::int32_t dtype,
               std::string_view allowed) {
  return Invalid(function, "{} has dtype {} but needs {}", argument, DTypeText(dtype), allowed);
}
int DTypesDiffer(std::string_view function, std::string_view argument, std::int32_t dtype,
                 std::string_view other, std::int32_t want) {
  return Invalid(function, "{} has dtype {} but {} has {}", argument, DTypeText(dtype), other,
                 DTypeText(want));
}
int MixedDTypes(std::string_view function, std::string_view argument, std::int32_t dtype,
                std::string_view tokens, std::int32_t tokens_dtype) {
  return Invalid(function,
                 "{} has dtype {} but {} has {}; they must be one, or float32 with bfloat16",
                 argument, DTypeText(dtype), tokens, DTypeText(tokens_dtype));
}
int WrongRank(std::string_view function, std::string_view argument, std::size_t rank,
              std::size_t want) {
  return Invalid(function, "{} has {} dimension(s) but needs {}", argument, rank, want);
}
int NegativeDim(std::string_view function, std::string_view argument, std::size_t dim,
                std::int64_t size) {
  return Invalid(function, "dimension {} of {} is {}, a negative size", dim, argument, size);
}
int DimDiffers(std::string_view function, std::string_view argument, std::size_t dim,
               std::int64_t size, std::int64_t want, std::string_view why) {
  return Invalid(function, "dimension {} of {} is {} but must be {} ({})", dim, argument, size,
                 want, why);
}
int AboveLimit(std::string_view function, std::string_view what, std::int64_t value,
               std::int64_t limit) {
  return Invalid(function, "{} is {} but may be at most {}", what, value, limit);
}
int TilingFailed(std::string_view function, std::string_view why, int code) {
  return Fail(code, fmt::format("{}: no tiling: {}", function, why));
}

Status Translated(const Status& status, Names names) {
  const std::string_view text = status.message();
  const auto in_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && in_word(text[end])) ++end;
    std::string_view word = text.substr(i, std::max<std::size_t>(end - i, 1));
    i += word.size();
    for (const auto& [library, own] : names) {
      if (word == library) {
        word = own;
        break;
      }
    }
    out += word;
  }
  return {status.code(), out};
}
Status OfWork(std::string_view function, const Status& status, Names names) {
  return {status.code(), fmt::format("{}: {}", function, Translated(status, names).message())};
}

Status NullData(std::string_view argument, Dims dims) {
  return Refuse("{} has shape {} but its address is null", argument, List(dims));
}
Status Misaligned(std::string_view argument, std::size_t bytes) {
  return Refuse("the address of {} is not a multiple of the {} bytes of an element", argument,
                bytes);
}
Status TooLarge(std::string_view argument, Dims dims) {
  return Refuse("{} of shape {} with its strides and offset spans more than 2^63 - 1 bytes",
                argument, List(dims));
}
Status BeyondStorage(std::string_view argument, Dims dims, Dims strides, std::int64_t offset,
                     Dims storage_dims) {
  return Refuse("{} of shape {}, strides {} and offset {} reaches outside its storage of shape {}",
                argument, List(dims), List(strides), offset, List(storage_dims));
}
Status DoesNotFit(std::string_view argument, Dims dims, std::int64_t rows, std::int64_t cols,
                  std::string_view why) {
  return Refuse("{} of shape {} does not hold {} x {} elements ({})", argument, List(dims), rows,
                cols, why);
}
Status ShapesDiffer(std::string_view argument, Dims dims, std::string_view other, Dims want) {
  return Refuse("{} has shape {} but {} has {}", argument, List(dims), other, List(want));
}
Status RankNeeded(std::string_view argument, std::size_t rank, std::string_view want) {
  return Refuse("{} has {} dimension(s) but needs {}", argument, rank, want);
}
Status NotAbove(std::string_view attribute, std::int64_t value, std::int64_t bound) {
  return Refuse("{} is {} but must be above {}", attribute, value, bound);
}
Status NotMultiple(std::string_view argument, std::int64_t size, std::string_view of,
                   std::int64_t number) {
  return Refuse("{} has {} element(s), no multiple of {} = {}", argument, size, of, number);
}
Status OutOfBounds(std::string_view argument, std::int64_t position, std::int64_t value,
                   std::int64_t limit, std::string_view what) {
  return {Code::kIndexOutOfRange,
          fmt::format("{}[{}] = {} but there are {} {}", argument, position, value, limit, what)};
}
Status WrongDim(std::string_view argument, std::size_t dim, std::int64_t size, std::int64_t want,
                std::string_view why) {
  return Refuse("dimension {} of {} is {} but must be {} ({})", dim, argument, size, want, why);
}
Status RowsNotMultiple(std::string_view argument, std::int64_t rows, std::int64_t tokens) {
  return Refuse("{} has {} rows, no multiple of tokensNum = {}", argument, rows, tokens);
}
Status TooShort(std::string_view argument, std::int64_t size, std::int64_t need,
                std::string_view why) {
  return Refuse("{} has {} element(s) but {} are needed ({})", argument, size, need, why);
}
Status TooLong(std::string_view argument, std::int64_t size, std::int64_t limit,
               std::string_view why) {
  return Refuse("{} has {} element(s) but may have at most {} ({})", argument, size, limit, why);
}

}  // namespace moeperm::cann::op_msg
