// SPDX-License-Identifier: Apache-2.0
// What scalars, arrays and lists of aclnn stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cann/objects/tensor.hpp"

namespace moeperm::cann {

struct Scalar {
  aclDataType dtype = ACL_DT_UNDEFINED;
  alignas(16) std::byte bytes[16] = {};
};

template <class T>
struct Array {
  std::vector<T> values;
};
using IntArray = Array<std::int64_t>;
using FloatArray = Array<float>;
using BoolArray = Array<char>;  // not vector<bool>: operators want an address

// A list owns its elements: their handles go with it. An element may be null.
template <class T>
struct List {
  std::vector<const void*> handles;
  std::vector<std::shared_ptr<T>> elements;
};
using TensorList = List<Tensor>;
using ScalarList = List<Scalar>;

// One registry a kind, never destroyed.
template <class T>
Registry<T>& Live() {
  static auto& all = *new Registry<T>;
  return all;
}
template <>
inline Registry<Tensor>& Live<Tensor>() {
  return Tensors();
}

}  // namespace moeperm::cann
