// SPDX-License-Identifier: Apache-2.0
// The texts of the operators' errors. Those of phase 1 note the text and return the code; those of
// phase 2 are statuses, which phase 2 turns into 161002.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "moeperm/status.hpp"

namespace moeperm::cann::op_msg {

using Dims = std::span<const std::int64_t>;

// 161001
int MissingTensor(std::string_view function, std::string_view argument);
int MissingBecause(std::string_view function, std::string_view argument, std::string_view other);
// 161002
int StaleTensor(std::string_view function, std::string_view argument, const void* handle);
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
// 561103
int TilingFailed(std::string_view function, std::string_view why);

Status NullData(std::string_view argument, Dims dims);
Status Misaligned(std::string_view argument, std::size_t bytes);
Status TooLarge(std::string_view argument, Dims dims);
Status BeyondStorage(std::string_view argument, Dims dims, Dims strides, std::int64_t offset,
                     Dims storage_dims);
Status DoesNotFit(std::string_view argument, Dims dims, std::int64_t rows, std::int64_t cols,
                  std::string_view why);
Status ShapesDiffer(std::string_view argument, Dims dims, std::string_view other, Dims want);
Status WrongDim(std::string_view argument, std::size_t dim, std::int64_t size, std::int64_t want,
                std::string_view why);
Status RowsNotMultiple(std::string_view argument, std::int64_t rows, std::int64_t tokens);
Status TooShort(std::string_view argument, std::int64_t size, std::int64_t need,
                std::string_view why);
Status TooLong(std::string_view argument, std::int64_t size, std::int64_t limit,
               std::string_view why);

}  // namespace moeperm::cann::op_msg
