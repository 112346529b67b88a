// SPDX-License-Identifier: Apache-2.0
#include "cann/objects/executor.hpp"

#include <utility>

#include "aclnn/opdev/op_errno.h"
#include "cann/objects/messages.hpp"
#include "cann/objects/values.hpp"
#include "cann/runtime/stream.hpp"

namespace moeperm::cann {

int CheckResults(std::string_view function, const std::uint64_t* workspace_size,
                 aclOpExecutor* const* executor) {
  if (workspace_size == nullptr) return object_msg::NullArgument(function, "workspaceSize");
  if (executor == nullptr) return object_msg::NullArgument(function, "executor");
  return 0;
}

int MakeExecutor(std::string_view function, Bind bind, std::uint64_t workspace_size,
                 std::uint64_t* workspace_size_out, aclOpExecutor** executor) {
  if (const int code = CheckResults(function, workspace_size_out, executor); code != 0) return code;
  *executor = static_cast<aclOpExecutor*>(
      Live<Executor>().Add(std::make_shared<Executor>(std::move(bind), workspace_size)));
  *workspace_size_out = workspace_size;
  return ACLNN_SUCCESS;
}

int RunExecutor(std::string_view function, void* workspace, std::uint64_t workspace_size,
                aclOpExecutor* executor, aclrtStream stream) noexcept try {
  if (executor == nullptr) return object_msg::NullArgument(function, "executor");
  std::shared_ptr<Executor> call = Live<Executor>().Find(executor);
  // Of two threads with one executor, the one that takes it runs it.
  if (call != nullptr && !call->repeatable) call = Live<Executor>().Take(executor);
  if (call == nullptr) return object_msg::ExecutorConsumed(function, executor);
  if (workspace_size > 0 && workspace == nullptr) {
    return object_msg::NullWorkspace(function, workspace_size);
  }
  if (workspace_size < call->workspace_size) {
    return object_msg::WorkspaceTooSmall(function, workspace_size, call->workspace_size);
  }
  Work work;
  if (const Status status = call->bind(&work); !status.ok()) {
    return object_msg::Refused(
        function, status.message(),
        status.code() == Code::kOutOfMemory ? ACLNN_ERR_INNER : ACLNN_ERR_PARAM_INVALID);
  }
  const int code = Enqueue(stream, std::move(work));
  return code == ACL_SUCCESS ? ACLNN_SUCCESS : object_msg::StreamRefused(function, code);
} catch (...) {
  return object_msg::OutOfMemory(function);
}

}  // namespace moeperm::cann

namespace cann = moeperm::cann;

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  constexpr std::string_view kFunction = "aclSetAclOpExecutorRepeatable";
  if (executor == nullptr) {
    return cann::object_msg::NullArgument(kFunction, "executor", ACLNN_ERR_INNER_NULLPTR);
  }
  const auto found = cann::Live<cann::Executor>().Find(executor);
  if (found == nullptr) return cann::object_msg::ExecutorConsumed(kFunction, executor);
  found->repeatable = true;
  return ACLNN_SUCCESS;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  constexpr std::string_view kFunction = "aclDestroyAclOpExecutor";
  if (executor == nullptr) {
    return cann::object_msg::NullArgument(kFunction, "executor", ACLNN_ERR_INNER_NULLPTR);
  }
  if (cann::Live<cann::Executor>().Take(executor) == nullptr) {
    return cann::object_msg::ExecutorConsumed(kFunction, executor);
  }
  return ACLNN_SUCCESS;
}
