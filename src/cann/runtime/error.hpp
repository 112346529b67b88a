// SPDX-License-Identifier: Apache-2.0
// Error texts and last errors of the calling thread, as aclGetRecentErrMsg and
// aclrtGetLastError give them.
#pragma once

#include <string>

namespace moeperm::cann {

// Puts `message` before the thread's accumulated text (newest first) and returns `code`. A code
// that is not of aclnn (x61xxx) also becomes the thread's last runtime error.
int Fail(int code, std::string message) noexcept;

// The code of the exception being handled, which left `function`: for a function's last catch.
int Caught(const char* function) noexcept;

// err_msg_mode 1: one text for the process instead of one a thread.
void ShareErrorTexts(bool shared) noexcept;

}  // namespace moeperm::cann
