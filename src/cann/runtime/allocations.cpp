// SPDX-License-Identifier: Apache-2.0
#include "cann/runtime/allocations.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "cann/runtime/queue.hpp"

namespace moeperm::cann {
namespace {

constexpr std::size_t kAlignment = 512;
constexpr std::size_t kHugePage = std::size_t{1} << 21;

struct Freed {
  void* start;
  std::vector<std::pair<std::shared_ptr<Queue>, std::uint64_t>> after;
};

struct Table {
  std::shared_mutex mutex;
  std::map<std::uintptr_t, Allocation> live;
  std::size_t bytes = 0;
  std::vector<Freed> freed;
};
Table& GetTable() {
  static Table* const table = new Table;
  return *table;
}
std::atomic<bool> any_freed = false;

std::uintptr_t Number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

bool Done(const Freed& freed) {
  return std::all_of(freed.after.begin(), freed.after.end(),
                     [](const auto& one) { return one.first->done() >= one.second; });
}

}  // namespace

std::size_t TotalMemory() noexcept {
  static const std::size_t total = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                                   static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return total;
}

std::size_t FreeBytes() noexcept {
  Table& table = GetTable();
  const std::shared_lock lock(table.mutex);
  return TotalMemory() - std::min(table.bytes, TotalMemory());
}

void* Allocate(std::size_t size, std::size_t slack, int device) {
  ReleaseFreed();
  if (size > TotalMemory()) return nullptr;
  Allocation made;
  made.bytes = (size + 31) / 32 * 32 + slack;
  made.device = device;
  Table& table = GetTable();
  {
    const std::unique_lock lock(table.mutex);
    if (made.bytes > TotalMemory() - std::min(table.bytes, TotalMemory())) return nullptr;
    table.bytes += made.bytes;
  }
  // Large blocks come in whole large pages: the first touch then costs a fraction.
  const std::size_t alignment = made.bytes >= kHugePage ? kHugePage : kAlignment;
  const std::size_t whole = (made.bytes + alignment - 1) / alignment * alignment;
  made.start = std::aligned_alloc(alignment, whole);
  const std::unique_lock lock(table.mutex);
  if (made.start == nullptr) {
    table.bytes -= made.bytes;
    return nullptr;
  }
  if (alignment == kHugePage) (void)madvise(made.start, whole, MADV_HUGEPAGE);
  try {
    table.live.emplace(Number(made.start), made);
  } catch (...) {
    table.bytes -= made.bytes;
    std::free(made.start);
    throw;
  }
  return made.start;
}

bool Free(void* address, bool of_host) {
  ReleaseFreed();
  Table& table = GetTable();
  Freed freed{address, {}};
  if (Queue::Pending() > 0) freed.after = Queue::Busy();
  {
    const std::unique_lock lock(table.mutex);
    const auto at = table.live.find(Number(address));
    if (at == table.live.end() || (at->second.device == kHost) != of_host) return false;
    if (!freed.after.empty()) {
      table.freed.push_back(std::move(freed));
      any_freed = true;
      address = nullptr;
    }
    table.bytes -= at->second.bytes;
    table.live.erase(at);
  }
  std::free(address);
  return true;
}

void ReleaseFreed() {
  if (!any_freed) return;
  Table& table = GetTable();
  std::vector<Freed> ready;
  {
    const std::unique_lock lock(table.mutex);
    const auto keep = std::partition(table.freed.begin(), table.freed.end(),
                                     [](const Freed& freed) { return !Done(freed); });
    ready.assign(std::make_move_iterator(keep), std::make_move_iterator(table.freed.end()));
    table.freed.erase(keep, table.freed.end());
    any_freed = !table.freed.empty();
  }
  for (const Freed& freed : ready) std::free(freed.start);
}

Allocation FindAllocation(const void* address) {
  Table& table = GetTable();
  const std::shared_lock lock(table.mutex);
  auto after = table.live.upper_bound(Number(address));
  if (after == table.live.begin()) return {};
  const Allocation& found = std::prev(after)->second;
  return Number(address) - Number(found.start) < found.bytes ? found : Allocation{};
}

void ReleaseAll() {
  Table& table = GetTable();
  std::map<std::uintptr_t, Allocation> live;
  std::vector<Freed> freed;
  {
    const std::unique_lock lock(table.mutex);
    live.swap(table.live);
    freed.swap(table.freed);
    table.bytes = 0;
    any_freed = false;
  }
  for (const auto& [number, allocation] : live) std::free(allocation.start);
  for (const Freed& one : freed) std::free(one.start);
}

}  // namespace moeperm::cann
