// SPDX-License-Identifier: Apache-2.0
#include "base/memory.hpp"

#include <atomic>

// Sanitizers must see the blocks themselves: they get the system's allocator.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MOEPERM_SYSTEM_ALLOCATOR 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MOEPERM_SYSTEM_ALLOCATOR 1
#endif
#endif

#ifdef MOEPERM_SYSTEM_ALLOCATOR
#include <new>
#else
#include <tbb/scalable_allocator.h>
#endif

namespace moeperm {
namespace {

constexpr std::size_t kAlignment = 64;

std::atomic<std::int64_t> live_bytes{0};
std::atomic<std::int64_t> peak_bytes{0};

void Count(std::int64_t bytes) {
  const std::int64_t live = live_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

}  // namespace

void* AllocateMemory(std::size_t bytes) noexcept {
#ifdef MOEPERM_SYSTEM_ALLOCATOR
  void* const block = ::operator new(bytes, std::align_val_t(kAlignment), std::nothrow);
#else
  void* const block = scalable_aligned_malloc(bytes == 0 ? 1 : bytes, kAlignment);
#endif
  if (block != nullptr) Count(static_cast<std::int64_t>(bytes));
  return block;
}

void FreeMemory(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  Count(-static_cast<std::int64_t>(bytes));
#ifdef MOEPERM_SYSTEM_ALLOCATOR
  ::operator delete(block, std::align_val_t(kAlignment));
#else
  scalable_aligned_free(block);
#endif
}

MemoryUse GetMemoryUse() noexcept {
  return {live_bytes.load(std::memory_order_relaxed), peak_bytes.load(std::memory_order_relaxed)};
}

void ResetPeakMemoryUse() noexcept {
  peak_bytes.store(live_bytes.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace moeperm
