// SPDX-License-Identifier: Apache-2.0
// Tensors, scalars, arrays, lists, executors: what is kept, what is given back, and what handles
// that are none get.
#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "door.hpp"

namespace moeperm::test {
namespace {

using testing::ElementsAre;

constexpr int kNull = ACLNN_ERR_PARAM_NULLPTR;
constexpr int kInvalid = ACLNN_ERR_PARAM_INVALID;
using Getter = aclnnStatus (*)(const aclTensor*, std::int64_t**, std::uint64_t*);

std::vector<std::int64_t> Values(Getter getter, const aclTensor* tensor) {
  std::int64_t* values = nullptr;
  std::uint64_t size = 0;
  EXPECT_EQ(getter(tensor, &values, &size), 0);
  const std::unique_ptr<std::int64_t[]> owned(values);
  return {values, values + size};
}

TEST(CannTensor, KeepsWhatItIsGiven) {
  std::vector<std::int64_t> dims = {2, 3};
  std::vector<std::int64_t> strides = {1, 2};
  std::vector<std::int64_t> storage = {40};
  int data = 0;
  aclTensor* const tensor = aclCreateTensor(dims.data(), 2, ACL_INT32, strides.data(), 5,
                                            ACL_FORMAT_NCL, storage.data(), 1, &data);
  dims = {7, 7};  // copied: nothing of this is seen
  strides = {7, 7};
  storage = {7};
  EXPECT_THAT(Values(aclGetViewShape, tensor), ElementsAre(2, 3));
  EXPECT_THAT(Values(aclGetViewStrides, tensor), ElementsAre(1, 2));
  EXPECT_THAT(Values(aclGetStorageShape, tensor), ElementsAre(40));
  std::int64_t offset = 0;
  EXPECT_EQ(aclGetViewOffset(tensor, &offset), 0);
  EXPECT_EQ(offset, 5);
  aclFormat format = ACL_FORMAT_ND;
  EXPECT_EQ(aclGetFormat(tensor, &format), 0);
  EXPECT_EQ(format, ACL_FORMAT_NCL);
  aclDataType dtype = ACL_FLOAT;
  EXPECT_EQ(aclGetDataType(tensor, &dtype), 0);
  EXPECT_EQ(dtype, ACL_INT32);
  void* address = nullptr;
  EXPECT_EQ(aclGetRawTensorAddr(tensor, &address), 0);
  EXPECT_EQ(address, &data);
  EXPECT_EQ(aclSetRawTensorAddr(tensor, nullptr), 0);
  EXPECT_EQ(aclGetRawTensorAddr(tensor, &address), 0);
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(aclDestroyTensor(tensor), 0);
}

TEST(CannTensor, RowMajorWithoutStrides) {
  const std::int64_t dims[] = {2, 3, 4};
  aclTensor* const tensor =
      aclCreateTensor(dims, 3, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 3, nullptr);
  EXPECT_THAT(Values(aclGetViewStrides, tensor), ElementsAre(12, 4, 1));
  const std::int64_t other[] = {6};
  EXPECT_EQ(aclInitTensor(tensor, other, 1, ACL_BF16, nullptr, 2, ACL_FORMAT_NC, other, 1, nullptr),
            0);
  EXPECT_THAT(Values(aclGetViewShape, tensor), ElementsAre(6));
  EXPECT_THAT(Values(aclGetViewStrides, tensor), ElementsAre(1));
  aclDataType dtype = ACL_FLOAT;
  EXPECT_EQ(aclGetDataType(tensor, &dtype), 0);
  EXPECT_EQ(dtype, ACL_BF16);
  EXPECT_EQ(aclDestroyTensor(tensor), 0);
}

TEST(CannTensor, WhatCannotBeMade) {
  const std::int64_t dims[] = {2};
  EXPECT_EQ(aclCreateTensor(nullptr, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 1, nullptr),
            nullptr);
  EXPECT_EQ(aclCreateTensor(dims, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 1, nullptr),
            nullptr);
  // No dimensions, negative ones and dtypes that are none are made.
  const std::int64_t negative[] = {-2, INT64_MAX, INT64_MIN};
  for (aclTensor* const tensor :
       {aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr),
        aclCreateTensor(negative, 3, ACL_DT_UNDEFINED, nullptr, INT64_MIN, ACL_FORMAT_UNDEFINED,
                        negative, 3, nullptr)}) {
    ASSERT_NE(tensor, nullptr);
    EXPECT_LE(Values(aclGetViewShape, tensor).size(), 3U);
    EXPECT_EQ(aclDestroyTensor(tensor), 0);
  }
}

// null, never made, a real address, destroyed.
TEST(CannTensor, HandlesThatAreNone) {
  const std::int64_t dims[] = {2};
  aclTensor* const stale =
      aclCreateTensor(dims, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 1, nullptr);
  EXPECT_EQ(aclDestroyTensor(stale), 0);
  int on_stack = 0;
  for (aclTensor* const handle :
       {static_cast<aclTensor*>(nullptr), reinterpret_cast<aclTensor*>(std::uintptr_t{8}),
        reinterpret_cast<aclTensor*>(&on_stack), stale}) {
    const int want = handle == nullptr ? kNull : kInvalid;
    std::int64_t* values = nullptr;
    std::uint64_t size = 0;
    std::int64_t offset = 0;
    aclFormat format = ACL_FORMAT_ND;
    aclDataType dtype = ACL_FLOAT;
    void* address = nullptr;
    EXPECT_EQ(aclGetViewShape(handle, &values, &size), want);
    EXPECT_EQ(aclGetViewStrides(handle, &values, &size), want);
    EXPECT_EQ(aclGetStorageShape(handle, &values, &size), want);
    EXPECT_EQ(aclGetViewOffset(handle, &offset), want);
    EXPECT_EQ(aclGetFormat(handle, &format), want);
    EXPECT_EQ(aclGetDataType(handle, &dtype), want);
    EXPECT_EQ(aclGetRawTensorAddr(handle, &address), want);
    EXPECT_EQ(aclSetRawTensorAddr(handle, &on_stack), want);
    EXPECT_EQ(
        aclInitTensor(handle, dims, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 1, nullptr),
        want);
    EXPECT_EQ(aclDestroyTensor(handle), handle == nullptr ? 0 : kInvalid);
  }
  AclTensor tensor(Spec{.dims = {2}});
  std::int64_t* values = nullptr;
  std::uint64_t size = 0;
  EXPECT_EQ(aclGetViewShape(tensor.get(), nullptr, &size), kNull);
  EXPECT_EQ(aclGetViewShape(tensor.get(), &values, nullptr), kNull);
  EXPECT_EQ(aclGetViewOffset(tensor.get(), nullptr), kNull);
  EXPECT_EQ(aclGetFormat(tensor.get(), nullptr), kNull);
  EXPECT_EQ(aclGetDataType(tensor.get(), nullptr), kNull);
  EXPECT_EQ(aclGetRawTensorAddr(tensor.get(), nullptr), kNull);
  EXPECT_EQ(aclInitTensor(tensor.get(), nullptr, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 1,
                          nullptr),
            kNull);
}

TEST(CannArrays, SizesAndHandles) {
  const std::int64_t ints[] = {1, 2, 3};
  const float floats[] = {1, 2};
  const bool bools[] = {true};
  std::uint64_t size = 99;
  aclIntArray* const int_array = aclCreateIntArray(ints, 3);
  EXPECT_EQ(aclGetIntArraySize(int_array, &size), 0);
  EXPECT_EQ(size, 3U);
  aclFloatArray* const float_array = aclCreateFloatArray(floats, 2);
  EXPECT_EQ(aclGetFloatArraySize(float_array, &size), 0);
  EXPECT_EQ(size, 2U);
  aclBoolArray* const bool_array = aclCreateBoolArray(bools, 1);
  EXPECT_EQ(aclGetBoolArraySize(bool_array, &size), 0);
  EXPECT_EQ(size, 1U);
  aclIntArray* const none = aclCreateIntArray(nullptr, 0);
  EXPECT_EQ(aclGetIntArraySize(none, &size), 0);
  EXPECT_EQ(size, 0U);
  EXPECT_EQ(aclCreateIntArray(nullptr, 1), nullptr);
  EXPECT_EQ(aclCreateFloatArray(nullptr, 1), nullptr);
  EXPECT_EQ(aclCreateBoolArray(nullptr, 1), nullptr);
  EXPECT_EQ(aclGetIntArraySize(nullptr, &size), kNull);
  EXPECT_EQ(aclGetIntArraySize(int_array, nullptr), kNull);
  // A handle of another kind is foreign.
  EXPECT_EQ(aclGetIntArraySize(reinterpret_cast<aclIntArray*>(float_array), &size), kInvalid);
  EXPECT_EQ(aclDestroyIntArray(none), 0);
  EXPECT_EQ(aclDestroyIntArray(int_array), 0);
  EXPECT_EQ(aclDestroyIntArray(int_array), kInvalid);
  EXPECT_EQ(aclDestroyFloatArray(float_array), 0);
  EXPECT_EQ(aclDestroyBoolArray(bool_array), 0);
  EXPECT_EQ(aclDestroyIntArray(nullptr), 0);
  EXPECT_EQ(aclDestroyFloatArray(nullptr), 0);
  EXPECT_EQ(aclDestroyBoolArray(nullptr), 0);
}

TEST(CannScalars, OfEveryDType) {
  EXPECT_EQ(aclCreateScalar(nullptr, ACL_FLOAT), nullptr);
  for (int dtype = -1; dtype <= 41; ++dtype) {
    // Exactly as many bytes as the dtype has: a sanitizer sees one more being read.
    std::vector<char> value(dtype >= 38 ? 1 : aclDataTypeSize(static_cast<aclDataType>(dtype)));
    value.reserve(1);
    if (value.data() == nullptr) continue;
    aclScalar* const scalar = aclCreateScalar(value.data(), static_cast<aclDataType>(dtype));
    ASSERT_NE(scalar, nullptr) << dtype;
    EXPECT_EQ(aclDestroyScalar(scalar), 0);
    EXPECT_EQ(aclDestroyScalar(scalar), kInvalid);
  }
  EXPECT_EQ(aclDestroyScalar(nullptr), 0);
}

TEST(CannLists, OwnTheirElements) {
  const std::int64_t dims[] = {2};
  const auto make = [&] {
    return aclCreateTensor(dims, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 1, nullptr);
  };
  const aclTensor* const tensors[] = {make(), nullptr, make()};
  aclTensorList* const list = aclCreateTensorList(tensors, 3);
  std::uint64_t size = 0;
  EXPECT_EQ(aclGetTensorListSize(list, &size), 0);
  EXPECT_EQ(size, 3U);
  EXPECT_EQ(aclDestroyTensorList(list), 0);
  EXPECT_EQ(aclDestroyTensorList(list), kInvalid);
  EXPECT_EQ(aclDestroyTensor(tensors[0]), kInvalid);  // went with the list
  EXPECT_EQ(aclDestroyTensor(tensors[2]), kInvalid);

  EXPECT_EQ(aclCreateTensorList(tensors, 3), nullptr);  // stale elements
  EXPECT_EQ(aclCreateTensorList(nullptr, 1), nullptr);
  aclTensorList* const none = aclCreateTensorList(nullptr, 0);
  EXPECT_EQ(aclGetTensorListSize(none, &size), 0);
  EXPECT_EQ(size, 0U);
  EXPECT_EQ(aclGetTensorListSize(none, nullptr), kNull);
  EXPECT_EQ(aclGetTensorListSize(nullptr, &size), kNull);
  EXPECT_EQ(aclDestroyTensorList(none), 0);
  EXPECT_EQ(aclDestroyTensorList(nullptr), 0);

  // An element may go first.
  const aclTensor* const early[] = {make()};
  aclTensorList* const second = aclCreateTensorList(early, 1);
  EXPECT_EQ(aclDestroyTensor(early[0]), 0);
  EXPECT_EQ(aclDestroyTensorList(second), 0);

  float value = 1;
  const aclScalar* const scalars[] = {aclCreateScalar(&value, ACL_FLOAT)};
  aclScalarList* const scalar_list = aclCreateScalarList(scalars, 1);
  EXPECT_EQ(aclGetScalarListSize(scalar_list, &size), 0);
  EXPECT_EQ(size, 1U);
  EXPECT_EQ(aclDestroyScalarList(scalar_list), 0);
  EXPECT_EQ(aclDestroyScalar(scalars[0]), kInvalid);
  EXPECT_EQ(aclDestroyScalarList(nullptr), 0);
}

TEST(CannExecutor, HandlesThatAreNone) {
  Stream stream;
  int on_stack = 0;
  auto* const foreign = reinterpret_cast<aclOpExecutor*>(&on_stack);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(nullptr), ACLNN_ERR_INNER_NULLPTR);
  EXPECT_EQ(aclDestroyAclOpExecutor(nullptr), ACLNN_ERR_INNER_NULLPTR);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(foreign), ACLNN_ERR_INNER);
  EXPECT_EQ(aclDestroyAclOpExecutor(foreign), ACLNN_ERR_INNER);
  EXPECT_EQ(aclnnMoeTokenPermuteWithRoutingMap(nullptr, 0, nullptr, stream.get()), kNull);
  EXPECT_EQ(aclnnMoeTokenPermuteWithRoutingMapGrad(nullptr, 0, nullptr, stream.get()), kNull);
  EXPECT_EQ(aclnnMoeTokenPermuteWithRoutingMapGrad(nullptr, 0, foreign, stream.get()),
            ACLNN_ERR_INNER);
  EXPECT_EQ(aclDumpOpTensors("", "", nullptr, 0, 0, nullptr), ACL_ERROR_API_NOT_SUPPORT);
}

