// SPDX-License-Identifier: Apache-2.0
// Every error text of the library, in one place: operand, place and both values in each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "moeperm/dtype.hpp"
#include "moeperm/status.hpp"

namespace moeperm::msg {

// Views.
Status BadView(std::string_view name);
Status WrongRank(std::string_view name, int rank, int want);
Status WrongDType(std::string_view name, DType dtype, std::string_view allowed);
Status DTypesDiffer(std::string_view name, DType dtype, std::string_view other, DType want);
Status NegativeDim(std::string_view name, int dim, std::int64_t size);
Status TooLarge(std::string_view name, std::span<const std::int64_t> shape);
Status TooMany(std::string_view name, int dim, std::int64_t size, std::int64_t limit);
Status NullData(std::string_view name, std::span<const std::int64_t> shape);
Status Misaligned(std::string_view name, DType dtype);
Status SelfOverlap(std::string_view name, std::span<const std::int64_t> shape,
                   std::span<const std::int64_t> strides);
Status Overlap(std::string_view output, std::string_view other);
Status DimMismatch(std::string_view name, int dim, std::int64_t size, std::int64_t want,
                   std::string_view why);
// sorted_indices, not padded, forward.
Status SlotsMismatch(std::int64_t slots, std::int64_t tokens, std::int64_t top_k);

// Presence.
Status Missing(std::string_view name, std::string_view because);
Status Unexpected(std::string_view name, std::string_view because);
Status NothingToDo(std::string_view outputs);

// Attributes.
Status Negative(std::string_view name, std::int64_t value);
Status NegativeAt(std::string_view name, std::int64_t place, std::int64_t value);
Status NotPositive(std::string_view name, std::int64_t value);
Status NotAmong(std::string_view name, std::int64_t value, std::int64_t first, std::int64_t last);
Status AboveLimit(std::string_view name, std::int64_t value, std::int64_t limit);
// `row_bytes`: bytes of a row's elements, to say what the rows would take; 0 where unknown.
Status CapacityAboveTokens(std::int64_t capacity, std::int64_t tokens, std::int64_t experts,
                           double row_bytes);
Status RowsNotMultiple(std::int64_t rows, std::int64_t experts);
Status SlotsNotMultiple(std::int64_t slots, std::int64_t tokens);
Status TooManySlots(std::int64_t tokens, std::int64_t top_k);
Status TooManyRoutes(std::int64_t routes, std::int64_t limit);

// Values.
Status RouteCount(std::int64_t token, std::int64_t routes, std::int64_t top_k);
Status RowOutOfRange(std::int64_t slot, std::int64_t row, std::int64_t rows);
Status ExpertOutOfRange(std::int64_t slot, std::int64_t expert, std::int64_t experts);
Status ExpertTooLarge(std::int64_t slot, std::int64_t expert, std::int64_t limit);
Status TokenOutOfRange(std::int64_t row, std::int64_t token, std::int64_t tokens);

// Chunks of rows.
Status ChunkPastRows(std::int64_t chunk, std::int64_t size, std::int64_t begin, std::int64_t rows);
Status ChunksOfFewerRows(std::int64_t sum, std::int64_t rows);
Status ChunkOutOfRange(std::int64_t place, std::int64_t chunk, std::int64_t chunks);
Status ChunkTwice(std::int64_t place, std::int64_t chunk, std::int64_t first_place);

// Structs of the C ABI.
Status StructSize(std::string_view name, std::size_t size, std::size_t least, std::size_t most);
Status StructTooNew(std::string_view name, std::size_t size, std::size_t known, std::size_t at);

// Contexts.
Status BadThreadCount(std::string_view source, std::string_view value, int limit);
Status UnknownIsa(std::string_view source, std::string_view value, std::string_view available);

// Failures.
Status OutOfMemory(std::uint64_t bytes);
Status Internal(std::string_view what);

}  // namespace moeperm::msg
