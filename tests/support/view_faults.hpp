// SPDX-License-Identifier: Apache-2.0
// What can be wrong with any view of a call: made for each of them from one valid call.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "moeperm/status.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm::test {

// A view as plain values.
struct PlainView {
  const void* data = nullptr;
  DType dtype = DType::kInvalid;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

// A view of a call, by name.
template <class Args>
struct ViewRef {
  std::string name;
  std::vector<int> free_dims = {};  // where one more element is another valid call
  bool free_dtype = false;          // where another floating-point dtype is
  bool output = false;
  std::function<PlainView(const Args&)> get = {};
  std::function<void(Args&, const PlainView&)> set = {};
};

template <class View>
struct UnwrapOptional {
  using Type = View;
};
template <class View>
struct UnwrapOptional<std::optional<View>> {
  using Type = View;
};

template <class Args, class Field>
ViewRef<Args> Ref(std::string name, Field Args::*field, std::vector<int> free_dims = {},
                  bool free_dtype = false) {
  using View = typename UnwrapOptional<Field>::Type;
  ViewRef<Args> ref{std::move(name), std::move(free_dims), free_dtype,
                    std::is_same_v<View, TensorView>};
  ref.get = [field](const Args& args) {
    const View& view = [&]() -> const View& {
      if constexpr (std::is_same_v<View, Field>) {
        return args.*field;
      } else {
        return *(args.*field);
      }
    }();
    return PlainView{view.data(),
                     view.dtype(),
                     {view.shape().begin(), view.shape().end()},
                     {view.strides().begin(), view.strides().end()}};
  };
  ref.set = [field](Args& args, const PlainView& plain) {
    auto* data = const_cast<void*>(plain.data);
    args.*field = plain.strides.empty() ? View(data, plain.dtype, plain.shape)
                                        : View(data, plain.dtype, plain.shape, plain.strides);
  };
  return ref;
}

struct ViewFault {
  std::string name;
  PlainView view;
  std::vector<std::string> says;
  bool shape_alone = false;  // seen without data
};

inline bool IsFloatDType(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

template <class Args>
std::vector<ViewFault> FaultsOf(const ViewRef<Args>& ref, const PlainView& valid) {
  std::vector<ViewFault> faults;
  const auto add = [&](std::string name, std::vector<std::string> says, const auto& spoil,
                       bool shape_alone = false) {
    PlainView view = valid;
    spoil(view);
    faults.push_back({std::move(name), view, std::move(says), shape_alone});
  };
  const auto reshape = [](std::vector<std::int64_t> shape) {
    return [shape](PlainView& view) {
      view.shape = shape;
      view.strides.clear();  // dense
    };
  };
  add("rank 3", {ref.name, "3 dimension"}, reshape({1, 1, 1}), true);
  add("rank 0", {ref.name, "0 dimension"}, reshape({}), true);
  add("rank 5", {ref.name, "more than 4 dimensions"}, reshape({1, 1, 1, 1, 1}), true);
  add(
      "no dtype", {ref.name, "no dtype"}, [](PlainView& v) { v.dtype = DType::kInvalid; }, true);
  add(
      "a dtype that is none", {ref.name, "77"}, [](PlainView& v) { v.dtype = DType{77}; }, true);
  add(
      "a dtype of another kind", {ref.name, IsFloatDType(valid.dtype) ? "int32" : "float32"},
      [](PlainView& v) { v.dtype = IsFloatDType(v.dtype) ? DType::kInt32 : DType::kFloat32; },
      true);
  if (IsFloatDType(valid.dtype) && !ref.free_dtype) {
    add("another floating-point dtype", {"bfloat16", "float16"},
        [](PlainView& v) { v.dtype = DType::kBFloat16; });
  }
  add("no data", {ref.name, "null"}, [](PlainView& v) { v.data = nullptr; });
  if (SizeOf(valid.dtype) > 1) {
    add("between elements", {ref.name, "multiple"},
        [](PlainView& v) { v.data = static_cast<const char*>(v.data) + 1; });
  }
  for (std::size_t dim = 0; dim < valid.shape.size(); ++dim) {
    const std::string place = ".shape[" + std::to_string(dim) + "]";
    const auto resize = [&](std::int64_t size) {
      std::vector<std::int64_t> shape = valid.shape;
      shape[dim] = size;
      return reshape(shape);
    };
    add(ref.name + place + " = -3", {ref.name + place, "-3"}, resize(-3), true);
    const bool is_free = std::find(ref.free_dims.begin(), ref.free_dims.end(),
                                   static_cast<int>(dim)) != ref.free_dims.end();
    if (!is_free) {
      const std::int64_t size = valid.shape[dim] + 1;
      add(ref.name + place + " + 1", {std::to_string(size)}, resize(size));
    }
    for (const int bits : {31, 32, 61, 62}) {
      const std::int64_t size = std::int64_t{1} << bits;
      add(ref.name + place + " = 2^" + std::to_string(bits), {}, resize(size));
      if (ref.output) continue;
      add(ref.name + place + " expanded to 2^" + std::to_string(bits), {}, [&](PlainView& v) {
        v.shape[dim] = size;
        for (std::int64_t& stride : v.strides) stride = 0;
      });
    }
    add(
        ref.name + place + " of a far stride", {ref.name},
        [&](PlainView& v) { v.strides[dim] = INT64_MIN; }, true);
    if (ref.output) {
      add("over itself", {ref.name, "overlaps itself"}, [&](PlainView& v) { v.strides[dim] = 0; });
    }
  }
  return faults;
}

// Every view of `valid` with every fault, and every output over every other view: refused, for its
// arguments, with a message that says what and where.
template <class Args>
void CheckEveryView(const Args& valid, const std::vector<ViewRef<Args>>& refs,
                    const std::function<Status(const Args&)>& call,
                    const std::function<Status(const Args&)>& infer = {}) {
  ASSERT_EQ(call(valid).message(), "");
  const auto expect = [](const Status& status, const std::vector<std::string>& says) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.message();
    for (const std::string& part : says) {
      EXPECT_THAT(status.message(), testing::HasSubstr(part));
    }
  };
  for (const ViewRef<Args>& ref : refs) {
    const PlainView view = ref.get(valid);
    for (const ViewFault& fault : FaultsOf(ref, view)) {
      SCOPED_TRACE(ref.name + ": " + fault.name);
      Args args = valid;
      ref.set(args, fault.view);
      expect(call(args), fault.says);
      if (infer && fault.shape_alone && !ref.output) expect(infer(args), fault.says);
    }
    for (const ViewRef<Args>& other : refs) {
      if (!ref.output || other.name == ref.name) continue;
      SCOPED_TRACE(ref.name + " over " + other.name);
      Args args = valid;
      PlainView moved = view;
      moved.data = other.get(valid).data;
      ref.set(args, moved);
      expect(call(args), {ref.name, other.name, "overlaps"});
    }
  }
}

}  // namespace moeperm::test
