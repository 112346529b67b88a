// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace moeperm::cli {

// Ends that come from outside: an interrupt leaves no half-written file behind; an input file that
// shrinks while it is mapped, and a file size limit, end in a message instead of a crash.
void InstallSignalHandlers() noexcept;

}  // namespace moeperm::cli
