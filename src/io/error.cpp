// SPDX-License-Identifier: Apache-2.0
#include "io/error.hpp"

#include <iterator>
#include <system_error>

namespace moeperm::io {

void FailErrno(std::string_view path, std::string_view doing, int error) {
  Fail("{}: {} failed: {}", path, doing, std::generic_category().message(error));
}

std::string Quote(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string quoted = "'";
  for (std::size_t i = 0; i < text.size() && i < kLongest; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7F) {
      fmt::format_to(std::back_inserter(quoted), "\\x{:02x}", byte);
    } else {
      quoted += text[i];
    }
  }
  quoted += text.size() > kLongest ? "...'" : "'";
  return quoted;
}

}  // namespace moeperm::io
