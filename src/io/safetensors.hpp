// SPDX-License-Identifier: Apache-2.0
// The safetensors format: 8 bytes little-endian header length, a JSON header, then the data.
//
//   {"__metadata__": {"key": "value"}, "name": {"dtype": "F32", "shape": [2, 3],
//    "data_offsets": [begin, end]}, ...}
//
// Offsets count from the end of the header; the tensors cover the data without gap or overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "moeperm/dtype.hpp"

namespace moeperm::io {

static_assert(sizeof(std::size_t) == 8, "files larger than the address space are not handled");

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
inline constexpr std::size_t kLengthBytes = 8;
inline constexpr std::size_t kMaxDims = 32;

// An element type of the format. `dtype` is kInvalid where the library has no such type.
struct ElementType {
  std::string_view name;
  std::size_t size;
  DType dtype;
};

// Null where there is no such type.
const ElementType* FindElementType(std::string_view name) noexcept;
const ElementType* FindElementType(DType dtype) noexcept;

struct TensorInfo {
  std::string name;
  const ElementType* type = nullptr;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // bytes from the start of the data
  std::uint64_t end = 0;

  [[nodiscard]] std::uint64_t bytes() const noexcept { return end - begin; }
};

// Bytes of a dense tensor; false where they do not fit into 63 bits or a dimension is negative.
bool DenseBytes(std::span<const std::int64_t> shape, std::size_t element, std::uint64_t* bytes);

using Metadata = std::map<std::string, std::string>;

struct Header {
  std::vector<TensorInfo> tensors;  // by begin
  Metadata metadata;
};

// Parses and checks everything the header says against `data_bytes`, the bytes that follow it.
// Throws Error, `path` in front.
Header ParseHeader(std::string_view path, std::string_view text, std::uint64_t data_bytes);

}  // namespace moeperm::io
