// SPDX-License-Identifier: Apache-2.0
#include "cli/tensors.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <system_error>
#include <utility>

#include "io/error.hpp"

namespace moeperm::cli {
namespace {

std::size_t DenseBytes(const TensorSpec& spec) {
  std::uint64_t bytes = 0;
  if (!io::DenseBytes(spec.shape, SizeOf(spec.dtype), &bytes)) throw std::bad_alloc();
  return bytes;
}

const io::TensorInfo& Find(const io::SafetensorsFile& file, std::string_view name) {
  const io::TensorInfo* const info = file.Find(name);
  if (info == nullptr) io::Fail("{}: has no tensor '{}'", file.path(), name);
  return *info;
}

}  // namespace

InputTensor::InputTensor(const io::SafetensorsFile& file, const io::TensorInfo& info, DType dtype)
    : bytes_(file.Data(info)) {
  if (dtype == DType::kInvalid) {
    io::Fail("{}: tensor {} has dtype {}, which no operator takes", file.path(),
             io::Quote(info.name), info.type->name);
  }
  if (std::bit_cast<std::uintptr_t>(bytes_.data()) % SizeOf(dtype) != 0) {
    aligned_ = bench::Buffer(bytes_.size());
    std::ranges::copy(bytes_, aligned_.data());
    bytes_ = aligned_.bytes();
  }
  view_ = ConstTensorView(bytes_.data(), dtype, info.shape);
}

InputTensor LoadTensor(const io::SafetensorsFile& file, std::string_view name) {
  const io::TensorInfo& info = Find(file, name);
  return {file, info, info.type->dtype};
}

std::optional<InputTensor> LoadTensorIfThere(const io::SafetensorsFile& file,
                                             std::string_view name) {
  if (file.Find(name) == nullptr) return std::nullopt;
  return LoadTensor(file, name);
}

InputTensor LoadRoutingMap(const io::SafetensorsFile& file) {
  const io::TensorInfo& info = Find(file, "routing_map");
  if (info.shape.size() != 2) {
    io::Fail("{}: tensor 'routing_map' has shape [{}] but must be [tokens, experts]", file.path(),
             fmt::join(info.shape, ", "));
  }
  return {file, info, info.type->name == "U8" ? DType::kBool : info.type->dtype};
}

std::optional<ConstTensorView> ViewOf(const std::optional<InputTensor>& tensor) {
  if (!tensor) return std::nullopt;
  return tensor->view();
}

OwnedTensor::OwnedTensor(std::string name, const TensorSpec& spec)
    : name_(std::move(name)), spec_(spec), buffer_(DenseBytes(spec)) {}

TensorView OwnedTensor::view() const noexcept { return {buffer_.data(), spec_.dtype, spec_.shape}; }

void RefuseToReplace(const std::string& output,
                     std::initializer_list<const io::SafetensorsFile*> inputs) {
  for (const io::SafetensorsFile* const input : inputs) {
    std::error_code none;  // a file that is not there is no input
    if (input != nullptr && std::filesystem::equivalent(output, input->path(), none)) {
      io::Fail("{}: is also an input; choose another file to write", output);
    }
  }
}

void CheckRows(std::optional<std::int64_t> rows, const io::SafetensorsFile& permuted,
               const io::SafetensorsFile& file, std::string_view name,
               const ConstTensorView& tensor, std::string_view option) {
  if (!rows || tensor.rank() <= 0 || tensor.shape(0) == *rows) return;
  io::Fail(
      "{}: has {} permuted rows, but tensor '{}' of {} has {}; give what belongs to it with {}",
      permuted.path(), *rows, name, file.path(), tensor.shape(0), option);
}

void WriteTensors(const std::string& path, std::vector<io::OutputTensor> tensors,
                  const io::Metadata& metadata) {
  Progress progress("writing " + path);
  io::WriteSafetensors(path, std::move(tensors), metadata,
                       [&](std::uint64_t done, std::uint64_t total) {
                         progress.SetTotal(total);
                         progress.Set(done);
                       });
}

}  // namespace moeperm::cli
