// SPDX-License-Identifier: Apache-2.0
#include "capi/last_error.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace moeperm::capi {
namespace {

// Not a string: it must also be had when memory runs out, and while the thread's other objects
// are being destroyed.
thread_local std::array<char, 1024> last_error{};

}  // namespace

moeperm_code Finish(const Status& status) noexcept {
  if (status.ok()) return MOEPERM_OK;
  std::string_view text = status.message();
  if (text.empty()) text = "out of memory";  // there was none for the message
  const std::size_t size = std::min(text.size(), last_error.size() - 1);
  std::copy_n(text.begin(), size, last_error.begin());
  last_error[size] = '\0';
  return static_cast<moeperm_code>(status.code());
}

const char* LastError() noexcept { return last_error.data(); }

}  // namespace moeperm::capi
