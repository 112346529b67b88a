// SPDX-License-Identifier: Apache-2.0
// The two kernels of moe_token_permute_with_routing_map_grad.
#include <algorithm>
#include <optional>

#include "cann/model/core.hpp"
#include "cann/model/messages.hpp"
#include "cann/model/model.hpp"

namespace moeperm::cann::model {
namespace {

constexpr std::string_view kKernel = "moe_token_permute_with_routing_map_grad";
constexpr std::size_t kFields = 17;
constexpr std::int64_t kIndexBytes = 4;
constexpr std::int64_t kHiddenStep = 512;  // elements
constexpr std::int64_t kIndexStep = 256;   // bytes

// The fields of key 0, in the order they are serialised in.
struct SumTiling {
  explicit SumTiling(std::span<const host::TilingField> fields)
      : hidden(fields[0].value),
        top_k(fields[1].value),
        rows(fields[2].value),
        hidden_tile(fields[3].value),
        hidden_tiles(fields[4].value),
        hidden_rest(fields[5].value),
        tokens_a_core(fields[6].value),
        longer_cores(fields[7].value),
        token_tile(fields[8].value),
        token_tiles(fields[9].value),
        token_rest(fields[10].value),
        input_buffers(fields[11].value) {}

  std::int64_t hidden;
  std::int64_t top_k;
  std::int64_t rows;
  std::int64_t hidden_tile;
  std::int64_t hidden_tiles;
  std::int64_t hidden_rest;
  std::int64_t tokens_a_core;
  std::int64_t longer_cores;  // the first ones have a token more
  std::int64_t token_tile;
  std::int64_t token_tiles;
  std::int64_t token_rest;
  std::int64_t input_buffers;
};

void Check(const SumTiling& tiling) {
  const auto at_least = [](std::string_view name, std::int64_t value, std::int64_t least,
                           std::string_view rule) {
    if (value < least) throw Fault{FieldOutOfRange(name, value, rule)};
  };
  at_least("hidden_size", tiling.hidden, 0, "at least 0");
  at_least("top_k", tiling.top_k, 0, "at least 0");
  at_least("tokens_core_length", tiling.tokens_a_core, 0, "at least 0");
  at_least("tokens_core_remain", tiling.longer_cores, 0, "at least 0");
  if (tiling.input_buffers < 1 || tiling.input_buffers > 64) {
    throw Fault{FieldOutOfRange("buffer_num", tiling.input_buffers, "1 to 64")};
  }
}

// The sums of one core's tokens.
class SumCore {
 public:
  SumCore(Core& core, const SumTiling& tiling, host::DType dtype, const Source& rows,
          const Source& indices, const Sink& sums)
      : core_(core),
        tiling_(tiling),
        dtype_(dtype),
        element_(BytesOf(dtype)),
        converts_(dtype != host::DType::kFloat32),
        rows_(rows),
        indices_(indices),
        sums_(sums),
        tile_elements_(RoundUp(tiling.hidden_tile, kHiddenStep)),
        in_(core, "the rows", tiling.input_buffers, Product(tile_elements_, element_)),
        out_(core.Allocate("the result", Product(tile_elements_, element_))),
        index_(core.Allocate(
            "the indices",
            RoundUp(Product(Product(tiling.token_tile, tiling.top_k), kIndexBytes), kIndexStep))) {
    if (converts_) {
      sum_ = core.Allocate("the sum", Product(tile_elements_, 4));
      wide_ = core.Allocate("the widened row", Product(tile_elements_, 4));
    }
  }

  void Run() {
    const std::int64_t id = core_.id();
    const std::int64_t more = id < tiling_.longer_cores ? 1 : 0;
    std::int64_t token =
        Add(Product(id, tiling_.tokens_a_core), std::min(id, tiling_.longer_cores));
    for (std::int64_t i = 0; i < tiling_.token_tiles; ++i) {
      TokenTile(token, tiling_.token_tile);
      token = Add(token, tiling_.token_tile);
    }
    TokenTile(token, Add(tiling_.token_rest, more));
  }

 private:
  void TokenTile(std::int64_t first, std::int64_t tokens) {
    if (tokens <= 0) return;
    const std::int64_t slot_bytes = Product(tiling_.top_k, kIndexBytes);
    core_.CopyIn(index_, indices_, Product(first, slot_bytes), Product(tokens, slot_bytes));
    for (std::int64_t i = 0; i < tokens; ++i) {
      Token(first + i, i * tiling_.top_k);
      core_.Finished(1);
    }
  }

  void Token(std::int64_t token, std::int64_t first_slot) {
    for (std::int64_t i = 0; i < tiling_.hidden_tiles; ++i) {
      HiddenTile(token, first_slot, Product(i, tiling_.hidden_tile), tiling_.hidden_tile);
    }
    if (tiling_.hidden_rest > 0) {
      HiddenTile(token, first_slot, Product(tiling_.hidden_tiles, tiling_.hidden_tile),
                 tiling_.hidden_rest);
    }
  }

  [[nodiscard]] std::int64_t RowOf(std::int64_t slot) const { return Core::Int32At(index_, slot); }
  [[nodiscard]] bool HasRow(std::int64_t slot) const {
    const std::int64_t row = RowOf(slot);
    return row >= 0 && row < tiling_.rows;
  }

  [[nodiscard]] std::int64_t Offset(std::int64_t row, std::int64_t at) const {
    return Product(Add(Product(row, tiling_.hidden), at), element_);
  }

