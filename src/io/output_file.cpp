// SPDX-License-Identifier: Apache-2.0
#include "io/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>

#include "io/error.hpp"

namespace moeperm::io {
namespace {

// What RemoveTemporaryNow() removes. The tool writes one file at a time.
std::atomic<const char*> current_temporary = nullptr;

// A link is followed, so that the file it names is replaced and not the link.
std::string Target(const std::string& path) {
  struct stat info = {};
  if (path.empty()) Fail("the file to write has no name");
  if (::stat(path.c_str(), &info) != 0) {
    if (::lstat(path.c_str(), &info) == 0)
      Fail("{}: is a link to a file that does not exist", path);
    return path;
  }
  if (S_ISDIR(info.st_mode)) Fail("{}: is a directory, not a file", path);
  if (!S_ISREG(info.st_mode)) Fail("{}: exists and is not a regular file", path);
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr),
                                                        &std::free);
  return resolved ? std::string(resolved.get()) : path;
}

}  // namespace

OutputFile::OutputFile(const std::string& path, std::uint64_t size) : path_(Target(path)) {
  if (size > static_cast<std::uint64_t>(LLONG_MAX)) Fail("{}: {} bytes are too many", path_, size);
  temporary_ = path_ + ".XXXXXX";
  fd_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (fd_ < 0) FailErrno(path_, "creating a temporary file beside it", errno);
  current_temporary = temporary_.c_str();

  // mkostemp makes files private; an output has the rights any new file gets, or those of the file
  // it replaces.
  struct stat replaced = {};
  if (::stat(path_.c_str(), &replaced) == 0) {
    ::fchmod(fd_, replaced.st_mode & 07777);
  } else {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ::fchmod(fd_, 0666 & ~mask);
  }

  if (size > 0 && ::fallocate(fd_, 0, 0, static_cast<off_t>(size)) != 0) {
    const int error = errno;
    // EOPNOTSUPP and the like: this file system cannot reserve, and Write() will notice instead.
    if (error == ENOSPC || error == EFBIG || error == EDQUOT) {
      // The destructor does not run when a constructor throws.
      ::close(fd_);
      RemoveTemporaryNow();
      FailErrno(path_, fmt::format("reserving {} bytes", size), error);
    }
  }
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  RemoveTemporaryNow();
}

void OutputFile::Write(std::span<const std::byte> bytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 26;  // below what one call may take anywhere
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), kPiece));
    if (written < 0) {
      if (errno == EINTR) continue;
      FailErrno(path_, "writing", errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void OutputFile::Commit() {
  const int fd = fd_;
  if (::close(fd) != 0) {
    const int error = errno;
    fd_ = -1;
    RemoveTemporaryNow();
    FailErrno(path_, "closing the file", error);
  }
  fd_ = -1;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    RemoveTemporaryNow();
    FailErrno(path_, "renaming the temporary file", error);
  }
  current_temporary = nullptr;
}

void OutputFile::RemoveTemporaryNow() noexcept {
  if (const char* const path = current_temporary.exchange(nullptr)) ::unlink(path);
}

}  // namespace moeperm::io
