// SPDX-License-Identifier: Apache-2.0
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "acl/acl.h"
#include "cann/runtime/enum_value.hpp"

namespace moeperm::cann {
namespace {

constexpr const char* kLevels[] = {"DEBUG", "INFO", "WARNING", "ERROR"};

bool Wanted(std::int64_t level) {
  const char* const print = std::getenv("ASCEND_SLOG_PRINT_TO_STDOUT");
  if (print == nullptr || std::strcmp(print, "1") != 0) return false;
  const char* const least = std::getenv("ASCEND_GLOBAL_LOG_LEVEL");
  const int threshold = least != nullptr && least[0] >= '0' && least[0] <= '9' && least[1] == '\0'
                            ? least[0] - '0'
                            : 3;
  return level >= threshold;
}

}  // namespace
}  // namespace moeperm::cann

extern "C" void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line,
                          const char* fmt, ...) {
  const std::int64_t level = moeperm::cann::EnumValue(logLevel);
  if (fmt == nullptr || level > ACL_ERROR || !moeperm::cann::Wanted(level)) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, fmt);
  const int written = std::vsnprintf(text, sizeof text, fmt, arguments);
  va_end(arguments);
  if (written < 0) return;
  std::fprintf(stderr, "[%s] %s:%u %s: %s\n", moeperm::cann::kLevels[level],
               file != nullptr ? file : "?", line, func != nullptr ? func : "?", text);
}
