// SPDX-License-Identifier: Apache-2.0
// Writes a safetensors file in one pass, without ever holding it in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "io/safetensors.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm::io {

using Sink = std::function<void(std::span<const std::byte>)>;

struct OutputTensor {
  std::string name;
  DType dtype = DType::kInvalid;
  std::vector<std::int64_t> shape;
  // Hands the tensor's bytes to the sink, in order, in pieces of any size.
  std::function<void(const Sink&)> write;
};

// A tensor that lies in memory, dense and row-major.
OutputTensor InMemory(std::string name, const ConstTensorView& view);

// Called with the bytes written so far and in all.
using WriteProgress = std::function<void(std::uint64_t, std::uint64_t)>;

// Larger elements first, so that every tensor is aligned to its element size; data begin at a
// multiple of 64. Throws Error; then there is no file, or the one there was before.
void WriteSafetensors(const std::string& path, std::vector<OutputTensor> tensors,
                      const Metadata& metadata, const WriteProgress& progress = {});

}  // namespace moeperm::io
