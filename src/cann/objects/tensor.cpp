// SPDX-License-Identifier: Apache-2.0
#include "cann/objects/tensor.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "aclnn/opdev/op_errno.h"
#include "cann/objects/messages.hpp"

namespace moeperm::cann {

// Never destroyed: programs destroy tensors in destructors of their own statics.
Registry<Tensor>& Tensors() {
  static auto& all = *new Registry<Tensor>;
  return all;
}

namespace {

std::vector<std::int64_t> RowMajor(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> strides(dims.size());
  std::uint64_t step = 1;  // unsigned: dims that overflow are found by the call that uses them
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = static_cast<std::int64_t>(step);
    step *= static_cast<std::uint64_t>(dims[i]);
  }
  return strides;
}

// Null where an array is missing.
std::shared_ptr<const TensorMeta> MakeMeta(const std::int64_t* dims, std::uint64_t rank,
                                           aclDataType dtype, const std::int64_t* strides,
                                           std::int64_t offset, aclFormat format,
                                           const std::int64_t* storage_dims,
                                           std::uint64_t storage_rank) {
  if ((dims == nullptr && rank > 0) || (storage_dims == nullptr && storage_rank > 0)) {
    return nullptr;
  }
  auto meta = std::make_shared<TensorMeta>();
  if (rank > 0) meta->dims.assign(dims, dims + rank);
  if (strides == nullptr) {
    meta->strides = RowMajor(meta->dims);
  } else if (rank > 0) {
    meta->strides.assign(strides, strides + rank);
  }
  if (storage_rank > 0) meta->storage_dims.assign(storage_dims, storage_dims + storage_rank);
  meta->offset = offset;
  meta->dtype = dtype;
  meta->format = format;
  return meta;
}

// The metadata of a live tensor; else a code, noted.
int FindMeta(std::string_view function, const aclTensor* tensor, bool outputs_given,
             std::shared_ptr<const TensorMeta>* meta) {
  if (tensor == nullptr) return object_msg::NullArgument(function, "tensor");
  if (!outputs_given) return object_msg::NullArgument(function, "an output");
  const std::shared_ptr<Tensor> found = Tensors().Find(tensor);
  if (found == nullptr) {
    return object_msg::NotLive(function, "tensor", "aclTensor", tensor, ACLNN_ERR_PARAM_INVALID);
  }
  *meta = found->meta();
  return ACLNN_SUCCESS;
}

int CopyOut(std::string_view function, const aclTensor* tensor,
            std::vector<std::int64_t> TensorMeta::*field, std::int64_t** values,
            std::uint64_t* size) {
  std::shared_ptr<const TensorMeta> meta;
  const int code = FindMeta(function, tensor, values != nullptr && size != nullptr, &meta);
  if (code != ACLNN_SUCCESS) return code;
  try {
    const std::vector<std::int64_t>& from = (*meta).*field;
    *values = new std::int64_t[from.size()];  // the caller's to delete[]
    std::copy(from.begin(), from.end(), *values);
    *size = from.size();
    return ACLNN_SUCCESS;
  } catch (...) {
    return object_msg::OutOfMemory(function);
  }
}

template <class Field, class T>
int GetField(std::string_view function, const aclTensor* tensor, Field TensorMeta::*field, T* out) {
  std::shared_ptr<const TensorMeta> meta;
  const int code = FindMeta(function, tensor, out != nullptr, &meta);
  if (code == ACLNN_SUCCESS) *out = static_cast<T>((*meta).*field);
  return code;
}

}  // namespace
}  // namespace moeperm::cann

using moeperm::cann::MakeMeta;
using moeperm::cann::Tensor;
using moeperm::cann::TensorMeta;
using moeperm::cann::Tensors;
namespace object_msg = moeperm::cann::object_msg;

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t* stride, int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) {
  try {
    auto meta = MakeMeta(viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                         storageDimsNum);
    if (meta == nullptr) {
      object_msg::CannotCreate("aclTensor", "viewDims or storageDims is a null pointer");
      return nullptr;
    }
    return static_cast<aclTensor*>(
        Tensors().Add(std::make_shared<Tensor>(std::move(meta), tensorData)));
  } catch (...) {
    object_msg::CannotCreate("aclTensor", "out of memory");
    return nullptr;
  }
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  if (tensor == nullptr || Tensors().Take(tensor) != nullptr) return ACLNN_SUCCESS;
  return object_msg::NotLive("aclDestroyTensor", "tensor", "aclTensor", tensor,
                             ACLNN_ERR_PARAM_INVALID);
}

aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum,
                          aclDataType dataType, const int64_t* stride, int64_t offset,
                          aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                          void* tensorData) {
  if (tensor == nullptr) return object_msg::NullArgument("aclInitTensor", "tensor");
  try {
    const std::shared_ptr<Tensor> found = Tensors().Find(tensor);
    if (found == nullptr) {
      return object_msg::NotLive("aclInitTensor", "tensor", "aclTensor", tensor,
                                 ACLNN_ERR_PARAM_INVALID);
    }
    auto meta = MakeMeta(viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                         storageDimsNum);
    if (meta == nullptr)
      return object_msg::NullArgument("aclInitTensor", "viewDims or storageDims");
    found->Reset(std::move(meta), tensorData);
    return ACLNN_SUCCESS;
  } catch (...) {
    return object_msg::OutOfMemory("aclInitTensor");
  }
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
  return moeperm::cann::CopyOut("aclGetViewShape", tensor, &TensorMeta::dims, viewDims,
                                viewDimsNum);
}

aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                               uint64_t* storageDimsNum) {
  return moeperm::cann::CopyOut("aclGetStorageShape", tensor, &TensorMeta::storage_dims,
                                storageDims, storageDimsNum);
}

aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                              uint64_t* stridesNum) {
  return moeperm::cann::CopyOut("aclGetViewStrides", tensor, &TensorMeta::strides, stridesValue,
                                stridesNum);
}

aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return moeperm::cann::GetField("aclGetViewOffset", tensor, &TensorMeta::offset, offset);
}

aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return moeperm::cann::GetField("aclGetFormat", tensor, &TensorMeta::format, format);
}

aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  return moeperm::cann::GetField("aclGetDataType", tensor, &TensorMeta::dtype, dataType);
}

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  if (tensor == nullptr) return object_msg::NullArgument("aclSetRawTensorAddr", "tensor");
  const std::shared_ptr<Tensor> found = Tensors().Find(tensor);
  if (found == nullptr) {
    return object_msg::NotLive("aclSetRawTensorAddr", "tensor", "aclTensor", tensor,
                               ACLNN_ERR_PARAM_INVALID);
  }
  found->SetData(addr);
  return ACLNN_SUCCESS;
}

aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  if (tensor == nullptr) return object_msg::NullArgument("aclGetRawTensorAddr", "tensor");
  if (addr == nullptr) return object_msg::NullArgument("aclGetRawTensorAddr", "addr");
  const std::shared_ptr<Tensor> found = Tensors().Find(tensor);
  if (found == nullptr) {
    return object_msg::NotLive("aclGetRawTensorAddr", "tensor", "aclTensor", tensor,
                               ACLNN_ERR_PARAM_INVALID);
  }
  *addr = found->data();
  return ACLNN_SUCCESS;
}
