// SPDX-License-Identifier: Apache-2.0
// What the io layer throws. The text is for the person who named the file.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace moeperm::io {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class... Args>
[[noreturn]] void Fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

// "FILE: doing this failed: No space left on device"
[[noreturn]] void FailErrno(std::string_view path, std::string_view doing, int error);

// Text out of a file, fit for a message: quoted, control characters escaped, long ones shortened.
std::string Quote(std::string_view text);

}  // namespace moeperm::io
