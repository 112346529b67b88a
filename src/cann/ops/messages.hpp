// SPDX-License-Identifier: Apache-2.0
// The texts of the operators' errors. Those of phase 1 note the text and return the code; those of
// phase 2 are statuses, which phase 2 turns into 161002.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "moeperm/status.hpp"

namespace moeperm::cann::op_msg {

using Dims = std::span<const std::int64_t>;
using Names = std::span<const std::pair<std::string_view, std::string_view>>;

// 161001
int MissingTensor(std::string_view function, std::string_view argument);
int MissingBecause(std::string_view function, std::string_view argument, std::string_view other);
// 161002
int StaleHandle(std::string_view function, std::string_view argument, const void* handle,
                std::string_view what);
int Unsupported(std::string_view function, std::string_view attribute, std::string_view value,
                std::string_view allowed);
int NotPositive(std::string_view function, std::string_view attribute, std::int64_t value);
int Negative(std::string_view function, std::string_view attribute, std::int64_t value);
int WrongDType(std::string_view function, std::string_view argument, std::int32_t dtype,
               std::string_view allowed);
int DTypesDiffer(std::string_view function, std::string_view argument, std::int32_t dtype,
                 std::string_view other, std::int32_t want);
int MixedDTypes(std::string_view function, std::string_view argument, std::int32_t dtype,
                std::string_view tokens, std::int32_t tokens_dtype);
int WrongRank(std::string_view function, std::string_view argument, std::size_t rank,
              std::size_t want);
int NegativeDim(std::string_view function, std::string_view argument, std::size_t dim,
                std::int64_t size);
int DimDiffers(std::string_view function, std::string_view argument, std::size_t dim,
               std::int64_t size, std::int64_t want, std::string_view why);
int AboveLimit(std::string_view function, std::string_view what, std::int64_t value,
               std::int64_t limit);
// 561002 or 561103
int TilingFailed(std::string_view function, std::string_view why, int code);

// What the library says of a call, with the names of the interface: those of `names`, first of a
// pair, become the second where they stand as whole words.
Status Translated(const Status& status, Names names);
// The same with the operator in front: an error that comes long after the call.
Status OfWork(std::string_view function, const Status& status, Names names);

Status NullData(std::string_view argument, Dims dims);
Status Misaligned(std::string_view argument, std::size_t bytes);
Status TooLarge(std::string_view argument, Dims dims);
Status BeyondStorage(std::string_view argument, Dims dims, Dims strides, std::int64_t offset,
                     Dims storage_dims);
Status DoesNotFit(std::string_view argument, Dims dims, std::int64_t rows, std::int64_t cols,
                  std::string_view why);
Status ShapesDiffer(std::string_view argument, Dims dims, std::string_view other, Dims want);
Status RankNeeded(std::string_view argument, std::size_t rank, std::string_view want);
Status NotAbove(std::string_view attribute, std::int64_t value, std::int64_t bound);
Status NotMultiple(std::string_view argument, std::int64_t size, std::string_view of,
                   std::int64_t number);
Status OutOfBounds(std::string_view argument, std::int64_t position, std::int64_t value,
                   std::int64_t limit, std::string_view what);
Status WrongDim(std::string_view argument, std::size_t dim, std::int64_t size, std::int64_t want,
                std::string_view why);
Status RowsNotMultiple(std::string_view argument, std::int64_t rows, std::int64_t tokens);
Status TooShort(std::string_view argument, std::int64_t size, std::int64_t need,
                std::string_view why);
Status TooLong(std::string_view argument, std::int64_t size, std::int64_t limit,
               std::string_view why);

}  // namespace moeperm::cann::op_msg
