// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.hpp"

#include <csignal>
#include <string_view>

#include <unistd.h>

#include "cli/command.hpp"
#include "io/output_file.hpp"

namespace moeperm::cli {
namespace {

extern "C" void OnInterrupt(int signal) {
  io::OutputFile::RemoveTemporaryNow();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

extern "C" void OnBusError(int) {
  io::OutputFile::RemoveTemporaryNow();
  constexpr std::string_view kMessage =
      "moeperm: error: an input file became shorter, or could not be read, while it was in use\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(kBadInput);
}

}  // namespace

void InstallSignalHandlers() noexcept {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // A program started with one of them ignored (nohup) keeps it ignored.
    if (std::signal(signal, OnInterrupt) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  std::signal(SIGBUS, OnBusError);
  std::signal(SIGXFSZ, SIG_IGN);  // write() then says EFBIG
}

}  // namespace moeperm::cli
