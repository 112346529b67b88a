// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/isa.hpp"
#include "base/parallel.hpp"
#include "moeperm/context.hpp"

namespace moeperm {

struct Context::Impl {
  Status status;
  const Isa* isa = nullptr;        // set where status.ok()
  std::optional<ThreadPool> pool;  // set where status.ok()
};

}  // namespace moeperm
