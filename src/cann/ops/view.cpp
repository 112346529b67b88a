// SPDX-License-Identifier: Apache-2.0
#include "cann/ops/view.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "base/status_macros.hpp"
#include "cann/ops/messages.hpp"

namespace moeperm::cann {
namespace {

struct Dim {
  std::int64_t size;
  std::int64_t stride;
};

DType LibraryDType(std::int32_t dtype) {
  switch (dtype) {
    case ACL_FLOAT:
      return DType::kFloat32;
    case ACL_FLOAT16:
      return DType::kFloat16;
    case ACL_BF16:
      return DType::kBFloat16;
    case ACL_INT8:
      return DType::kInt8;
    case ACL_BOOL:
      return DType::kBool;
    case ACL_INT32:
      return DType::kInt32;
    case ACL_INT64:
      return DType::kInt64;
    default:
      return DType::kInvalid;
  }
}

// Fewest dimensions that visit the elements in the same order; none for a single element.
std::vector<Dim> Merge(const View& view) {
  std::vector<Dim> merged;
  for (std::size_t i = 0; i < view.dims.size(); ++i) {
    const Dim dim = {view.dims[i], view.strides[i]};
    if (dim.size == 1) continue;
    // No overflow: both strides are in reach of the view, which fits in 63 bits.
    if (!merged.empty() && merged.back().stride == dim.stride * dim.size) {
      merged.back() = {merged.back().size * dim.size, dim.stride};
    } else {
      merged.push_back(dim);
    }
  }
  return merged;
}

// Sufficient, not necessary: each dimension steps over all that the smaller ones reach.
bool MayOverlapItself(const View& view) {
  std::vector<Dim> dims = Merge(view);
  std::sort(dims.begin(), dims.end(),
            [](const Dim& a, const Dim& b) { return std::abs(a.stride) < std::abs(b.stride); });
  std::int64_t reach = 0;
  for (const Dim& dim : dims) {
    if (std::abs(dim.stride) <= reach) return true;
    reach += (dim.size - 1) * std::abs(dim.stride);
  }
  return false;
}

// visit(address, count, step in bytes) for runs of elements, in order.
template <class Visit>
void ForEachRun(const View& view, const Visit& visit) {
  if (view.elements == 0) return;
  std::vector<Dim> dims = Merge(view);
  const Dim inner = dims.empty() ? Dim{1, 1} : dims.back();
  if (!dims.empty()) dims.pop_back();
  const auto bytes = static_cast<std::int64_t>(view.element_bytes);
  std::vector<std::int64_t> at(dims.size(), 0);
  std::byte* address = view.data;
  for (;;) {
    visit(address, inner.size, inner.stride * bytes);
    std::size_t i = dims.size();
    for (; i-- > 0;) {
      address += dims[i].stride * bytes;
      if (++at[i] < dims[i].size) break;
      address -= dims[i].size * dims[i].stride * bytes;
      at[i] = 0;
    }
    if (i == static_cast<std::size_t>(-1)) return;
  }
}

std::int64_t Product(const std::vector<std::int64_t>& dims, std::size_t from) {
  std::int64_t product = 1;
  for (std::size_t i = from; i < dims.size(); ++i) product *= dims[i];
  return product;
}

bool Multiply(std::int64_t a, std::int64_t b, std::int64_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}

// Elements of the storage; the largest number where there are more, -1 where a size is negative.
std::int64_t StorageElements(const TensorMeta& meta) {
  std::int64_t elements = 1;
  bool overflow = false;
  for (const std::int64_t size : meta.storage_dims) {
    if (size < 0) return -1;
    if (size == 0) return 0;
    overflow = overflow || !Multiply(elements, size, &elements);
  }
  return overflow ? std::numeric_limits<std::int64_t>::max() : elements;
}

// First and last element of a view with elements, counted from the start of the storage.
bool Reach(const TensorMeta& meta, std::int64_t* elements, std::int64_t* low, std::int64_t* high) {
  *elements = 1;
  *low = *high = meta.offset;
  for (std::size_t i = 0; i < meta.dims.size(); ++i) {
    std::int64_t reach = 0;
    std::int64_t whole = 0;
    if (!Multiply(*elements, meta.dims[i], elements) ||
        (meta.dims[i] > 1 && !Multiply(meta.dims[i], meta.strides[i], &whole))) {
      return false;
    }
    if (meta.dims[i] > 1) reach = whole - meta.strides[i];
    std::int64_t* const bound = reach < 0 ? low : high;
    if (__builtin_add_overflow(*bound, reach, bound)) return false;
  }
  return true;
}

}  // namespace

View View::Slice(std::int64_t from, std::int64_t count) const {
  View part = *this;
  part.dims[0] = count;
  part.elements = count * Product(dims, 1);
  if (part.elements > 0) part.data += from * strides[0] * static_cast<std::int64_t>(element_bytes);
  return part;
}

Status Resolve(const TensorArg& arg, View* view) {
  const TensorMeta& meta = *arg.meta;
  view->dims = meta.dims;
  view->strides = meta.strides;
  view->dtype = LibraryDType(meta.dtype);
  view->element_bytes = aclDataTypeSize(static_cast<aclDataType>(meta.dtype));
  view->elements = 0;
  view->data = nullptr;
  view->begin = view->end = 0;
  if (arg.empty()) return {};
  const auto bytes = static_cast<std::int64_t>(view->element_bytes);
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::int64_t size = 0;
  if (!Reach(meta, &view->elements, &low, &high) || !Multiply(view->elements, bytes, &size) ||
      !Multiply(high, bytes, &size) || high == std::numeric_limits<std::int64_t>::max() ||
      !Multiply(high + 1, bytes, &size)) {
    return op_msg::TooLarge(arg.name, meta.dims);
  }
  // Without storage dims nothing is known of the storage but where it starts.
  if (low < 0 || (!meta.storage_dims.empty() && high >= StorageElements(meta))) {
    return op_msg::BeyondStorage(arg.name, meta.dims, meta.strides, meta.offset, meta.storage_dims);
  }
  auto* const storage = static_cast<std::byte*>(arg.tensor->data());
  if (storage == nullptr) return op_msg::NullData(arg.name, meta.dims);
  const auto address = reinterpret_cast<std::uintptr_t>(storage);
  if (address % view->element_bytes != 0) return op_msg::Misaligned(arg.name, view->element_bytes);
  if (static_cast<std::uintptr_t>(size) > std::numeric_limits<std::uintptr_t>::max() - address) {
    return op_msg::TooLarge(arg.name, meta.dims);
  }
  view->begin = address + static_cast<std::uintptr_t>(low * bytes);
  view->end = address + static_cast<std::uintptr_t>(size);
  view->data = storage + meta.offset * bytes;
  return {};
}

std::optional<TensorView> AsMatrix(const View& view, std::int64_t rows, std::int64_t cols) {
  const std::int64_t shape[] = {rows, cols};
  if (view.elements == 0) return TensorView(view.data, view.dtype, shape);
  const std::vector<Dim> dims = Merge(view);
  if (dims.size() <= 1) {
    const std::int64_t step = dims.empty() ? 1 : dims[0].stride;
    const std::int64_t strides[] = {rows == 1 ? 1 : step * cols, step};
    return TensorView(view.data, view.dtype, shape, strides);
  }
  if (dims.size() > 2 || dims[1].size != cols) return std::nullopt;
  const std::int64_t strides[] = {dims[0].stride, dims[1].stride};
  return TensorView(view.data, view.dtype, shape, strides);
}

ConstTensorView AsInput(const View& view) {
  return ConstTensorView(view.data, view.dtype, view.dims, view.strides);
}

ConstTensorView FirstOf(const ConstTensorView& column, std::int64_t count) {
  return ConstTensorView(column.data(), column.dtype(), std::span(&count, 1),
                         column.strides().first(1));
}

Status Reshaped::Load(ConstTensorView* matrix) {
  if (const std::optional<TensorView> in_place = AsMatrix(view_, rows_, cols_)) {
    *matrix = *in_place;
    return {};
  }
  MOEPERM_TRY(copy_.Allocate(view_.elements * static_cast<std::int64_t>(view_.element_bytes)));
  CopyDense(view_, copy_.data());
  const std::int64_t shape[] = {rows_, cols_};
  *matrix = ConstTensorView(copy_.data(), view_.dtype, shape);
  return {};
}

void FillZero(const View& view) {
  const std::size_t bytes = view.element_bytes;
  ForEachRun(view, [&](std::byte* at, std::int64_t count, std::int64_t step) {
    if (step == static_cast<std::int64_t>(bytes)) {
      std::memset(at, 0, static_cast<std::size_t>(count) * bytes);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) std::memset(at + i * step, 0, bytes);
  });
}

void CopyDense(const std::byte* from, const View& to) {
  const std::size_t bytes = to.element_bytes;
  ForEachRun(to, [&](std::byte* at, std::int64_t count, std::int64_t step) {
    for (std::int64_t i = 0; i < count; ++i) std::memcpy(at + i * step, from + i * bytes, bytes);
    from += static_cast<std::size_t>(count) * bytes;
  });
}

void CopyDense(const View& from, std::byte* to) {
  const std::size_t bytes = from.element_bytes;
  ForEachRun(from, [&](const std::byte* at, std::int64_t count, std::int64_t step) {
    for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * bytes, at + i * step, bytes);
    to += static_cast<std::size_t>(count) * bytes;
  });
}

