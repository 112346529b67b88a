// SPDX-License-Identifier: Apache-2.0
// The two ways errors travel inside the library: a Status handed on, and at the public functions,
// an exception (out of memory, or a defect) turned into one. No exception leaves the library.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include "base/messages.hpp"
#include "moeperm/status.hpp"

// Returns from the enclosing function unless `expr` is an OK status.
#define MOEPERM_TRY(expr)                                                  \
  do {                                                                     \
    if (::moeperm::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

namespace moeperm {

// Runs `body`, a callable returning Status, at the border of the library.
template <class Body>
Status Guarded(Body&& body) noexcept {
  try {
    try {
      return std::forward<Body>(body)();
    } catch (const std::bad_alloc&) {
      return {Code::kOutOfMemory, "out of memory"};
    } catch (const std::exception& error) {
      return msg::Internal(error.what());
    }
  } catch (...) {  // not even the message could be made
    return {Code::kOutOfMemory, {}};
  }
}

}  // namespace moeperm