// The address goes into the tensor before the executor is looked at.
TEST(CannExecutor, OrderOfSetTensorAddr) {
  int data = 0;
  const auto address_of = [](const AclTensor& tensor) {
    void* address = nullptr;
    EXPECT_EQ(aclGetRawTensorAddr(tensor.get(), &address), 0);
    return address;
  };
  auto* const foreign = reinterpret_cast<aclOpExecutor*>(&data);
  for (const auto set : {aclSetInputTensorAddr, aclSetOutputTensorAddr, aclSetTensorAddr,
                         AclSetInputTensorAddr, AclSetOutputTensorAddr, AclSetTensorAddr}) {
    const AclTensor tensor(Spec{.dims = {2}});
    EXPECT_EQ(set(nullptr, 0, nullptr, &data), ACLNN_ERR_INNER_NULLPTR);
    EXPECT_EQ(set(foreign, 0, nullptr, &data), ACLNN_ERR_INNER_NULLPTR);
    EXPECT_EQ(set(nullptr, 0, tensor.get(), &data), ACLNN_ERR_INNER_NULLPTR);
    EXPECT_EQ(address_of(tensor), &data);
    EXPECT_EQ(set(foreign, 9, tensor.get(), nullptr), ACLNN_ERR_INNER);
    EXPECT_EQ(address_of(tensor), nullptr);
  }
  for (const auto set :
       {aclSetDynamicInputTensorAddr, aclSetDynamicOutputTensorAddr, aclSetDynamicTensorAddr,
        AclSetDynamicInputTensorAddr, AclSetDynamicOutputTensorAddr, AclSetDynamicTensorAddr}) {
    const std::int64_t dims[] = {2};
    const aclTensor* const tensors[] = {
        aclCreateTensor(dims, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 1, nullptr), nullptr};
    aclTensorList* const list = aclCreateTensorList(tensors, 2);
    EXPECT_EQ(set(nullptr, 0, 0, nullptr, &data), ACLNN_ERR_INNER_NULLPTR);
    EXPECT_EQ(set(nullptr, 0, 2, list, &data), kInvalid);
    EXPECT_EQ(set(nullptr, 0, SIZE_MAX, list, &data), kInvalid);
    EXPECT_EQ(set(nullptr, 0, 1, list, &data), ACLNN_ERR_INNER_NULLPTR);
    EXPECT_EQ(set(nullptr, 0, 0, list, &data), ACLNN_ERR_INNER_NULLPTR);
    void* address = nullptr;
    EXPECT_EQ(aclGetRawTensorAddr(tensors[0], &address), 0);
    EXPECT_EQ(address, &data);
    EXPECT_EQ(set(foreign, 0, 0, list, nullptr), ACLNN_ERR_INNER);
    EXPECT_EQ(aclDestroyTensorList(list), 0);
  }
}

}  // namespace
}  // namespace moeperm::test
