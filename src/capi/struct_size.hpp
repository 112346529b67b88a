// SPDX-License-Identifier: Apache-2.0
// Structs of the C ABI that start with struct_size; the convention is told in moeperm/moeperm.h.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/status_macros.hpp"

namespace moeperm::capi {

// Bytes of T in the first version of the library that had it.
template <class T>
inline constexpr std::size_t kFirstSize = 0;

// `field` is the last one of that first version. Padding at the end is refused: a later field would
// take its place, and two versions of the struct would have one size.
#define MOEPERM_FIRST_VERSION_ENDS_WITH(type, field)                                           \
  template <>                                                                                  \
  inline constexpr std::size_t kFirstSize<type> = offsetof(type, field) + sizeof(type::field); \
  static_assert(kFirstSize<type> % alignof(type) == 0, "padding at the end of " #type)

// What the caller's struct holds in bytes `known` .. struct_size - 1.
enum class Tail {
  kInput,   // must be 0
  kOutput,  // is not looked at
};

Status CheckStruct(std::string_view name, const void* from, std::size_t first, std::size_t known,
                   Tail tail);

// *to = *from, in the version of this library. *to holds the defaults.
template <class T>
Status ReadStruct(std::string_view name, const T* from, T* to) {
  MOEPERM_TRY(CheckStruct(name, from, kFirstSize<T>, sizeof(T), Tail::kInput));
  std::memcpy(to, from, from->struct_size < sizeof(T) ? from->struct_size : sizeof(T));
  return {};
}

// *to = from, in the version of the caller: fields that this library does not know become 0, and
// nothing past the caller's size is written. CheckStruct has passed *to.
template <class T>
void WriteStruct(const T& from, T* to) {
  constexpr std::size_t kHead = sizeof to->struct_size;
  const std::size_t size = to->struct_size;
  auto* const bytes = reinterpret_cast<unsigned char*>(to);
  std::memset(bytes + kHead, 0, size - kHead);
  std::memcpy(bytes + kHead, reinterpret_cast<const unsigned char*>(&from) + kHead,
              (size < sizeof(T) ? size : sizeof(T)) - kHead);
}

}  // namespace moeperm::capi
