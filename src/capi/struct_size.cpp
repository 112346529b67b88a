// SPDX-License-Identifier: Apache-2.0
#include "capi/struct_size.hpp"

namespace moeperm::capi {
namespace {

// A size above it is an uninitialised one: better refused than read past the struct's end.
constexpr std::size_t kMaxStructSize = 4096;

}  // namespace

Status CheckStruct(std::string_view name, const void* from, std::size_t first, std::size_t known,
                   Tail tail) {
  if (from == nullptr) return msg::Missing(name, "it is a null pointer");
  std::size_t size = 0;
  std::memcpy(&size, from, sizeof size);
  if (size < first || size > kMaxStructSize) {
    return msg::StructSize(name, size, first, kMaxStructSize);
  }
  const auto* const bytes = static_cast<const unsigned char*>(from);
  for (std::size_t i = known; tail == Tail::kInput && i < size; ++i) {
    if (bytes[i] != 0) return msg::StructTooNew(name, size, known, i);
  }
  return {};
}

}  // namespace moeperm::capi
