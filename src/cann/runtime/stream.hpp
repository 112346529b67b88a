// SPDX-License-Identifier: Apache-2.0
// What the operators need of the runtime.
#pragma once

#include <cstdint>
#include <functional>

#include "cann/host/tiling.hpp"
#include "moeperm/status.hpp"

namespace moeperm::cann {

// Queues `work` behind what `stream` (an aclrtStream; null: the current context's default stream)
// holds, and returns an aclError at once. A status of `work` that is not ok is kept in the stream
// and returned once, as 507035 with its message, by the next call that synchronises with it.
int Enqueue(void* stream, std::function<Status()> work) noexcept;

// The SoC's platform, as the tiling sees it.
const host::Platform& CurrentPlatform() noexcept;

}  // namespace moeperm::cann
