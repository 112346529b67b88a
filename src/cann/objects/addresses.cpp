// SPDX-License-Identifier: Apache-2.0
// New addresses for the tensors of an executor. Executors refer to the tensors, so the address goes
// into the tensor and the index is not looked at.
#include <string_view>

#include "aclnn/opdev/op_errno.h"
#include "cann/objects/executor.hpp"
#include "cann/objects/messages.hpp"
#include "cann/objects/values.hpp"

namespace moeperm::cann {
namespace {

int CheckExecutor(std::string_view function, const aclOpExecutor* executor) {
  if (executor == nullptr)
    return object_msg::NullArgument(function, "executor", ACLNN_ERR_INNER_NULLPTR);
  if (Live<Executor>().Find(executor) == nullptr) {
    return object_msg::ExecutorConsumed(function, executor);
  }
  return ACLNN_SUCCESS;
}

// The address is stored before the executor is looked at.
int SetAddress(std::string_view function, const aclOpExecutor* executor, const aclTensor* tensor,
               void* address) {
  if (tensor == nullptr)
    return object_msg::NullArgument(function, "tensor", ACLNN_ERR_INNER_NULLPTR);
  const auto found = Tensors().Find(tensor);
  if (found == nullptr) {
    return object_msg::NotLive(function, "tensor", "aclTensor", tensor, ACLNN_ERR_PARAM_INVALID);
  }
  found->SetData(address);
  return CheckExecutor(function, executor);
}

int SetListAddress(std::string_view function, const aclOpExecutor* executor, std::size_t index,
                   const aclTensorList* tensors, void* address) {
  if (tensors == nullptr)
    return object_msg::NullArgument(function, "tensors", ACLNN_ERR_INNER_NULLPTR);
  const auto list = Live<TensorList>().Find(tensors);
  if (list == nullptr) {
    return object_msg::NotLive(function, "tensors", "aclTensorList", tensors,
                               ACLNN_ERR_PARAM_INVALID);
  }
  if (index >= list->elements.size()) {
    return object_msg::IndexOutOfList(function, index, list->elements.size());
  }
  if (list->elements[index] == nullptr) {
    return object_msg::NullArgument(function, "the list's tensor", ACLNN_ERR_INNER_NULLPTR);
  }
  list->elements[index]->SetData(address);
  return CheckExecutor(function, executor);
}

}  // namespace
}  // namespace moeperm::cann

using moeperm::cann::SetAddress;
using moeperm::cann::SetListAddress;

aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t, aclTensor* tensor,
                                  void* addr) {
  return SetAddress("aclSetInputTensorAddr", executor, tensor, addr);
}
aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t, aclTensor* tensor,
                                   void* addr) {
  return SetAddress("aclSetOutputTensorAddr", executor, tensor, addr);
}
aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t, aclTensor* tensor, void* addr) {
  return SetAddress("aclSetTensorAddr", executor, tensor, addr);
}
aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t,
                                         const size_t relativeIndex, aclTensorList* tensors,
                                         void* addr) {
  return SetListAddress("aclSetDynamicInputTensorAddr", executor, relativeIndex, tensors, addr);
}
aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t,
                                          const size_t relativeIndex, aclTensorList* tensors,
                                          void* addr) {
  return SetListAddress("aclSetDynamicOutputTensorAddr", executor, relativeIndex, tensors, addr);
}
aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t, const size_t relativeIndex,
                                    aclTensorList* tensors, void* addr) {
  return SetListAddress("aclSetDynamicTensorAddr", executor, relativeIndex, tensors, addr);
}

// The same under the names of older versions.
aclnnStatus AclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                  void* addr) {
  return aclSetInputTensorAddr(executor, index, tensor, addr);
}
aclnnStatus AclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                   void* addr) {
  return aclSetOutputTensorAddr(executor, index, tensor, addr);
}
aclnnStatus AclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                             void* addr) {
  return aclSetTensorAddr(executor, index, tensor, addr);
}
aclnnStatus AclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                         const size_t relativeIndex, aclTensorList* tensors,
                                         void* addr) {
  return aclSetDynamicInputTensorAddr(executor, irIndex, relativeIndex, tensors, addr);
}
aclnnStatus AclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                          const size_t relativeIndex, aclTensorList* tensors,
                                          void* addr) {
  return aclSetDynamicOutputTensorAddr(executor, irIndex, relativeIndex, tensors, addr);
}
aclnnStatus AclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                    const size_t relativeIndex, aclTensorList* tensors,
                                    void* addr) {
  return aclSetDynamicTensorAddr(executor, irIndex, relativeIndex, tensors, addr);
}

aclnnStatus aclDumpOpTensors(const char*, const char*, aclTensor**, size_t, size_t, aclrtStream) {
  return moeperm::cann::object_msg::NotOffered("aclDumpOpTensors");
}
