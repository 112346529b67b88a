// SPDX-License-Identifier: Apache-2.0
// Error texts and last errors of the calling thread, as aclGetRecentErrMsg and
// aclrtGetLastError give them.
#pragma once

#include <string>

namespace moeperm::cann {

// Puts `message` before the thread's accumulated text (newest first) and returns `code`.
int Fail(int code, std::string message) noexcept;

}  // namespace moeperm::cann
