// SPDX-License-Identifier: Apache-2.0
// The result of a call: a code and, unless it is kOk, a message for a person.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "moeperm/export.h"

namespace moeperm {

// The values are part of the C ABI (`moeperm_code`); they never change meaning.
enum class Code : std::int32_t {
  kOk = 0,
  kInvalidArgument = 1,  // a shape, dtype, stride, count or option that cannot be right
  kIndexOutOfRange = 2,  // an index value inside a tensor points nowhere
  kOutOfMemory = 3,      // temporary memory could not be allocated
  kInternal = 4,         // a defect of this library; please report it
};

// "OK", "INVALID_ARGUMENT", ...
MOEPERM_EXPORT std::string_view Name(Code code) noexcept;

class [[nodiscard]] Status {
 public:
  Status() noexcept = default;  // kOk
  Status(Code code, std::string message) noexcept : code_(code), message_(std::move(message)) {}

  [[nodiscard]] bool ok() const noexcept { return code_ == Code::kOk; }
  [[nodiscard]] Code code() const noexcept { return code_; }
  // Names the argument, the place and the value, for instance
  // "sorted_indices[17] = 9 but there are 8 permuted rows". Empty when ok().
  [[nodiscard]] const std::string& message() const noexcept { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

}  // namespace moeperm
