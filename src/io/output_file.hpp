// SPDX-License-Identifier: Apache-2.0
// A file that appears whole or not at all: written to a temporary beside the target, then renamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace moeperm::io {

class OutputFile {
 public:
  // Opens the temporary and reserves `size` bytes where the file system can, so that a disk that is
  // too small is known before the work. Throws Error, as all members do.
  OutputFile(const std::string& path, std::uint64_t size);
  ~OutputFile();  // removes the temporary unless Commit() has returned
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(std::span<const std::byte> bytes);
  void Commit();

  // Removes the temporary of the file being written, if there is one. Safe in a signal handler.
  static void RemoveTemporaryNow() noexcept;

 private:
  std::string path_;
  std::string temporary_;
  int fd_ = -1;
};

}  // namespace moeperm::io
