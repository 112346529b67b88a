// SPDX-License-Identifier: Apache-2.0
// The error texts of the host side. Each names the operator's argument and the value.
#pragma once

#include <cstdint>
#include <string_view>

#include "cann/host/op_def.hpp"
#include "moeperm/status.hpp"

namespace moeperm::cann::host {

Status MissingTensor(std::string_view name);
Status MissingAttr(std::string_view name);
Status WrongAttrType(std::string_view name, AttrType expected);
Status WrongRank(std::string_view name, const Shape& shape, std::string_view expected);
Status NegativeDim(std::string_view name, const Shape& shape, std::size_t dim);
Status NegativeAttr(std::string_view name, std::int64_t value);
Status ZeroAttr(std::string_view name, std::string_view meaning);
Status ProductTooLarge(std::string_view name, const Shape& shape);
Status TopKTooLarge(std::int64_t top_k, std::int64_t limit, std::string_view how);
// `name` of `shape` should have `expected` in dimension `dim`, which is `meaning`.
Status WrongDim(std::string_view name, const Shape& shape, std::size_t dim, std::int64_t expected,
                std::string_view meaning);
Status WrongHidden(std::string_view name, std::int64_t hidden, std::int64_t expected);
Status Empty(std::string_view name, const Shape& shape, std::string_view meaning);
Status TooLong(std::string_view meaning, std::int64_t length, std::int64_t limit);
// `name` is `dtype`, which tilings do not know.
Status UnknownDType(std::string_view name, DType dtype);
Status DTypeNotFor(std::string_view name, DType dtype, std::string_view soc);
Status OtherDType(std::string_view name, DType dtype, std::string_view other, DType expected);
Status HiddenNotFor310P(std::string_view name, std::int64_t hidden, std::int64_t multiple,
                        std::int64_t most);
Status PaddedMode();
Status BadRangeSize(std::size_t size);
Status BadRange(std::int64_t start, std::int64_t end);
Status BadCores(std::int64_t cores, std::int64_t limit);
Status BadUb(std::int64_t bytes);
Status FieldTooLarge(std::string_view field);

}  // namespace moeperm::cann::host
