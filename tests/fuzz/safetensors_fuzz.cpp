// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors header: accepted with every tensor inside the data, or refused.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "io/error.hpp"
#include "io/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::uint64_t data_bytes = bytes[0];
  const std::string_view text(reinterpret_cast<const char*>(bytes + 1), size - 1);
  try {
    const moeperm::io::Header header = moeperm::io::ParseHeader("fuzz", text, data_bytes);
    for (const moeperm::io::TensorInfo& tensor : header.tensors) {
      std::uint64_t dense = 0;
      if (tensor.begin > tensor.end || tensor.end > data_bytes || tensor.type == nullptr ||
          !moeperm::io::DenseBytes(tensor.shape, tensor.type->size, &dense) ||
          dense != tensor.bytes()) {
        std::abort();
      }
    }
  } catch (const moeperm::io::Error&) {
  }
  return 0;
}
