// SPDX-License-Identifier: Apache-2.0
#include "base/messages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "moeperm/context.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm::msg {
namespace {

template <class... Args>
Status Invalid(fmt::format_string<Args...> text, Args&&... args) {
  return {Code::kInvalidArgument, fmt::format(text, std::forward<Args>(args)...)};
}

template <class... Args>
Status OutOfRange(fmt::format_string<Args...> text, Args&&... args) {
  return {Code::kIndexOutOfRange, fmt::format(text, std::forward<Args>(args)...)};
}

std::string List(std::span<const std::int64_t> values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

}  // namespace

Status BadView(std::string_view name) {
  return Invalid("{} has more than {} dimensions, or not as many strides as dimensions", name,
                 kMaxRank);
}
Status WrongRank(std::string_view name, int rank, int want) {
  return Invalid("{} has {} dimension(s) but needs {}", name, rank, want);
}
Status WrongDType(std::string_view name, DType dtype, std::string_view allowed) {
  if (dtype == DType::kInvalid) return Invalid("{} has no dtype but needs {}", name, allowed);
  if (SizeOf(dtype) == 0) {
    return Invalid("{} has an unknown dtype ({}) but needs {}", name, static_cast<int>(dtype),
                   allowed);
  }
  return Invalid("{} has dtype {} but needs {}", name, Name(dtype), allowed);
}
Status DTypesDiffer(std::string_view name, DType dtype, std::string_view other, DType want) {
  return Invalid("{} has dtype {} but {} has {}", name, Name(dtype), other, Name(want));
}
Status NegativeDim(std::string_view name, int dim, std::int64_t size) {
  return Invalid("{}.shape[{}] = {} is negative", name, dim, size);
}
Status TooLarge(std::string_view name, std::span<const std::int64_t> shape) {
  return Invalid("{} of shape {} with its strides spans more than 2^63 - 1 bytes", name,
                 List(shape));
}
Status TooMany(std::string_view name, int dim, std::int64_t size, std::int64_t limit) {
  return Invalid("{}.shape[{}] = {} is above the limit of {}", name, dim, size, limit);
}
Status NullData(std::string_view name, std::span<const std::int64_t> shape) {
  return Invalid("{} has no data (a null pointer) but shape {}", name, List(shape));
}
Status Misaligned(std::string_view name, DType dtype) {
  return Invalid("the address of {} is not a multiple of the {} bytes of a {}", name, SizeOf(dtype),
                 Name(dtype));
}
Status SelfOverlap(std::string_view name, std::span<const std::int64_t> shape,
                   std::span<const std::int64_t> strides) {
  return Invalid(
      "output {} with shape {} and strides {} overlaps itself: two elements share one address",
      name, List(shape), List(strides));
}
Status Overlap(std::string_view output, std::string_view other) {
  return Invalid("output {} overlaps {} in memory", output, other);
}
Status DimMismatch(std::string_view name, int dim, std::int64_t size, std::int64_t want,
                   std::string_view why) {
  return Invalid("{}.shape[{}] = {} but must be {} ({})", name, dim, size, want, why);
}
Status SlotsMismatch(std::int64_t slots, std::int64_t tokens, std::int64_t top_k) {
  return Invalid("sorted_indices.shape[0] = {} but must be {}: {} tokens of top_k = {} slots each",
                 slots, tokens * top_k, tokens, top_k);
}

Status Missing(std::string_view name, std::string_view because) {
  return Invalid("{} is missing: {}", name, because);
}
Status Unexpected(std::string_view name, std::string_view because) {
  return Invalid("{} is given but {}", name, because);
}
Status NothingToDo(std::string_view outputs) {
  return Invalid("nothing to compute: none of {} is given", outputs);
}

Status Negative(std::string_view name, std::int64_t value) {
  return Invalid("{} = {} is negative", name, value);
}
Status NegativeAt(std::string_view name, std::int64_t place, std::int64_t value) {
  return Invalid("{}[{}] = {} is negative", name, place, value);
}
Status NotPositive(std::string_view name, std::int64_t value) {
  return Invalid("{} = {} but must be at least 1", name, value);
}
Status NotAmong(std::string_view name, std::int64_t value, std::int64_t first, std::int64_t last) {
  return Invalid("{} = {} but must be from {} to {}", name, value, first, last);
}
Status AboveLimit(std::string_view name, std::int64_t value, std::int64_t limit) {
  return Invalid("{} = {} is above the limit of {}", name, value, limit);
}
Status CapacityAboveTokens(std::int64_t capacity, std::int64_t tokens, std::int64_t experts,
                           double row_bytes) {
  // In floating point: the product is what must not be computed in 64 bits.
  const double bytes = static_cast<double>(capacity) * static_cast<double>(experts) * row_bytes;
  return Invalid("capacity = {} but there are only {} tokens to choose from{}", capacity, tokens,
                 row_bytes == 0 ? "" : fmt::format(" (the rows would take {:.0f} bytes)", bytes));
}
Status RowsNotMultiple(std::int64_t rows, std::int64_t experts) {
  if (experts == 0) return Invalid("there are {} permuted rows but num_experts = 0", rows);
  return Invalid("{} permuted rows are not a multiple of num_experts = {} in drop-and-pad mode",
                 rows, experts);
}
Status SlotsNotMultiple(std::int64_t slots, std::int64_t tokens) {
  if (tokens == 0) return Invalid("sorted_indices.shape[0] = {} but num_tokens = 0", slots);
  return Invalid("sorted_indices.shape[0] = {} but must be a multiple of num_tokens = {}", slots,
                 tokens);
}
Status TooManySlots(std::int64_t tokens, std::int64_t top_k) {
  return Invalid("{} tokens with top_k = {} slots each are more than 2^63 - 1 slots", tokens,
                 top_k);
}
Status TooManyRoutes(std::int64_t routes, std::int64_t limit) {
  return Invalid("routing_map has {} routes or more, above the limit of {}", routes, limit);
}

Status RouteCount(std::int64_t token, std::int64_t routes, std::int64_t top_k) {
  return Invalid("routing_map[{}] has {} routes but top_k = {}", token, routes, top_k);
}
Status RowOutOfRange(std::int64_t slot, std::int64_t row, std::int64_t rows) {
  return OutOfRange("sorted_indices[{}] = {} but there are {} permuted rows", slot, row, rows);
}
Status ExpertOutOfRange(std::int64_t slot, std::int64_t expert, std::int64_t experts) {
  return OutOfRange("indices[{}] = {} but num_experts = {}", slot, expert, experts);
}
Status ExpertTooLarge(std::int64_t slot, std::int64_t expert, std::int64_t limit) {
  return OutOfRange("indices[{}] = {} is above the limit of {}", slot, expert, limit);
}
Status TokenOutOfRange(std::int64_t row, std::int64_t token, std::int64_t tokens) {
  return OutOfRange("sorted_indices[{}] = {} but num_tokens = {}", row, token, tokens);
}

Status ChunkPastRows(std::int64_t chunk, std::int64_t size, std::int64_t begin, std::int64_t rows) {
  return Invalid("split_sizes[{}] = {} but the chunk starts at row {} of {}", chunk, size, begin,
                 rows);
}
Status ChunksOfFewerRows(std::int64_t sum, std::int64_t rows) {
  return Invalid("split_sizes add up to {} but there are {} rows", sum, rows);
}
Status ChunkOutOfRange(std::int64_t place, std::int64_t chunk, std::int64_t chunks) {
  return OutOfRange("order[{}] = {} but there are {} chunks", place, chunk, chunks);
}
Status ChunkTwice(std::int64_t place, std::int64_t chunk, std::int64_t first_place) {
  return Invalid("order[{}] = {} but so is order[{}]", place, chunk, first_place);
}

Status StructSize(std::string_view name, std::size_t size, std::size_t least, std::size_t most) {
  return Invalid("{}.struct_size = {} but must be from {} to {}", name, size, least, most);
}
Status StructTooNew(std::string_view name, std::size_t size, std::size_t known, std::size_t at) {
  return Invalid(
      "{} has {} bytes and byte {} is not 0, but moeperm {} knows the first {} only: a newer "
      "version "
      "is needed",
      name, size, at, Version(), known);
}

Status BadThreadCount(std::string_view source, std::string_view value, int limit) {
  return Invalid("{} = {} but must be a whole number from 1 to {}", source, value, limit);
}
Status UnknownIsa(std::string_view source, std::string_view value, std::string_view available) {
  return Invalid("{} = {} names no instruction set that this build has and this machine runs: {}",
                 source, value, available);
}

Status OutOfMemory(std::uint64_t bytes) {
  return {Code::kOutOfMemory,
          fmt::format("{} bytes of temporary memory could not be allocated", bytes)};
}
Status Internal(std::string_view what) {
  return {Code::kInternal, fmt::format("internal error: {}", what)};
}

}  // namespace moeperm::msg
