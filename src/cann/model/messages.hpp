// SPDX-License-Identifier: Apache-2.0
// The texts of the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cann/host/op_def.hpp"
#include "moeperm/status.hpp"

namespace moeperm::cann::model {

Status WrongFields(std::string_view kernel, std::size_t got, std::size_t expected);
Status UnknownKey(std::string_view kernel, std::int64_t key);
Status UnknownDType(std::string_view kernel, host::DType dtype);
Status FieldOutOfRange(std::string_view field, std::int64_t value, std::string_view rule);
Status BufferFull(std::string_view piece, std::int64_t bytes, std::int64_t used,
                  std::int64_t budget);
Status OutsideTensor(std::string_view tensor, std::int64_t core, std::int64_t offset,
                     std::int64_t bytes, std::int64_t size);
Status OutsidePiece(std::string_view piece, std::int64_t bytes, std::int64_t size);
Status IndexOutOfRange(std::int64_t position, std::int64_t index, std::int64_t limit);
Status IndexAddEmpty(std::string_view what, std::int64_t value);
Status TooLarge(std::string_view what);
Status NoMemory();

std::string NoHiddenTile(std::int64_t ub_bytes);
std::string NoTokenTile(std::int64_t ub_bytes);
std::string NoRowPart(std::int64_t ub_bytes);

}  // namespace moeperm::cann::model
