// SPDX-License-Identifier: Apache-2.0
#include "io/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "io/error.hpp"

namespace moeperm::io {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a pipe nobody writes to must end in an error, not wait.
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) FailErrno(path_, "opening the file", errno);
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) FailErrno(path_, "looking at the file", errno);
  if (S_ISDIR(info.st_mode)) Fail("{}: is a directory, not a file", path_);
  if (!S_ISREG(info.st_mode)) Fail("{}: is not a regular file", path_);
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return;  // nothing to map; the format refuses it
  void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) FailErrno(path_, "mapping the file into memory", errno);
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (size_ != 0) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace moeperm::io
