// SPDX-License-Identifier: Apache-2.0
// What an aclTensor stands for.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"
#include "cann/runtime/registry.hpp"

namespace moeperm::cann {

// Everything but the address. Nothing is checked when it is made: dims may be negative, the dtype
// may be none.
struct TensorMeta {
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;  // elements, as many as dims
  std::vector<std::int64_t> storage_dims;
  std::int64_t offset = 0;  // elements
  // An aclDataType and an aclFormat, or whatever number the program gave for one.
  std::int32_t dtype = ACL_DT_UNDEFINED;
  std::int32_t format = ACL_FORMAT_UNDEFINED;
};

// The metadata is replaced as a whole (aclInitTensor), so a call's snapshot is one pointer.
class Tensor {
 public:
  Tensor(std::shared_ptr<const TensorMeta> meta, void* data)
      : meta_(std::move(meta)), data_(data) {}

  [[nodiscard]] std::shared_ptr<const TensorMeta> meta() const {
    const std::lock_guard lock(mutex_);
    return meta_;
  }
  [[nodiscard]] void* data() const {
    const std::lock_guard lock(mutex_);
    return data_;
  }
  void SetData(void* data) {
    const std::lock_guard lock(mutex_);
    data_ = data;
  }
  void Reset(std::shared_ptr<const TensorMeta> meta, void* data) {
    const std::lock_guard lock(mutex_);
    meta_.swap(meta);
    data_ = data;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const TensorMeta> meta_;
  void* data_;
};

Registry<Tensor>& Tensors();

}  // namespace moeperm::cann
