// SPDX-License-Identifier: Apache-2.0
// What an aclOpExecutor stands for: a call that phase 1 has checked, to be run once, or as often
// as wanted.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "aclnn/acl_meta.h"
#include "moeperm/status.hpp"

namespace moeperm::cann {

// What is put on the stream. It refers to addresses and metadata only, never to objects.
using Work = std::function<Status()>;

// Run by phase 2: reads the tensors' addresses as they are then, checks what only they can tell and
// makes the work. An error is the caller's (161002), kOutOfMemory ours; nothing is queued.
using Bind = std::function<Status(Work*)>;

struct Executor {
  Executor(Bind bind_call, std::uint64_t workspace)
      : bind(std::move(bind_call)), workspace_size(workspace) {}

  const Bind bind;
  const std::uint64_t workspace_size;
  std::atomic<bool> repeatable{false};
};

// 161001 where phase 1 has no place to put what it gives.
int CheckResults(std::string_view function, const std::uint64_t* workspace_size,
                 aclOpExecutor* const* executor);

// The end of phase 1: hands the call to the program.
int MakeExecutor(std::string_view function, Bind bind, std::uint64_t workspace_size,
                 std::uint64_t* workspace_size_out, aclOpExecutor** executor);

// All of phase 2. An executor that is not repeatable is gone afterwards, whatever the code; any
// operator's phase 2 runs any executor, as in the original.
int RunExecutor(std::string_view function, void* workspace, std::uint64_t workspace_size,
                aclOpExecutor* executor, aclrtStream stream) noexcept;

}  // namespace moeperm::cann
