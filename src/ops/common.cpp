// SPDX-License-Identifier: Apache-2.0
#include "ops/common.hpp"

#include <algorithm>

#include "base/status_macros.hpp"
#include "rows/rows.hpp"

namespace moeperm {
namespace {

Status CheckSizes(std::string_view name, const ConstTensorView& view,
                  std::initializer_list<Size> sizes) {
  int dim = 0;
  for (const Size& size : sizes) {
    MOEPERM_TRY(CheckDim(name, view, dim, size.value, size.what));
    ++dim;
  }
  return {};
}

}  // namespace

Status CheckInputOf(std::string_view name, const ConstTensorView& view, Kind kind,
                    std::initializer_list<Size> sizes) {
  MOEPERM_TRY(CheckInput(name, view, static_cast<int>(sizes.size()), kind));
  return CheckSizes(name, view, sizes);
}

Status CheckOutputOf(std::string_view name, const TensorView& view, Kind kind,
                     std::initializer_list<Size> sizes) {
  MOEPERM_TRY(CheckOutput(name, view, static_cast<int>(sizes.size()), kind));
  return CheckSizes(name, view, sizes);
}

Status CheckOutputOf(std::string_view name, const TensorView& view, std::string_view like,
                     DType dtype, std::initializer_list<Size> sizes) {
  MOEPERM_TRY(CheckOutput(name, view, static_cast<int>(sizes.size()), Kind::kFloat));
  MOEPERM_TRY(CheckSameDType(name, view, like, dtype));
  return CheckSizes(name, view, sizes);
}

Status SlotsPerToken(const ConstTensorView& sorted_indices, std::int64_t tokens,
                     std::int64_t* top_k, std::int64_t of_none) {
  const std::int64_t slots = sorted_indices.shape(0);
  if (tokens == 0 ? slots != 0 : slots % tokens != 0) return msg::SlotsNotMultiple(slots, tokens);
  *top_k = tokens == 0 ? of_none : slots / tokens;
  return {};
}

Status RowWriters::Find(const TokenRows& index, std::int64_t num_rows) {
  const std::int64_t slots = index.num_tokens == 0 ? 0 : index.End(index.num_tokens - 1);
  Buffer<std::int32_t> owner;
  MOEPERM_TRY(owner.Allocate(num_rows));
  std::fill_n(owner.data(), num_rows, -1);
  bool every_slot_writes = true;
  std::int64_t owned = 0;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const std::int32_t row = index.rows[slot];
    if (row < 0 || row >= num_rows) {
      every_slot_writes = every_slot_writes && row < 0;
      continue;
    }
    if (owner[row] < 0) {
      ++owned;
    } else {
      every_slot_writes = false;
    }
    owner[row] = static_cast<std::int32_t>(slot);
  }
  rows = index.rows;
  if (!every_slot_writes) {
    MOEPERM_TRY(copy.Allocate(slots));
    std::fill_n(copy.data(), slots, -1);
    for (std::int64_t row = 0; row < num_rows; ++row) {
      if (owner[row] >= 0) copy[owner[row]] = static_cast<std::int32_t>(row);
    }
    rows = copy.data();
  }
  MOEPERM_TRY(unwritten.Allocate(num_rows - owned));
  num_unwritten = 0;
  for (std::int64_t row = 0; owned < num_rows && row < num_rows; ++row) {
    if (owner[row] < 0) unwritten[num_unwritten++] = static_cast<std::int32_t>(row);
  }
  return {};
}

void SpreadBackByWriter(const Context::Impl& context, const TokenRows& index,
                        const std::int32_t* write_rows, const SpreadBackArgs& args) {
  SpreadDotArgs pass;
  pass.src = &args.src;
  if (args.dots != nullptr) {
    pass.other = &*args.other;
    pass.dots = args.dots;
  }
  if (args.dst && args.dst->shape(1) != 0) {
    if (args.weights != nullptr) {
      pass.dst = &*args.dst;
      pass.write_rows = write_rows;
      pass.weights = args.weights;
    } else {
      TokenRows written = index;
      written.rows = write_rows;
      SpreadRows(context, written, args.src, *args.dst);
    }
  }
  if (pass.dots != nullptr || pass.dst != nullptr) SpreadDotRows(context, index, pass);
}

Status SpreadBack(const Context::Impl& context, const TokenRows& index,
                  const SpreadBackArgs& args) {
  RowWriters writers;
  if (args.dst && args.dst->shape(1) != 0) {
    MOEPERM_TRY(writers.Find(index, args.dst->shape(0)));
  }
  SpreadBackByWriter(context, index, writers.rows, args);
  for (std::int64_t i = 0; i < writers.num_unwritten;) {  // in runs of neighbours
    const std::int64_t begin = writers.unwritten[i];
    std::int64_t end = begin;
    while (i < writers.num_unwritten && writers.unwritten[i] == end) ++i, ++end;
    ZeroRows(context, begin, end, *args.dst);
  }
  return {};
}

}  // namespace moeperm
