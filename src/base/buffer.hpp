// SPDX-License-Identifier: Apache-2.0
// Memory of trivial elements, uninitialised, with a status instead of an exception.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "base/memory.hpp"
#include "base/messages.hpp"
#include "moeperm/status.hpp"

namespace moeperm {

template <class T>
class Buffer {
  static_assert(std::is_trivial_v<T>);

 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() { FreeMemory(data_, Bytes()); }

  // Replaces what it held; the elements are uninitialised.
  Status Allocate(std::int64_t count) {
    Buffer fresh;
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const auto n = static_cast<std::uint64_t>(count);
    if (n > kMax / sizeof(T)) return msg::OutOfMemory(kMax);
    fresh.data_ = static_cast<T*>(AllocateMemory(n * sizeof(T)));
    if (fresh.data_ == nullptr) return msg::OutOfMemory(n * sizeof(T));
    fresh.size_ = count;
    swap(fresh);
    return {};
  }

  // Keeps the first `used` elements.
  Status Grow(std::int64_t used, std::int64_t count) {
    Buffer larger;
    if (Status status = larger.Allocate(count); !status.ok()) return status;
    if (used > 0) std::memcpy(larger.data_, data_, static_cast<std::size_t>(used) * sizeof(T));
    swap(larger);
    return {};
  }

  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] const T* data() const { return data_; }
  // The analyzer cannot see that the status of a failed Allocate is never ok.
  // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.UndefReturn)
  T& operator[](std::int64_t i) { return data_[i]; }
  const T& operator[](std::int64_t i) const { return data_[i]; }
  [[nodiscard]] std::span<const T> span() const { return {data_, static_cast<std::size_t>(size_)}; }

 private:
  [[nodiscard]] std::size_t Bytes() const { return static_cast<std::size_t>(size_) * sizeof(T); }
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  T* data_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace moeperm
