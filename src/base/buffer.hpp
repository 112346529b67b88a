// SPDX-License-Identifier: Apache-2.0
// Temporary memory: uninitialised, of trivial elements, with a status instead of an exception.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "base/messages.hpp"
#include "moeperm/status.hpp"

namespace moeperm {

template <class T>
class Buffer {
  static_assert(std::is_trivial_v<T>);

 public:
  // Replaces what it held; the elements are uninitialised.
  Status Allocate(std::int64_t count) {
    data_.reset();
    size_ = 0;
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const auto n = static_cast<std::uint64_t>(count);
    if (n > kMax / sizeof(T)) return msg::OutOfMemory(kMax);
    data_.reset(new (std::nothrow) T[n]);
    if (data_ == nullptr) return msg::OutOfMemory(n * sizeof(T));
    size_ = count;
    return {};
  }

  // Keeps the first `used` elements.
  Status Grow(std::int64_t used, std::int64_t count) {
    Buffer larger;
    if (Status status = larger.Allocate(count); !status.ok()) return status;
    for (std::int64_t i = 0; i < used; ++i) larger[i] = (*this)[i];
    *this = std::move(larger);
    return {};
  }

  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] T* data() { return data_.get(); }
  [[nodiscard]] const T* data() const { return data_.get(); }
  T& operator[](std::int64_t i) { return data_[static_cast<std::size_t>(i)]; }
  const T& operator[](std::int64_t i) const { return data_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::span<const T> span() const {
    return {data_.get(), static_cast<std::size_t>(size_)};
  }

 private:
  std::unique_ptr<T[]> data_;
  std::int64_t size_ = 0;
};

}  // namespace moeperm
