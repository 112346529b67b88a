// SPDX-License-Identifier: Apache-2.0
// Live handles. What programs hold is a number that is never used twice and never an address: a
// stale, foreign or wild one is told apart from a live one without being followed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace moeperm::cann {

// Never 0, never the same twice in a process. Multiples of 16, above 4 GiB where pointers allow, so
// that a small number passed by mistake is none.
inline void* NewHandle() {
  static std::atomic<std::uintptr_t> next{sizeof(void*) > 4 ? std::uintptr_t{1} << 40 : 0x1000};
  // No pointer is followed, so nothing is there to pessimise.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<void*>(next.fetch_add(16, std::memory_order_relaxed));
}

template <class T>
class Registry {
 public:
  void* Add(std::shared_ptr<T> object) {
    void* const handle = NewHandle();
    Add(handle, std::move(object));
    return handle;
  }
  // For an object that has to know its handle first; a new one.
  void Add(void* handle, std::shared_ptr<T> object) {
    const std::unique_lock lock(mutex_);
    live_.emplace(handle, std::move(object));
  }
  // Null where `handle` is not live.
  std::shared_ptr<T> Find(const void* handle) const {
    const std::shared_lock lock(mutex_);
    const auto at = live_.find(handle);
    return at == live_.end() ? nullptr : at->second;
  }
  // Finds and forgets it.
  std::shared_ptr<T> Take(const void* handle) {
    const std::unique_lock lock(mutex_);
    const auto at = live_.find(handle);
    if (at == live_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(at->second);
    live_.erase(at);
    return object;
  }
  std::vector<std::shared_ptr<T>> TakeAll() {
    const std::unique_lock lock(mutex_);
    std::vector<std::shared_ptr<T>> all;
    all.reserve(live_.size());
    for (auto& [handle, object] : live_) all.push_back(std::move(object));
    live_.clear();
    return all;
  }
  std::vector<std::shared_ptr<T>> All() const {
    const std::shared_lock lock(mutex_);
    std::vector<std::shared_ptr<T>> all;
    all.reserve(live_.size());
    for (const auto& [handle, object] : live_) all.push_back(object);
    return all;
  }
  std::size_t size() const {
    const std::shared_lock lock(mutex_);
    return live_.size();
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<T>> live_;
};

}  // namespace moeperm::cann
