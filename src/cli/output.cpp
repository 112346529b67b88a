// SPDX-License-Identifier: Apache-2.0
#include "cli/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "io/error.hpp"

namespace moeperm::cli {
namespace {

// Columns a text takes: characters, not bytes.
std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string Scaled(double value, double step, std::span<const std::string_view> units) {
  std::size_t unit = 0;
  while (value >= step && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  if (value >= 100) return fmt::format("{:.0f} {}", value, units[unit]);
  if (value >= 10) return fmt::format("{:.1f} {}", value, units[unit]);
  return fmt::format("{:.2f} {}", value, units[unit]);
}

}  // namespace

TextTable::TextTable(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    const bool right = heading.starts_with('>');
    right_.push_back(right);
    if (right) heading.erase(0, 1);
  }
  rows_.push_back(std::move(headings));
}

void TextTable::AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string TextTable::Text() const {
  std::vector<std::size_t> widths(right_.size());
  for (const auto& row : rows_) {
    if (row.size() == 1) continue;
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(std::max(widths[i], Width(row[i])) - Width(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (right_[i] ? space + row[i] : row[i] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string FormatBytes(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  return Scaled(static_cast<double>(bytes), 1000, kUnits);
}

std::string FormatSeconds(double seconds) {
  static constexpr std::array<std::string_view, 4> kUnits = {"ns", "us", "ms", "s"};
  return Scaled(seconds * 1e9, 1000, kUnits);
}

std::string FormatCount(std::int64_t count) {
  std::string text = fmt::format("{}", count);
  for (std::size_t at = text.size(); at > 3 + (count < 0 ? 1U : 0U);) {
    at -= 3;
    text.insert(at, 1, ' ');
  }
  return text;
}

std::string FormatShape(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Json TensorJson(std::string_view name, DType dtype, std::span<const std::int64_t> shape) {
  std::uint64_t bytes = SizeOf(dtype);
  for (const std::int64_t dim : shape) bytes *= static_cast<std::uint64_t>(dim);
  return {{"name", name},
          {"dtype", Name(dtype)},
          {"shape", std::vector<std::int64_t>(shape.begin(), shape.end())},
          {"bytes", bytes}};
}

std::string TensorTable(const Json& tensors) {
  TextTable table({"tensor", "dtype", "shape", ">size"});
  for (const Json& tensor : tensors) {
    table.AddRow({tensor["name"], tensor["dtype"],
                  FormatShape(tensor["shape"].get<std::vector<std::int64_t>>()),
                  FormatBytes(tensor["bytes"])});
  }
  return table.Text();
}

void PrintText(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    io::FailErrno("stdout", "writing", errno);
  }
}

void PrintJson(const Json& json) {
  // Text out of files may not be UTF-8; a replacement character is better than no result.
  PrintText(json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
}

}  // namespace moeperm::cli
