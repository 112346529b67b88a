// SPDX-License-Identifier: Apache-2.0
#include "cli/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

namespace moeperm::cli {
namespace {

using moeperm_reference::Matrix;
using moeperm_reference::Type;

struct Element {
  std::string text;
  std::string bits;
  double value = 0;
};

Element FloatElement(Type type, std::uint32_t bits) {
  const float value = moeperm_reference::Widen(type, bits);
  return {fmt::format("{:.9g}", value),
          fmt::format("0x{:0{}x}", bits, type == Type::kFloat32 ? 8 : 4),
          static_cast<double>(value)};
}

Element IntegerElement(std::int64_t value) {
  return {fmt::format("{}", value), fmt::format("0x{:x}", static_cast<std::uint64_t>(value)),
          static_cast<double>(value)};
}

std::vector<std::int64_t> IndexOf(std::int64_t flat, std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return index;
}

// `pair(i)` gives both elements where they differ, and nothing where they are equal.
template <class Pair>
Json CompareElements(std::string_view name, std::span<const std::int64_t> shape,
                     std::int64_t elements, const Pair& pair) {
  Json result = {{"tensor", name}, {"elements", elements}, {"different", 0}};
  std::int64_t different = 0;
  double largest = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    const auto both = pair(i);
    if (!both) continue;
    const auto& [got, expected] = *both;
    if (different++ == 0) {
      result["first"] = {{"index", IndexOf(i, shape)},
                         {"got", got.text},
                         {"got_bits", got.bits},
                         {"expected", expected.text},
                         {"expected_bits", expected.bits}};
    }
    const double distance = std::abs(got.value - expected.value);
    // A NaN on one side only is further away than any number.
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::isnan(distance) ? kInfinity : distance);
  }
  result["different"] = different;
  if (different > 0) result["largest_difference"] = fmt::format("{:.6g}", largest);
  return result;
}

std::optional<Json> CompareShapes(std::string_view name, const ConstTensorView& got,
                                  std::string_view expected_dtype, bool same_dtype,
                                  std::span<const std::int64_t> expected) {
  if (same_dtype && std::ranges::equal(got.shape(), expected)) return std::nullopt;
  return Json{
      {"tensor", name},
      {"problem", fmt::format("is {} {} but must be {} {}", Name(got.dtype()),
                              FormatShape(got.shape()), expected_dtype, FormatShape(expected))}};
}

DType DTypeOf(Type type) {
  switch (type) {
    case Type::kFloat16:
      return DType::kFloat16;
    case Type::kBFloat16:
      return DType::kBFloat16;
    case Type::kFloat32:
      break;
  }
  return DType::kFloat32;
}

template <class T>
T Load(const ConstTensorView& view, std::int64_t i) {
  T value;
  std::memcpy(&value,
              static_cast<const char*>(view.data()) + static_cast<std::size_t>(i) * sizeof(T),
              sizeof(T));
  return value;
}

}  // namespace

Json Compare(std::string_view name, const ConstTensorView& got, const Matrix& expected,
             Equality equality, std::vector<std::int64_t> expected_shape) {
  const DType dtype = DTypeOf(expected.type);
  if (auto problem = CompareShapes(name, got, Name(dtype), got.dtype() == dtype, expected_shape)) {
    return *problem;
  }
  const std::int64_t elements = expected.rows * expected.cols;
  const bool same = expected.bytes.empty() ||
                    std::memcmp(got.data(), expected.bytes.data(), expected.bytes.size()) == 0;
  if (same) return Json{{"tensor", name}, {"elements", elements}, {"different", 0}};
  return CompareElements(
      name, expected_shape, elements,
      [&](std::int64_t i) -> std::optional<std::pair<Element, Element>> {
        const std::uint32_t a =
            SizeOf(dtype) == 4 ? Load<std::uint32_t>(got, i) : Load<std::uint16_t>(got, i);
        const std::uint32_t b = expected.Get(i / expected.cols, i % expected.cols);
        if (a == b) return std::nullopt;
        if (equality == Equality::kSums && std::isnan(moeperm_reference::Widen(expected.type, a)) &&
            std::isnan(moeperm_reference::Widen(expected.type, b))) {
          return std::nullopt;
        }
        return std::pair(FloatElement(expected.type, a), FloatElement(expected.type, b));
      });
}

Json Compare(std::string_view name, const ConstTensorView& got,
             const std::vector<std::int64_t>& expected) {
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(expected.size())};
  const bool integers = got.dtype() == DType::kInt32 || got.dtype() == DType::kInt64;
  if (auto problem = CompareShapes(name, got, "int32 or int64", integers, shape)) return *problem;
  return CompareElements(
      name, shape, shape[0], [&](std::int64_t i) -> std::optional<std::pair<Element, Element>> {
        const std::int64_t a =
            got.dtype() == DType::kInt32 ? Load<std::int32_t>(got, i) : Load<std::int64_t>(got, i);
        const std::int64_t b = expected[static_cast<std::size_t>(i)];
        if (a == b) return std::nullopt;
        return std::pair(IntegerElement(a), IntegerElement(b));
      });
}

bool AllEqual(const Json& comparison) {
  return !comparison.contains("problem") && comparison["different"] == 0;
}

std::string ComparisonText(const Json& comparison) {
  const std::string name = comparison["tensor"];
  if (comparison.contains("problem")) {
    return fmt::format("  {:<20} WRONG  {}\n", name, comparison["problem"].get<std::string>());
  }
  const std::string elements = FormatCount(comparison["elements"]);
  if (AllEqual(comparison)) return fmt::format("  {:<20} equal  {} elements\n", name, elements);
  const Json& first = comparison["first"];
  const auto text = [&](const char* key) { return first[key].get<std::string>(); };
  return fmt::format(
      "  {:<20} WRONG  {} of {} elements differ, by up to {}\n"
      "  {:<20}        first at {}: {} ({}), must be {} ({})\n",
      name, FormatCount(comparison["different"]), elements,
      comparison["largest_difference"].get<std::string>(), "",
      FormatShape(first["index"].get<std::vector<std::int64_t>>()), text("got"), text("got_bits"),
      text("expected"), text("expected_bits"));
}

}  // namespace moeperm::cli
