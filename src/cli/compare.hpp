// SPDX-License-Identifier: Apache-2.0
// Compares an output with the reference's, element by element.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cli/output.hpp"
#include "moeperm/tensor.hpp"
#include "reference/reference.hpp"

namespace moeperm::cli {

// kBits: the same bit pattern. kSums: the same, but a NaN is as good as any other NaN (which one
// a sum of NaNs gives is promised by nobody).
enum class Equality { kBits, kSums };

// {"tensor", "elements", "different"} and, where any differs, {"first": {"index", "got",
// "got_bits", "expected", "expected_bits"}, "largest_difference"}; or {"tensor", "problem"} where
// the two cannot be compared. `got` is dense and row-major.
Json Compare(std::string_view name, const ConstTensorView& got,
             const moeperm_reference::Matrix& expected, Equality equality,
             std::vector<std::int64_t> expected_shape);
Json Compare(std::string_view name, const ConstTensorView& got,
             const std::vector<std::int64_t>& expected);

// Whether a result says that all is the same.
bool AllEqual(const Json& comparison);
// The lines for a person.
std::string ComparisonText(const Json& comparison);

}  // namespace moeperm::cli
