// SPDX-License-Identifier: Apache-2.0
// The memory that programs hold: which addresses are live, of which kind, and how many bytes.
#pragma once

#include <cstddef>

namespace moeperm::cann {

constexpr int kHost = -1;

struct Allocation {
  void* start = nullptr;
  std::size_t bytes = 0;  // with the slack behind what was asked for
  int device = kHost;
};

// All physical memory; what of it is not handed out here.
std::size_t TotalMemory() noexcept;
std::size_t FreeBytes() noexcept;

// Uninitialised, aligned to 512 bytes, `slack` bytes longer than `size` rounded up to 32. Null
// where there is no memory for it.
void* Allocate(std::size_t size, std::size_t slack, int device);

// Forgets the allocation that starts at `address`, if it is of the host's (or of a device's) kind;
// false where there is none. Its pages go back once what streams hold now is done, so that queued
// work never meets memory that is another's.
bool Free(void* address, bool of_host);

// Pages whose turn it is. Cheap where there are none.
void ReleaseFreed();

// The live allocation that `address` lies in; start is null where there is none.
Allocation FindAllocation(const void* address);

// Everything; for when no stream is left.
void ReleaseAll();

}  // namespace moeperm::cann
