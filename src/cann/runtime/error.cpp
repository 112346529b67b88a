// SPDX-License-Identifier: Apache-2.0
#include "cann/runtime/error.hpp"

namespace moeperm::cann {

int Fail(int code, std::string) noexcept { return code; }

}  // namespace moeperm::cann
