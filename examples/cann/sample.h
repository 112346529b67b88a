// SPDX-License-Identifier: Apache-2.0
// What the sample programs share: checked calls, and tensors on the device.
#ifndef SAMPLE_H_
#define SAMPLE_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

// Ends the program where a call of acl or aclnn fails, and says why.
#define CHECK(call)                                                                      \
  do {                                                                                   \
    const int code_ = static_cast<int>(call);                                            \
    if (code_ != 0) {                                                                    \
      const char* text_ = aclGetRecentErrMsg();                                          \
      std::fprintf(stderr, "%s:%d: %s gives %d\n%s\n", __FILE__, __LINE__, #call, code_, \
                   text_ == nullptr ? "" : text_);                                       \
      std::exit(EXIT_FAILURE);                                                           \
    }                                                                                    \
  } while (0)

// A dense tensor and its memory on the device.
template <class T>
class DeviceTensor {
 public:
  DeviceTensor(const std::vector<int64_t>& shape, aclDataType dtype, const std::vector<T>& values)
      : size_(values.size() * sizeof(T)), data_(nullptr) {
    CHECK(aclrtMalloc(&data_, size_, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemcpy(data_, size_, values.data(), size_, ACL_MEMCPY_HOST_TO_DEVICE));
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    tensor_ = aclCreateTensor(shape.data(), shape.size(), dtype, strides.data(), 0, ACL_FORMAT_ND,
                              shape.data(), shape.size(), data_);
    if (tensor_ == nullptr) {
      std::fprintf(stderr, "aclCreateTensor gives no tensor\n");
      std::exit(EXIT_FAILURE);
    }
  }
  ~DeviceTensor() {
    aclDestroyTensor(tensor_);
    aclrtFree(data_);
  }
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;

  aclTensor* get() const { return tensor_; }

  std::vector<T> ToHost() const {
    std::vector<T> values(size_ / sizeof(T));
    CHECK(aclrtMemcpy(values.data(), size_, data_, size_, ACL_MEMCPY_DEVICE_TO_HOST));
    return values;
  }

 private:
  size_t size_;
  void* data_;
  aclTensor* tensor_;
};

// The second phase of an operator: memory for its work, its launch, the wait for its end.
typedef aclnnStatus (*SecondPhase)(void*, uint64_t, aclOpExecutor*, aclrtStream);

inline void RunAndWait(SecondPhase phase, uint64_t workspace_size, aclOpExecutor* executor,
                       aclrtStream stream) {
  void* workspace = nullptr;
  if (workspace_size > 0) {
    CHECK(aclrtMalloc(&workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  CHECK(phase(workspace, workspace_size, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));
  if (workspace != nullptr) CHECK(aclrtFree(workspace));
}

template <class T>
void Print(const char* name, const std::vector<T>& values, size_t columns) {
  std::printf("%s\n", name);
  for (size_t i = 0; i < values.size(); ++i) {
    std::printf("%6g%s", static_cast<double>(values[i]), (i + 1) % columns == 0 ? "\n" : " ");
  }
}

// Whether `got` is `want`; where not, says where first.
template <class T>
bool Same(const char* name, const std::vector<T>& got, const std::vector<T>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (got.size() != want.size() || got[i] != want[i]) {
      std::printf("WRONG: %s, element %zu: %g instead of %g\n", name, i,
                  static_cast<double>(got[i]), static_cast<double>(want[i]));
      return false;
    }
  }
  std::printf("%s: %zu values, as expected\n", name, want.size());
  return true;
}

#endif
