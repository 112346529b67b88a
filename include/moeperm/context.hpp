// SPDX-License-Identifier: Apache-2.0
// How a call runs: the number of threads and the instruction set.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "moeperm/export.h"
#include "moeperm/status.hpp"

namespace moeperm {

struct ContextOptions {
  // Threads of a call, the calling one included. 0: the environment variable MOEPERM_NUM_THREADS,
  // or where that is not set, every processor the process may use.
  int num_threads = 0;
  // Instruction set by the name AvailableIsas() gives it ("AVX2"; upper or lower case).
  // Empty: the environment variable MOEPERM_ISA, or where that is not set, the best one here.
  std::string isa = {};
};

// Cheap to copy (copies share threads); may be used by many host threads at once. Neither the
// number of threads nor the instruction set changes a bit of any result.
class MOEPERM_EXPORT Context {
 public:
  // Never throws. What is wrong with the options or the environment variables is kept in
  // status(), which every operator called with this context returns.
  explicit Context(const ContextOptions& options = {}) noexcept;
  Context(const Context&) noexcept = default;
  Context& operator=(const Context&) noexcept = default;
  ~Context() = default;

  // The context of calls that name none: made on first use from the environment variables.
  static const Context& Default() noexcept;

  [[nodiscard]] const Status& status() const noexcept;
  [[nodiscard]] int num_threads() const noexcept;       // 0 unless status().ok()
  [[nodiscard]] std::string_view isa() const noexcept;  // empty unless status().ok()

  struct Impl;  // src/base/context.hpp
  [[nodiscard]] const Impl* impl() const noexcept { return impl_.get(); }

 private:
  std::shared_ptr<const Impl> impl_;
};

// Instruction sets this build has and this machine runs, best first.
MOEPERM_EXPORT std::vector<std::string> AvailableIsas();

// "0.1.0"
MOEPERM_EXPORT std::string_view Version() noexcept;

}  // namespace moeperm
