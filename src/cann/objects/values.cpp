// SPDX-License-Identifier: Apache-2.0
#include "cann/objects/values.hpp"

#include <cstring>
#include <string_view>

#include "aclnn/opdev/op_errno.h"
#include "cann/objects/messages.hpp"

namespace moeperm::cann {
namespace {

// Bytes that a scalar's value has for sure: aclDataTypeSize says 8 of everything it does not know.
std::size_t ValueBytes(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT6_E3M2:
    case ACL_FLOAT6_E2M3:
    case ACL_FLOAT4_E2M1:
    case ACL_FLOAT4_E1M2:
      return 1;
    default:
      return dtype > ACL_FLOAT4_E1M2 || dtype < 0 ? 0 : aclDataTypeSize(dtype);
  }
}

template <class Handle, class T, class From>
Handle* CreateArray(std::string_view what, const From* value, std::uint64_t size) {
  try {
    if (value == nullptr && size > 0) {
      object_msg::CannotCreate(what, "value is a null pointer");
      return nullptr;
    }
    auto array = std::make_shared<Array<T>>();
    if (size > 0) array->values.assign(value, value + size);
    return static_cast<Handle*>(Live<Array<T>>().Add(std::move(array)));
  } catch (...) {
    object_msg::CannotCreate(what, "out of memory");
    return nullptr;
  }
}

template <class T>
int Destroy(std::string_view function, std::string_view what, const void* handle) {
  if (handle == nullptr || Live<T>().Take(handle) != nullptr) return ACLNN_SUCCESS;
  return object_msg::NotLive(function, "the argument", what, handle, ACLNN_ERR_PARAM_INVALID);
}

template <class T, class SizeOf>
int GetSize(std::string_view function, std::string_view what, const void* handle,
            std::uint64_t* size, SizeOf size_of) {
  if (handle == nullptr) return object_msg::NullArgument(function, what);
  if (size == nullptr) return object_msg::NullArgument(function, "size");
  const std::shared_ptr<T> found = Live<T>().Find(handle);
  if (found == nullptr) {
    return object_msg::NotLive(function, "the argument", what, handle, ACLNN_ERR_PARAM_INVALID);
  }
  *size = size_of(*found);
  return ACLNN_SUCCESS;
}

template <class T>
int GetArraySize(std::string_view function, std::string_view what, const void* handle,
                 std::uint64_t* size) {
  return GetSize<Array<T>>(function, what, handle, size,
                           [](const Array<T>& array) { return array.values.size(); });
}

template <class ListHandle, class T, class Handle>
ListHandle* CreateList(std::string_view what, const Handle* const* value, std::uint64_t size) {
  try {
    if (value == nullptr && size > 0) {
      object_msg::CannotCreate(what, "value is a null pointer");
      return nullptr;
    }
    auto list = std::make_shared<List<T>>();
    for (std::uint64_t i = 0; i < size; ++i) {
      auto element = value[i] == nullptr ? nullptr : Live<T>().Find(value[i]);
      if (value[i] != nullptr && element == nullptr) {
        object_msg::NotLive(what, "an element", "object", value[i], ACLNN_ERR_PARAM_INVALID);
        return nullptr;
      }
      list->handles.push_back(value[i]);
      list->elements.push_back(std::move(element));
    }
    return static_cast<ListHandle*>(Live<List<T>>().Add(std::move(list)));
  } catch (...) {
    object_msg::CannotCreate(what, "out of memory");
    return nullptr;
  }
}

// An element that was destroyed before its list is no error: it is gone, as asked.
template <class T>
int DestroyList(std::string_view function, std::string_view what, const void* handle) {
  if (handle == nullptr) return ACLNN_SUCCESS;
  const std::shared_ptr<List<T>> list = Live<List<T>>().Take(handle);
  if (list == nullptr) {
    return object_msg::NotLive(function, "the argument", what, handle, ACLNN_ERR_PARAM_INVALID);
  }
  for (const void* element : list->handles) Live<T>().Take(element);
  return ACLNN_SUCCESS;
}

template <class T>
int GetListSize(std::string_view function, std::string_view what, const void* handle,
                std::uint64_t* size) {
  return GetSize<List<T>>(function, what, handle, size,
                          [](const List<T>& list) { return list.elements.size(); });
}

}  // namespace
}  // namespace moeperm::cann

namespace cann = moeperm::cann;

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  if (value == nullptr) {
    cann::object_msg::CannotCreate("aclScalar", "value is a null pointer");
    return nullptr;
  }
  try {
    auto scalar = std::make_shared<cann::Scalar>();
    scalar->dtype = dataType;
    std::memcpy(scalar->bytes, value, cann::ValueBytes(dataType));
    return static_cast<aclScalar*>(cann::Live<cann::Scalar>().Add(std::move(scalar)));
  } catch (...) {
    cann::object_msg::CannotCreate("aclScalar", "out of memory");
    return nullptr;
  }
}

aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  return cann::Destroy<cann::Scalar>("aclDestroyScalar", "aclScalar", scalar);
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return cann::CreateArray<aclIntArray, std::int64_t>("aclIntArray", value, size);
}
aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  return cann::Destroy<cann::IntArray>("aclDestroyIntArray", "aclIntArray", array);
}
aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return cann::GetArraySize<std::int64_t>("aclGetIntArraySize", "aclIntArray", array, size);
}

aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  return cann::CreateArray<aclFloatArray, float>("aclFloatArray", value, size);
}
aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return cann::Destroy<cann::FloatArray>("aclDestroyFloatArray", "aclFloatArray", array);
}
aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return cann::GetArraySize<float>("aclGetFloatArraySize", "aclFloatArray", array, size);
}

aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  return cann::CreateArray<aclBoolArray, char>("aclBoolArray", value, size);
}
aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return cann::Destroy<cann::BoolArray>("aclDestroyBoolArray", "aclBoolArray", array);
}
aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return cann::GetArraySize<char>("aclGetBoolArraySize", "aclBoolArray", array, size);
}

aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  return cann::CreateList<aclTensorList, cann::Tensor>("aclTensorList", value, size);
}
aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  return cann::DestroyList<cann::Tensor>("aclDestroyTensorList", "aclTensorList", array);
}
aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size) {
  return cann::GetListSize<cann::Tensor>("aclGetTensorListSize", "aclTensorList", tensorList, size);
}

aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
  return cann::CreateList<aclScalarList, cann::Scalar>("aclScalarList", value, size);
}
aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  return cann::DestroyList<cann::Scalar>("aclDestroyScalarList", "aclScalarList", array);
}
aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList, uint64_t* size) {
  return cann::GetListSize<cann::Scalar>("aclGetScalarListSize", "aclScalarList", scalarList, size);
}
