// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "base/status_macros.hpp"
#include "moeperm/moeperm.h"

namespace moeperm::capi {

// Keeps the message of a failed call for moeperm_last_error of this thread.
moeperm_code Finish(const Status& status) noexcept;

const char* LastError() noexcept;

// A call of the C ABI: `body` is a callable returning Status.
template <class Body>
moeperm_code Call(Body&& body) noexcept {
  return Finish(Guarded(std::forward<Body>(body)));
}

}  // namespace moeperm::capi
