// SPDX-License-Identifier: Apache-2.0
// A regular file, read-only in memory: pages are read when they are touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace moeperm::io {

class MappedFile {
 public:
  // Throws Error. What is not a regular file (a directory, a pipe, a device) is refused.
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace moeperm::io
