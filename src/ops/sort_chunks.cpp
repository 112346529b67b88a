// SPDX-License-Identifier: Apache-2.0
// Chunks in another order: the row each row goes to, then one spread. Backward, the same index read
// the other way.
#include "moeperm/sort_chunks.hpp"

#include <algorithm>

#include "base/status_macros.hpp"
#include "ops/common.hpp"
#include "rowmap/map_view.hpp"
#include "rows/rows.hpp"
#include "rows/weights.hpp"

namespace moeperm {
namespace {

enum class Direction { kForward, kBackward };

// What both directions do: rows and probs from one place to another. The names are the arguments'.
struct Move {
  std::string_view rows_name;
  std::string_view probs_name;
  std::string_view to_rows_name;
  std::string_view to_probs_name;
  const ConstTensorView& rows;
  const std::optional<ConstTensorView>& probs;
  const ConstTensorView& split_sizes;
  const ConstTensorView& order;
  const TensorView& to_rows;
  const std::optional<TensorView>& to_probs;
};

Status Check(const Move& move) {
  MOEPERM_TRY(CheckInput(move.rows_name, move.rows, 2, Kind::kFloat));
  MOEPERM_TRY(CheckCount(move.rows_name, move.rows, 0));
  MOEPERM_TRY(CheckInput("split_sizes", move.split_sizes, 1, Kind::kIndex));
  MOEPERM_TRY(CheckCount("split_sizes", move.split_sizes, 0));
  MOEPERM_TRY(CheckInputOf("order", move.order, Kind::kIndex,
                           {{move.split_sizes.shape(0), "the size of split_sizes"}}));
  const Size rows = {move.rows.shape(0), "rows"};
  MOEPERM_TRY(CheckOutputOf(move.to_rows_name, move.to_rows, move.rows_name, move.rows.dtype(),
                            {rows, {move.rows.shape(1), "hidden"}}));
  if (move.probs && !move.to_probs) return msg::Missing(move.to_probs_name, "probs are given");
  if (!move.probs && move.to_probs) {
    return msg::Unexpected(move.to_probs_name, "there are no probs");
  }
  if (move.probs) {
    MOEPERM_TRY(CheckInputOf(move.probs_name, *move.probs, Kind::kFloat, {rows}));
    MOEPERM_TRY(CheckOutputOf(move.to_probs_name, *move.to_probs, move.probs_name,
                              move.probs->dtype(), {rows}));
  }
  Views views;
  views.In(move.rows_name, move.rows);
  views.In(move.probs_name, move.probs);
  views.In("split_sizes", move.split_sizes);
  views.In("order", move.order);
  views.Out(move.to_rows_name, move.to_rows);
  views.Out(move.to_probs_name, move.to_probs);
  return views.CheckDisjoint();
}

// begins[c]: the first row of chunk c, [chunks + 1].
Status FindBegins(const Move& move, Buffer<std::int64_t>* begins) {
  const std::int64_t chunks = move.split_sizes.shape(0);
  const std::int64_t rows = move.rows.shape(0);
  MOEPERM_TRY(begins->Allocate(chunks + 1));
  std::int64_t row = 0;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t size = IndexAt(move.split_sizes, chunk);
    (*begins)[chunk] = row;
    if (size < 0) return msg::NegativeAt("split_sizes", chunk, size);
    if (size > rows - row) return msg::ChunkPastRows(chunk, size, row, rows);
    row += size;
  }
  (*begins)[chunks] = row;
  return row == rows ? Status() : msg::ChunksOfFewerRows(row, rows);
}

// to[row] = where the row goes.
Status FindRows(const Move& move, Direction direction, Buffer<std::int32_t>* to) {
  const std::int64_t chunks = move.split_sizes.shape(0);
  Buffer<std::int64_t> begins;
  Buffer<std::int32_t> place;  // of a chunk in the order
  MOEPERM_TRY(FindBegins(move, &begins));
  MOEPERM_TRY(place.Allocate(chunks));
  MOEPERM_TRY(to->Allocate(move.rows.shape(0)));
  std::fill_n(place.data(), chunks, -1);
  std::int64_t sorted = 0;
  for (std::int64_t i = 0; i < chunks; ++i) {
    const std::int64_t chunk = IndexAt(move.order, i);
    if (chunk < 0 || chunk >= chunks) return msg::ChunkOutOfRange(i, chunk, chunks);
    if (place[chunk] >= 0) return msg::ChunkTwice(i, chunk, place[chunk]);
    place[chunk] = static_cast<std::int32_t>(i);
    for (std::int64_t row = begins[chunk]; row < begins[chunk + 1]; ++row, ++sorted) {
      const std::int64_t from = direction == Direction::kForward ? row : sorted;
      (*to)[from] = static_cast<std::int32_t>(direction == Direction::kForward ? sorted : row);
    }
  }
  return {};
}

Status Run(const Move& move, Direction direction, const Context& context) {
  MOEPERM_TRY(context.status());
  MOEPERM_TRY(Check(move));
  Buffer<std::int32_t> to;
  MOEPERM_TRY(FindRows(move, direction, &to));
  const TokenRows index = {move.rows.shape(0), to.data(), nullptr, 1};
  SpreadRows(*context.impl(), index, move.rows, move.to_rows);
  if (move.probs) {
    SpreadWeights(*context.impl(), index, nullptr, AsMatrix(*move.probs), *move.to_probs);
  }
  return {};
}

}  // namespace

Status SortChunks(const SortChunksArgs& args, const Context& context) noexcept {
  return Guarded([&] {
    return Run({"rows", "probs", "sorted_rows", "sorted_probs", args.rows, args.probs,
                args.split_sizes, args.order, args.sorted_rows, args.sorted_probs},
               Direction::kForward, context);
  });
}

Status SortChunksGrad(const SortChunksGradArgs& args, const Context& context) noexcept {
  return Guarded([&] {
    return Run(
        {"sorted_rows_grad", "sorted_probs_grad", "rows_grad", "probs_grad", args.sorted_rows_grad,
         args.sorted_probs_grad, args.split_sizes, args.order, args.rows_grad, args.probs_grad},
        Direction::kBackward, context);
  });
}

}  // namespace moeperm