  // The slots' rows come in order, so many ahead as the queue is deep.
  void HiddenTile(std::int64_t token, std::int64_t first_slot, std::int64_t at,
                  std::int64_t count) {
    Piece& sum = converts_ ? *sum_ : out_;
    const std::int64_t end = first_slot + tiling_.top_k;
    if (tiling_.top_k == 0 || !HasRow(first_slot)) core_.Fill(sum, 0.0F, count);
    std::int64_t fetched = first_slot;
    for (std::int64_t slot = first_slot; slot < end; ++slot) {
      for (; fetched < end && !in_.full(); ++fetched) {
        if (!HasRow(fetched)) continue;
        core_.CopyIn(in_.Next(), rows_, Offset(RowOf(fetched), at), Product(count, element_));
      }
      if (!HasRow(slot)) continue;
      AddRow(sum, in_.Front(), slot == first_slot, count);
      in_.Pop();
    }
    if (converts_) core_.Narrow(out_, sum, dtype_, count);
    core_.CopyOut(sums_, Offset(token, at), out_, Product(count, element_));
  }

  // The row of a token's first slot is where its sum starts: a copy, whatever the bits.
  void AddRow(Piece& sum, const Piece& row, bool starts, std::int64_t count) {
    if (converts_) {
      core_.Widen(starts ? sum : *wide_, row, dtype_, count);
      if (!starts) core_.Accumulate(sum, *wide_, count);
    } else if (starts) {
      core_.Move(sum, row, count);
    } else {
      core_.Accumulate(sum, row, count);
    }
  }

  Core& core_;
  const SumTiling& tiling_;
  host::DType dtype_;
  std::int64_t element_;
  bool converts_;
  const Source& rows_;
  const Source& indices_;
  const Sink& sums_;
  std::int64_t tile_elements_;
  InputQueue in_;
  Piece out_;
  Piece index_;
  std::optional<Piece> sum_;
  std::optional<Piece> wide_;
};

void SumRows(const host::Tiling& tiling, host::DType dtype, std::int64_t ub_bytes,
             const PermuteGradBuffers& buffers, Report* report) {
  const SumTiling fields(tiling.fields);
  if (tiling.block_dim == 0) return;
  // The tiling of a buffer too small for anything: the original starts its cores all the same, and
  // they find nothing to do.
  if (fields.hidden_tile <= 0) {
    if (fields.hidden > 0) report->idle = NoHiddenTile(ub_bytes);
    return;
  }
  if (fields.token_tile <= 0) {
    if (fields.tokens_a_core > 0) report->idle = NoTokenTile(ub_bytes);
    return;
  }
  Check(fields);
  const Source rows{"permuted_tokens_grad", buffers.rows};
  const Source indices{"sorted_indices", buffers.sorted_indices};
  const Sink sums{"tokens_grad", buffers.tokens_grad};
  for (std::int64_t id = 0; id < tiling.block_dim; ++id) {
    Core core(id, ub_bytes, &report->cores[static_cast<std::size_t>(id)]);
    SumCore(core, fields, dtype, rows, indices, sums).Run();
  }
}

// Drop-and-pad: the gradient of each row's prob goes to its token and expert, one by one. Cores
// take their rows in order, so the last of two equal pairs wins.
void ScatterProbs(const host::Tiling& tiling, host::DType dtype, std::int64_t ub_bytes,
                  const PermuteGradBuffers& buffers, Report* report) {
  const std::int64_t capacity = tiling.fields[12].value;
  const std::int64_t experts = tiling.fields[13].value;
  const std::int64_t tokens = tiling.fields[14].value;
  const std::int64_t element = BytesOf(dtype);
  const Source probs{"permuted_probs_grad", buffers.probs};
  const Source indices{"sorted_indices", buffers.sorted_indices};
  const Sink grads{"probs_grad", buffers.probs_grad};
  const std::int64_t each = tiling.fields[15].value;
  for (std::int64_t id = 0; id < tiling.block_dim; ++id) {
    Core core(id, ub_bytes, &report->cores[static_cast<std::size_t>(id)]);
    const std::int64_t count = id == tiling.block_dim - 1 ? tiling.fields[16].value : each;
    if (count <= 0) continue;
    if (capacity <= 0) throw Fault{FieldOutOfRange("capacity", capacity, "above 0")};
    Piece index = core.Allocate("an index", kIndexBytes);
    Piece value = core.Allocate("a prob", element);
    for (std::int64_t i = Product(id, each), n = 0; n < count; ++i, ++n) {
      core.CopyIn(index, indices, Product(i, kIndexBytes), kIndexBytes);
      core.CopyIn(value, probs, Product(i, element), element);
      const std::int64_t token = Core::Int32At(index, 0);
      if (token < 0 || token >= tokens) throw Fault{IndexOutOfRange(i, token, tokens)};
      core.CopyOut(grads, Product(Add(Product(token, experts), i / capacity), element), value,
                   element);
      core.Finished(1);
    }
  }
}

}  // namespace

Status RunPermuteGrad(const host::Tiling& tiling, host::DType dtype, std::int64_t ub_bytes,
                      const PermuteGradBuffers& buffers, Report* report) noexcept {
  return Guarded([&] {
    StartReport(tiling.block_dim, ub_bytes, report);
    if (tiling.fields.size() != kFields) {
      throw Fault{WrongFields(kKernel, tiling.fields.size(), kFields)};
    }
    if (BytesOf(dtype) == 0) throw Fault{UnknownDType(kKernel, dtype)};
    switch (tiling.key) {
      case 0:
        return SumRows(tiling, dtype, ub_bytes, buffers, report);
      case 1000:
        return ScatterProbs(tiling, dtype, ub_bytes, buffers, report);
      default:
        throw Fault{UnknownKey(kKernel, tiling.key)};
    }
  });
}

}  // namespace moeperm::cann::model
