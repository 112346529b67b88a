// SPDX-License-Identifier: Apache-2.0
// Memory for measuring: page-aligned, huge pages where the system gives them, touched before use.
// The roofs and the operators run on the same kind of memory.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <utility>

namespace moeperm::bench {

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes) : size_(bytes) {
    if (bytes == 0) return;
    void* const data =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    ::madvise(data, bytes, MADV_HUGEPAGE);  // a wish: measuring works without
#endif
    std::memset(data, 0, bytes);
    data_ = static_cast<std::byte*>(data);
  }
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace moeperm::bench
