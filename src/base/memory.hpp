// SPDX-License-Identifier: Apache-2.0
// Where temporary memory and indices come from: the one place that knows the allocator.
#pragma once

#include <cstddef>
#include <cstdint>

namespace moeperm {

// Uninitialised, aligned to 64 bytes; nullptr where there is none. A call needs the same few blocks
// again and again: the allocator keeps them instead of returning their pages to the system, which
// would cost more than the work on them.
void* AllocateMemory(std::size_t bytes) noexcept;
void FreeMemory(void* block, std::size_t bytes) noexcept;

// Bytes handed out and not yet freed, now and at most since the last reset, over all threads.
struct MemoryUse {
  std::int64_t live = 0;
  std::int64_t peak = 0;
};
MemoryUse GetMemoryUse() noexcept;
void ResetPeakMemoryUse() noexcept;

}  // namespace moeperm
