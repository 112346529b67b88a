// SPDX-License-Identifier: Apache-2.0
// What several operators check and do alike.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "base/buffer.hpp"
#include "base/checks.hpp"
#include "base/context.hpp"
#include "moeperm/tensor.hpp"
#include "rows/jobs.hpp"

namespace moeperm {

// A size a dimension must have, and what it is, for the message.
struct Size {
  std::int64_t value;
  std::string_view what;
};

// An input of these sizes; `name` is the argument's.
Status CheckInputOf(std::string_view name, const ConstTensorView& view, Kind kind,
                    std::initializer_list<Size> sizes);
// An output of these sizes, with the dtype of the argument `like`.
Status CheckOutputOf(std::string_view name, const TensorView& view, Kind kind,
                     std::initializer_list<Size> sizes);
Status CheckOutputOf(std::string_view name, const TensorView& view, std::string_view like,
                     DType dtype, std::initializer_list<Size> sizes);

// Collects the views of a call, then compares their addresses.
class Views {
 public:
  void In(std::string_view name, const ConstTensorView& view) { inputs_.push_back({name, view}); }
  void In(std::string_view name, const std::optional<ConstTensorView>& view) {
    if (view) In(name, *view);
  }
  void Out(std::string_view name, const TensorView& view) { outputs_.push_back({name, view}); }
  void Out(std::string_view name, const std::optional<TensorView>& view) {
    if (view) Out(name, *view);
  }
  [[nodiscard]] Status CheckDisjoint() const { return CheckAllDisjoint(outputs_, inputs_); }

 private:
  std::vector<NamedInput> inputs_;
  std::vector<NamedOutput> outputs_;
};

// The slots of `sorted_indices` a token: not padded, a multiple of the tokens. Where there are no
// tokens, what `of_none` says.
Status SlotsPerToken(const ConstTensorView& sorted_indices, std::int64_t tokens,
                     std::int64_t* top_k, std::int64_t of_none = 0);

// Which slot writes which row, where slots may share a row (the last one wins) and rows may have no
// slot: those are listed, ascending, to be filled otherwise.
struct RowWriters {
  const std::int32_t* rows = nullptr;  // of each slot; -1: it writes nothing
  Buffer<std::int32_t> copy;           // behind `rows` where it is not the index itself
  Buffer<std::int32_t> unwritten;
  std::int64_t num_unwritten = 0;

  Status Find(const TokenRows& index, std::int64_t num_rows);
};

// weight * src[token] to the rows of each token's slots, +0 to rows of no slot, and/or the dot
// products of the slots. `weights` null: rows are copied. As SpreadDotRows otherwise.
struct SpreadBackArgs {
  const ConstTensorView& src;                   // [tokens, hidden]
  const std::optional<ConstTensorView>& other;  // [rows, hidden]; with dots
  const std::optional<TensorView>& dst;         // [rows, hidden]
  const float* weights = nullptr;
  float* dots = nullptr;
};
Status SpreadBack(const Context::Impl& context, const TokenRows& index, const SpreadBackArgs& args);
// That, of an index that says which slot writes which row (-1: it writes none), each row once at
// most. Rows that no slot writes are not touched.
void SpreadBackByWriter(const Context::Impl& context, const TokenRows& index,
                        const std::int32_t* write_rows, const SpreadBackArgs& args);

}  // namespace moeperm
