// SPDX-License-Identifier: Apache-2.0
#include "cann/model/messages.hpp"

#include <fmt/format.h>

namespace moeperm::cann::model {
namespace {

template <class... Args>
Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return {Code::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace

Status WrongFields(std::string_view kernel, std::size_t got, std::size_t expected) {
  return Invalid("the tiling of {} has {} fields, not {}", kernel, got, expected);
}
Status UnknownKey(std::string_view kernel, std::int64_t key) {
  return Invalid("{} has no kernel for tiling key {}", kernel, key);
}
Status UnknownDType(std::string_view kernel, host::DType dtype) {
  return Invalid("{} has no kernel for {}", kernel, Name(dtype));
}
Status FieldOutOfRange(std::string_view field, std::int64_t value, std::string_view rule) {
  return Invalid("tiling: {} = {} but must be {}", field, value, rule);
}
Status BufferFull(std::string_view piece, std::int64_t bytes, std::int64_t used,
                  std::int64_t budget) {
  return Invalid("unified buffer: no room for {} ({} bytes): {} of {} bytes are taken", piece,
                 bytes, used, budget);
}
Status OutsideTensor(std::string_view tensor, std::int64_t core, std::int64_t offset,
                     std::int64_t bytes, std::int64_t size) {
  return Invalid("core {} would touch bytes {} to {} of {}, which has {}", core, offset,
                 static_cast<std::uint64_t>(offset) + static_cast<std::uint64_t>(bytes), tensor,
                 size);
}
Status OutsidePiece(std::string_view piece, std::int64_t bytes, std::int64_t size) {
  return Invalid("unified buffer: {} bytes do not fit into {}, which has {}", bytes, piece, size);
}
Status IndexOutOfRange(std::int64_t position, std::int64_t index, std::int64_t limit) {
  return {Code::kIndexOutOfRange,
          fmt::format("sorted_indices[{}] = {} but there are {} tokens", position, index, limit)};
}
Status IndexAddEmpty(std::string_view what, std::int64_t value) {
  return Invalid("sorted index add: {} = {} but must be above 0", what, value);
}
Status TooLarge(std::string_view what) { return Invalid("{}: the size exceeds 64 bits", what); }
Status NoMemory() { return {Code::kOutOfMemory, "the model of a core: out of memory"}; }

std::string NoHiddenTile(std::int64_t ub_bytes) {
  return fmt::format("a unified buffer of {} bytes has no room for a hidden tile", ub_bytes);
}
std::string NoTokenTile(std::int64_t ub_bytes) {
  return fmt::format("a unified buffer of {} bytes has no room for the indices of a token",
                     ub_bytes);
}
std::string NoRowPart(std::int64_t ub_bytes) {
  return fmt::format("a unified buffer of {} bytes has no room for a part of a row", ub_bytes);
}

}  // namespace moeperm::cann::model