bool Output::Fits(const View& view, std::int64_t rows, std::int64_t cols) {
  std::int64_t need = 0;
  if (!Multiply(rows, cols, &need)) return false;
  if (view.elements == need) return true;
  return !view.dims.empty() && view.dims[0] >= rows && view.elements > 0 &&
         view.elements / view.dims[0] == cols;
}

Output::Output(View view, std::int64_t rows, std::int64_t cols)
    : view_(std::move(view)), rows_(rows), cols_(cols) {
  if (view_.elements == rows * cols) {
    if (view_.elements == 0 || !MayOverlapItself(view_)) in_place_ = AsMatrix(view_, rows, cols);
  } else if (!MayOverlapItself(view_)) {
    in_place_ = AsMatrix(view_.Slice(0, rows), rows, cols);
    rest_ = view_.Slice(rows, view_.dims[0] - rows);
  }
}

void Output::AvoidOverlap(const View& other) {
  if (view_.begin < other.end && other.begin < view_.end) in_place_.reset();
}

Status Output::Begin(bool vector, TensorView* target) {
  TensorView matrix;
  if (in_place_) {
    matrix = *in_place_;
  } else {
    const std::int64_t bytes = view_.elements * static_cast<std::int64_t>(view_.element_bytes);
    MOEPERM_TRY(buffer_.Allocate(bytes));
    std::memset(buffer_.data(), 0, static_cast<std::size_t>(bytes));
    const std::int64_t shape[] = {rows_, cols_};
    matrix = TensorView(buffer_.data(), view_.dtype, shape);
  }
  *target = vector ? TensorView(matrix.data(), matrix.dtype(), matrix.shape().first(1),
                                matrix.strides().first(1))
                   : matrix;
  return {};
}

void Output::Finish() {
  if (!in_place_) {
    CopyDense(buffer_.data(), view_);
  } else if (rest_) {
    FillZero(*rest_);
  }
}

}  // namespace moeperm::cann
