// SPDX-License-Identifier: Apache-2.0
#include "moeperm/status.hpp"

namespace moeperm {

std::string_view Name(Code code) noexcept {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kIndexOutOfRange:
      return "INDEX_OUT_OF_RANGE";
    case Code::kOutOfMemory:
      return "OUT_OF_MEMORY";
    case Code::kInternal:
      return "INTERNAL";
  }
  return "UNKNOWN";
}

}  // namespace moeperm
