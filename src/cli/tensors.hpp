// SPDX-License-Identifier: Apache-2.0
// Tensors as the operators take them: from a file, and in memory of our own.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/buffer.hpp"
#include "cli/progress.hpp"
#include "io/safetensors_reader.hpp"
#include "io/safetensors_writer.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm::cli {

// A view of a file's tensor. The file must outlive it.
class InputTensor {
 public:
  InputTensor(const io::SafetensorsFile& file, const io::TensorInfo& info, DType dtype);

  [[nodiscard]] const ConstTensorView& view() const noexcept { return view_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  bench::Buffer aligned_;  // a copy, where the file has the tensor at an odd place
  std::span<const std::byte> bytes_;
  ConstTensorView view_;
};

// Throws io::Error where there is no such tensor, or the library has no such type.
InputTensor LoadTensor(const io::SafetensorsFile& file, std::string_view name);
std::optional<InputTensor> LoadTensorIfThere(const io::SafetensorsFile& file,
                                             std::string_view name);
// As above; U8 is read as bool, and the map has two dimensions.
InputTensor LoadRoutingMap(const io::SafetensorsFile& file);

std::optional<ConstTensorView> ViewOf(const std::optional<InputTensor>& tensor);

// An output: dense, row-major.
class OwnedTensor {
 public:
  OwnedTensor(std::string name, const TensorSpec& spec);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] TensorView view() const noexcept;
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return buffer_.bytes(); }

 private:
  std::string name_;
  TensorSpec spec_;
  bench::Buffer buffer_;
};

// Throws io::Error where `output` is one of the files being read: replacing an input would lose it.
void RefuseToReplace(const std::string& output,
                     std::initializer_list<const io::SafetensorsFile*> inputs);

// Rows of another number than were permuted belong to another call; the operators see only that
// there are rows enough. Throws where the tensor of `file` has not `rows` of them (absent: not
// known); `option` says how to give another file.
void CheckRows(std::optional<std::int64_t> rows, const io::SafetensorsFile& permuted,
               const io::SafetensorsFile& file, std::string_view name,
               const ConstTensorView& tensor, std::string_view option);

// Writes `tensors` with a progress bar.
void WriteTensors(const std::string& path, std::vector<io::OutputTensor> tensors,
                  const io::Metadata& metadata);

}  // namespace moeperm::cli
