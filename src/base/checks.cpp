// SPDX-License-Identifier: Apache-2.0
#include "base/checks.hpp"

#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <numeric>

#include "base/messages.hpp"
#include "base/status_macros.hpp"

namespace moeperm {
namespace {

struct KindTraits {
  std::string_view text;
  std::uint32_t dtypes;  // bit n: the dtype of value n
};

constexpr std::uint32_t Bit(DType dtype) { return 1U << static_cast<unsigned>(dtype); }

constexpr KindTraits Traits(Kind kind) {
  switch (kind) {
    case Kind::kFloat:
      return {"float32, float16 or bfloat16",
              Bit(DType::kFloat32) | Bit(DType::kFloat16) | Bit(DType::kBFloat16)};
    case Kind::kRoutingMap:
      return {"int8 or bool", Bit(DType::kInt8) | Bit(DType::kBool)};
    case Kind::kIndex:
      return {"int32 or int64", Bit(DType::kInt32) | Bit(DType::kInt64)};
    case Kind::kAny:
      return {"any dtype", 0xFE};  // every value but kInvalid
  }
  return {};
}

bool IsEmpty(const ConstTensorView& view) {
  for (const std::int64_t size : view.shape()) {
    if (size == 0) return true;
  }
  return false;
}

constexpr std::int64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

// Byte offsets of the first and last byte of a non-empty view from its data pointer; false where
// they do not fit in 63 bits.
bool ByteRange(const ConstTensorView& view, std::int64_t* low, std::int64_t* high) {
  const auto bytes = static_cast<std::int64_t>(SizeOf(view.dtype()));
  *low = 0;
  *high = bytes - 1;
  std::int64_t elements = bytes;
  for (int dim = 0; dim < view.rank(); ++dim) {
    std::int64_t reach = 0;
    if (!CheckedMul(elements, view.shape(dim), &elements) ||
        !CheckedMul(view.shape(dim) - 1, view.stride(dim), &reach) ||
        !CheckedMul(reach, bytes, &reach)) {
      return false;
    }
    std::int64_t* const end = reach < 0 ? low : high;
    if (__builtin_add_overflow(*end, reach, end)) return false;
  }
  std::int64_t span = 0;
  return !__builtin_sub_overflow(*high, *low, &span) && span < kMaxBytes;
}

// Whether two elements share an address, exactly, for rank 1 and 2: i * s0 = j * s1 has its
// smallest solution at i = s1 / g, j = s0 / g, g the greatest common divisor.
bool OverlapsItself(const ConstTensorView& view) {
  if (view.rank() == 0 || IsEmpty(view)) return false;
  const std::int64_t n0 = view.shape(0);
  const std::int64_t s0 = std::abs(view.stride(0));
  const std::int64_t n1 = view.rank() > 1 ? view.shape(1) : 1;
  const std::int64_t s1 = view.rank() > 1 ? std::abs(view.stride(1)) : 0;
  if (n0 > 1 && s0 == 0) return true;
  if (n1 > 1 && s1 == 0) return true;
  if (n0 == 1 || n1 == 1) return false;
  const std::int64_t divisor = std::gcd(s0, s1);
  return s1 / divisor < n0 && s0 / divisor < n1;
}

// The elements fill their address range, each with bytes of its own.
bool IsDense(const ConstTensorView& view) {
  if (OverlapsItself(view)) return false;
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::int64_t bytes = static_cast<std::int64_t>(SizeOf(view.dtype()));
  for (const std::int64_t size : view.shape()) bytes *= size;
  return ByteRange(view, &low, &high) && high - low + 1 == bytes;
}

}  // namespace

Status CheckShape(std::string_view name, const ConstTensorView& view, int rank, Kind kind) {
  if (view.rank() < 0) return msg::BadView(name);
  if (view.rank() == 0 && view.dtype() == DType::kInvalid && view.data() == nullptr) {
    return msg::Missing(name, "the view was never set");
  }
  if (view.rank() != rank) return msg::WrongRank(name, view.rank(), rank);
  const KindTraits traits = Traits(kind);
  const auto value = static_cast<std::uint32_t>(view.dtype());
  if (value >= 32 || (traits.dtypes >> value & 1U) == 0) {
    return msg::WrongDType(name, view.dtype(), traits.text);
  }
  for (int dim = 0; dim < rank; ++dim) {
    if (view.shape(dim) < 0) return msg::NegativeDim(name, dim, view.shape(dim));
  }
  std::int64_t low = 0;
  std::int64_t high = 0;
  if (!IsEmpty(view) && !ByteRange(view, &low, &high)) return msg::TooLarge(name, view.shape());
  return {};
}

Status CheckInput(std::string_view name, const ConstTensorView& view, int rank, Kind kind) {
  MOEPERM_TRY(CheckShape(name, view, rank, kind));
  if (IsEmpty(view)) return {};
  if (view.data() == nullptr) return msg::NullData(name, view.shape());
  if (reinterpret_cast<std::uintptr_t>(view.data()) % SizeOf(view.dtype()) != 0) {
    return msg::Misaligned(name, view.dtype());
  }
  return {};
}

Status CheckOutput(std::string_view name, const TensorView& view, int rank, Kind kind) {
  MOEPERM_TRY(CheckInput(name, view, rank, kind));
  if (OverlapsItself(view)) return msg::SelfOverlap(name, view.shape(), view.strides());
  return {};
}

Status CheckDim(std::string_view name, const ConstTensorView& view, int dim, std::int64_t want,
                std::string_view why) {
  if (view.shape(dim) == want) return {};
  return msg::DimMismatch(name, dim, view.shape(dim), want, why);
}

Status CheckBytes(std::string_view name, DType dtype, std::initializer_list<std::int64_t> shape) {
  auto bytes = static_cast<std::int64_t>(SizeOf(dtype));
  for (const std::int64_t size : shape) {
    if (size == 0) return {};
  }
  for (const std::int64_t size : shape) {
    if (!CheckedMul(bytes, size, &bytes)) return msg::TooLarge(name, {shape.begin(), shape.size()});
  }
  return {};
}

Status CheckSameDType(std::string_view name, const ConstTensorView& view, std::string_view other,
                      DType want) {
  if (view.dtype() == want) return {};
  return msg::DTypesDiffer(name, view.dtype(), other, want);
}

Status CheckCount(std::string_view name, const ConstTensorView& view, int dim) {
  if (view.shape(dim) <= kMaxRows) return {};
  return msg::TooMany(name, dim, view.shape(dim), kMaxRows);
}

Status CheckCapacity(std::int64_t capacity, std::int64_t tokens, std::int64_t experts,
                     double row_bytes) {
  if (capacity < 0) return msg::Negative("capacity", capacity);
  if (capacity > tokens) return msg::CapacityAboveTokens(capacity, tokens, experts, row_bytes);
  std::int64_t rows = 0;
  if (!CheckedMul(capacity, experts, &rows) || rows > kMaxRows) {
    return msg::AboveLimit("capacity * num_experts", rows, kMaxRows);
  }
  return {};
}

Status CheckRowCount(std::string_view name, std::int64_t value) {
  if (value < 0) return msg::Negative(name, value);
  if (value > kMaxRows) return msg::AboveLimit(name, value, kMaxRows);
  return {};
}

Status CheckAllDisjoint(std::span<const NamedOutput> outputs, std::span<const NamedInput> inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      MOEPERM_TRY(
          CheckDisjoint(outputs[i].name, outputs[i].view, outputs[j].name, outputs[j].view));
    }
    for (const NamedInput& input : inputs) {
      MOEPERM_TRY(CheckDisjoint(outputs[i].name, outputs[i].view, input.name, input.view));
    }
  }
  return {};
}

Status CheckDisjoint(std::string_view output_name, const TensorView& output,
                     std::string_view other_name, const ConstTensorView& other) {
  const ConstTensorView view = output;
  if (IsEmpty(view) || IsEmpty(other) || !IsDense(view) || !IsDense(other)) return {};
  std::int64_t low = 0;
  std::int64_t high = 0;
  ByteRange(view, &low, &high);
  const auto begin =
      reinterpret_cast<std::uintptr_t>(view.data()) + static_cast<std::uintptr_t>(low);
  const auto last =
      reinterpret_cast<std::uintptr_t>(view.data()) + static_cast<std::uintptr_t>(high);
  ByteRange(other, &low, &high);
  const auto other_begin =
      reinterpret_cast<std::uintptr_t>(other.data()) + static_cast<std::uintptr_t>(low);
  const auto other_last =
      reinterpret_cast<std::uintptr_t>(other.data()) + static_cast<std::uintptr_t>(high);
  if (begin <= other_last && other_begin <= last) return msg::Overlap(output_name, other_name);
  return {};
}

}  // namespace moeperm
