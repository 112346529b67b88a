// SPDX-License-Identifier: Apache-2.0
// A safetensors file to read from.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "io/mapped_file.hpp"
#include "io/safetensors.hpp"

namespace moeperm::io {

// Checked completely when opened; the data themselves are read when they are touched.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::string path);  // throws Error

  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }
  [[nodiscard]] const Metadata& metadata() const noexcept { return header_.metadata; }
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept { return header_.tensors; }
  // Null where there is no such tensor.
  [[nodiscard]] const TensorInfo* Find(std::string_view name) const noexcept;
  [[nodiscard]] std::span<const std::byte> Data(const TensorInfo& tensor) const noexcept;

 private:
  MappedFile file_;
  std::size_t data_begin_ = 0;
  Header header_;
};

}  // namespace moeperm::io
