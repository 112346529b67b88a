// SPDX-License-Identifier: Apache-2.0
// Address space without memory: pages that are only read, or not touched at all, cost nothing.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace moeperm::test {

class Mapping {
 public:
  explicit Mapping(std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(bytes)),
        data_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    EXPECT_NE(data_, MAP_FAILED) << "no address space for " << bytes << " bytes";
    if (data_ != MAP_FAILED) {
      // A huge page would turn one touched byte into 2 MiB of memory.
      madvise(data_, bytes_, MADV_NOHUGEPAGE);
    }
  }
  // For buffers that are read or written from end to end: fewer page faults.
  void AdviseHugePages() { madvise(data_, bytes_, MADV_HUGEPAGE); }
  ~Mapping() { munmap(data_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }
  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(bytes_); }

 private:
  std::size_t bytes_;
  void* data_;
};

}  // namespace moeperm::test
