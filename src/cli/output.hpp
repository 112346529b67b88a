// SPDX-License-Identifier: Apache-2.0
// What the tool prints: JSON for programs, aligned tables for people.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "moeperm/tensor.hpp"

namespace moeperm::cli {

using Json = nlohmann::ordered_json;

class TextTable {
 public:
  // A heading that begins with '>' is of a column of numbers, set to the right.
  explicit TextTable(std::vector<std::string> headings);
  // One cell alone is a line across all columns.
  void AddRow(std::vector<std::string> cells);
  [[nodiscard]] std::string Text() const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

std::string FormatBytes(std::uint64_t bytes);  // "117.4 MB" (powers of 1000, as GB/s are)
std::string FormatSeconds(double seconds);     // "2.31 ms"
std::string FormatCount(std::int64_t count);   // "28 672"
std::string FormatShape(std::span<const std::int64_t> shape);  // "[4096, 7168]"

// {"name", "dtype", "shape", "bytes"}
Json TensorJson(std::string_view name, DType dtype, std::span<const std::int64_t> shape);
// The table of a list of those.
std::string TensorTable(const Json& tensors);

// To stdout; throws io::Error where that fails (a full disk behind a redirection).
void PrintText(std::string_view text);
void PrintJson(const Json& json);

}  // namespace moeperm::cli
