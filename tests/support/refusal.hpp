// SPDX-License-Identifier: Apache-2.0
// A row of a table of bad calls: what is broken, and what the refusal must say.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "moeperm/status.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm::test {

template <class Args>
struct Refusal {
  std::string name;  // also the name of the test
  void (*spoil)(Args& args);
  std::vector<std::string> says;  // the argument and the values, all of them
  Code code = Code::kInvalidArgument;
  bool infer_refuses = true;  // false: only data or outputs tell

  friend std::ostream& operator<<(std::ostream& stream, const Refusal& refusal) {
    return stream << refusal.name;
  }
};

inline void ExpectRefused(const Status& status, Code code, const std::vector<std::string>& says) {
  EXPECT_EQ(status.code(), code) << status.message();
  for (const std::string& part : says) {
    EXPECT_THAT(status.message(), testing::HasSubstr(part));
  }
}

struct NameOfRefusal {
  template <class Param>
  std::string operator()(const testing::TestParamInfo<Param>& info) const {
    return info.param.name;
  }
};

// The same memory with another shape, dense; or with strides.
template <bool kConst>
BasicTensorView<kConst> Reshaped(const BasicTensorView<kConst>& view,
                                 const std::vector<std::int64_t>& shape) {
  return BasicTensorView<kConst>(view.data(), view.dtype(), shape);
}
template <bool kConst>
BasicTensorView<kConst> Restrided(const BasicTensorView<kConst>& view,
                                  const std::vector<std::int64_t>& shape,
                                  const std::vector<std::int64_t>& strides) {
  return BasicTensorView<kConst>(view.data(), view.dtype(), shape, strides);
}
template <bool kConst>
BasicTensorView<kConst> Retyped(const BasicTensorView<kConst>& view, DType dtype) {
  return BasicTensorView<kConst>(view.data(), dtype, view.shape(), view.strides());
}
template <bool kConst>
BasicTensorView<kConst> AtAddress(const BasicTensorView<kConst>& view,
                                  typename BasicTensorView<kConst>::Void* data) {
  return BasicTensorView<kConst>(data, view.dtype(), view.shape(), view.strides());
}
template <bool kConst>
BasicTensorView<kConst> OneByteOn(const BasicTensorView<kConst>& view) {
  using Byte = std::conditional_t<kConst, const char, char>;
  return AtAddress(view, static_cast<Byte*>(view.data()) + 1);
}

}  // namespace moeperm::test
