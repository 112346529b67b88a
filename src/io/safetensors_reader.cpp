// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors_reader.hpp"

#include <utility>

#include "io/error.hpp"

namespace moeperm::io {

SafetensorsFile::SafetensorsFile(std::string path) : file_(std::move(path)) {
  const std::span<const std::byte> bytes = file_.bytes();
  if (bytes.size() < kLengthBytes) {
    Fail("{}: not a safetensors file: {} bytes are too short for the header length", this->path(),
         bytes.size());
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  }
  if (length > kMaxHeaderBytes) {
    Fail("{}: not a safetensors file: header length {} is above the limit {}", this->path(), length,
         kMaxHeaderBytes);
  }
  if (length > bytes.size() - kLengthBytes) {
    Fail("{}: header length {} does not fit into the {} bytes of the file", this->path(), length,
         bytes.size());
  }
  data_begin_ = kLengthBytes + static_cast<std::size_t>(length);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                              static_cast<std::size_t>(length));
  header_ = ParseHeader(this->path(), text, bytes.size() - data_begin_);
}

const TensorInfo* SafetensorsFile::Find(std::string_view name) const noexcept {
  for (const TensorInfo& tensor : header_.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::span<const std::byte> SafetensorsFile::Data(const TensorInfo& tensor) const noexcept {
  return file_.bytes().subspan(data_begin_ + tensor.begin, tensor.bytes());
}

}  // namespace moeperm::io
