// SPDX-License-Identifier: Apache-2.0
// The forward operator: check the arguments, build the index, spread the rows.
#include "moeperm/permute_with_routing_map.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "base/checks.hpp"
#include "base/status_macros.hpp"
#include "rowmap/map_view.hpp"
#include "rowmap/row_map_impl.hpp"
#include "rows/rows.hpp"
#include "rows/weights.hpp"

namespace moeperm {
namespace {

// The arguments' names, which must stay where they are.
using Names = std::deque<std::string>;

// Rows of tokens to their rows; zeros to rows without a token.
void MoveRows(const Context::Impl& context, const RowMap::Impl& map, const ConstTensorView& src,
              const TensorView& dst) {
  SpreadRows(context, map.token_rows(), src, dst);
  for (const Range& run : map.empty_rows) ZeroRows(context, run.begin, run.end, dst);
}

// permuted_tokens and permuted_probs, from an index that has them all.
void PermuteRows(const Context::Impl& context, const RowMap::Impl& map,
                 const ConstTensorView& tokens, const TensorView& permuted_tokens,
                 const std::optional<ConstTensorView>& probs,
                 const std::optional<TensorView>& permuted_probs) {
  MoveRows(context, map, tokens, permuted_tokens);
  if (probs) {
    SpreadWeights(context, map.token_rows(), map.slot_experts.data(), *probs, *permuted_probs);
    for (const Range& run : map.empty_rows) ZeroWeights(run.begin, run.end, *permuted_probs);
  }
}

Status CheckProbs(const ConstTensorView& probs, std::int64_t tokens, std::int64_t experts) {
  MOEPERM_TRY(CheckShape("probs", probs, 2, Kind::kFloat));
  MOEPERM_TRY(CheckDim("probs", probs, 0, tokens, "the number of tokens"));
  return CheckDim("probs", probs, 1, experts, "the number of experts");
}

Status CheckPermutedProbs(const std::optional<ConstTensorView>& probs,
                          const std::optional<TensorView>& permuted_probs, std::int64_t rows,
                          std::string_view why_rows) {
  if (probs && !permuted_probs) {
    return msg::Missing("permuted_probs", "it is needed where probs are given");
  }
  if (!probs && permuted_probs) return msg::Unexpected("permuted_probs", "there are no probs");
  if (!probs) return {};
  MOEPERM_TRY(CheckInput("probs", *probs, 2, Kind::kFloat));
  MOEPERM_TRY(CheckOutput("permuted_probs", *permuted_probs, 1, Kind::kFloat));
  MOEPERM_TRY(CheckSameDType("permuted_probs", *permuted_probs, "probs", probs->dtype()));
  return CheckDim("permuted_probs", *permuted_probs, 0, rows, why_rows);
}

Status CheckPermutedTokens(const ConstTensorView& tokens, const TensorView& permuted_tokens,
                           std::int64_t rows, std::string_view why_rows) {
  MOEPERM_TRY(CheckInput("tokens", tokens, 2, Kind::kFloat));
  MOEPERM_TRY(CheckOutput("permuted_tokens", permuted_tokens, 2, Kind::kFloat));
  MOEPERM_TRY(CheckSameDType("permuted_tokens", permuted_tokens, "tokens", tokens.dtype()));
  MOEPERM_TRY(CheckDim("permuted_tokens", permuted_tokens, 0, rows, why_rows));
  return CheckDim("permuted_tokens", permuted_tokens, 1, tokens.shape(1), "hidden, as in tokens");
}

Status CheckIndexOutput(std::string_view name, const TensorView& view, std::int64_t size,
                        std::string_view why) {
  MOEPERM_TRY(CheckOutput(name, view, 1, Kind::kIndex));
  return CheckDim(name, view, 0, size, why);
}

// Rows of the outputs; the arguments are checked.
std::int64_t NumRows(const PermuteWithRoutingMapArgs& args) {
  const std::int64_t experts = args.routing_map.shape(1);
  if (!args.drop_and_pad) return args.num_out_tokens;
  return experts == 0 ? 0 : args.num_out_tokens / experts * experts;
}

std::int64_t Capacity(const PermuteWithRoutingMapArgs& args) {
  const std::int64_t experts = args.routing_map.shape(1);
  return args.drop_and_pad && experts != 0 ? args.num_out_tokens / experts : 0;
}

std::int64_t NumIndices(const PermuteWithRoutingMapArgs& args) {
  return args.drop_and_pad ? NumRows(args) : args.routing_map.shape(0) * args.top_k;
}

// What can be known without data and outputs.
Status CheckInputs(const PermuteWithRoutingMapArgs& args) {
  MOEPERM_TRY(CheckShape("tokens", args.tokens, 2, Kind::kFloat));
  MOEPERM_TRY(CheckShape("routing_map", args.routing_map, 2, Kind::kRoutingMap));
  MOEPERM_TRY(CheckCount("routing_map", args.routing_map, 0));
  MOEPERM_TRY(CheckCount("routing_map", args.routing_map, 1));
  const std::int64_t tokens = args.routing_map.shape(0);
  const std::int64_t experts = args.routing_map.shape(1);
  MOEPERM_TRY(CheckDim("tokens", args.tokens, 0, tokens, "the rows of routing_map"));
  if (args.probs) MOEPERM_TRY(CheckProbs(*args.probs, tokens, experts));
  if (args.num_out_tokens < 0) return msg::Negative("num_out_tokens", args.num_out_tokens);
  if (args.drop_and_pad) {
    MOEPERM_TRY(CheckCapacity(Capacity(args), tokens, experts,
                              static_cast<double>(args.tokens.shape(1)) *
                                  static_cast<double>(SizeOf(args.tokens.dtype()))));
    return CheckBytes("permuted_tokens", args.tokens.dtype(),
                      {NumRows(args), args.tokens.shape(1)});
  }
  MOEPERM_TRY(CheckRowCount("num_out_tokens", args.num_out_tokens));
  if (args.top_k < 0) return msg::Negative("top_k", args.top_k);
  std::int64_t slots = 0;
  if (!CheckedMul(tokens, args.top_k, &slots)) return msg::TooManySlots(tokens, args.top_k);
  MOEPERM_TRY(CheckBytes("sorted_indices", DType::kInt64, {slots}));
  return CheckBytes("permuted_tokens", args.tokens.dtype(), {NumRows(args), args.tokens.shape(1)});
}

Status CheckOutputs(const PermuteWithRoutingMapArgs& args) {
  const std::int64_t rows = NumRows(args);
  const std::int64_t experts = args.routing_map.shape(1);
  const std::string_view why_rows =
      args.drop_and_pad ? "num_out_tokens, down to a multiple of the experts" : "num_out_tokens";
  MOEPERM_TRY(CheckInput("routing_map", args.routing_map, 2, Kind::kRoutingMap));
  MOEPERM_TRY(CheckPermutedTokens(args.tokens, args.permuted_tokens, rows, why_rows));
  MOEPERM_TRY(CheckPermutedProbs(args.probs, args.permuted_probs, rows, why_rows));
  MOEPERM_TRY(CheckOutput("sorted_indices", args.sorted_indices, 1, Kind::kIndex));
  if (args.drop_and_pad) {
    MOEPERM_TRY(CheckDim("sorted_indices", args.sorted_indices, 0, rows, why_rows));
  } else if (args.sorted_indices.shape(0) != NumIndices(args)) {
    return msg::SlotsMismatch(args.sorted_indices.shape(0), args.routing_map.shape(0), args.top_k);
  }
  std::vector<NamedInput> inputs = {{"tokens", args.tokens}, {"routing_map", args.routing_map}};
  std::vector<NamedOutput> outputs = {{"permuted_tokens", args.permuted_tokens},
                                      {"sorted_indices", args.sorted_indices}};
  if (args.probs) {
    inputs.push_back({"probs", *args.probs});
    outputs.push_back({"permuted_probs", *args.permuted_probs});
  }
  if (args.tokens_per_expert) {
    MOEPERM_TRY(CheckIndexOutput("tokens_per_expert", *args.tokens_per_expert, experts,
                                 "the number of experts"));
    outputs.push_back({"tokens_per_expert", *args.tokens_per_expert});
  }
  if (args.expert_offsets) {
    MOEPERM_TRY(CheckIndexOutput("expert_offsets", *args.expert_offsets, experts + 1,
                                 "the number of experts, and 1"));
    outputs.push_back({"expert_offsets", *args.expert_offsets});
  }
  return CheckAllDisjoint(outputs, inputs);
}

void WriteIndices(const Buffer<std::int64_t>& values, const std::optional<TensorView>& view) {
  if (!view) return;
  for (std::int64_t i = 0; i < values.size(); ++i) SetIndex(*view, i, values[i]);
}

// Not padded: top_k slots a token, none of which has more routes.
void WriteSlots(const Context::Impl& context, const RowMap::Impl& map, std::int64_t top_k,
                const TensorView& sorted_indices) {
  const int parts = TaskCount(*context.pool, map.num_tokens, map.num_tokens * top_k * 4, 4);
  context.pool->Run(parts, [&](int part) {
    const Range tokens = CutRange(map.num_tokens, parts, part);
    for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
      const std::int32_t* row = map.slot_rows.data() + map.token_offsets[token];
      const std::int64_t routes = map.token_offsets[token + 1] - map.token_offsets[token];
      for (std::int64_t k = 0; k < top_k; ++k) {
        SetIndex(sorted_indices, token * top_k + k, k < routes ? row[k] : -1);
      }
    }
  });
}

Status Run(const PermuteWithRoutingMapArgs& args, const Context::Impl& context) {
  RowMapOptions options;
  options.drop_and_pad = args.drop_and_pad;
  options.capacity = Capacity(args);
  if (!args.drop_and_pad) options.num_rows = args.num_out_tokens;
  RowMap::Impl map;
  MOEPERM_TRY(BuildRowMap(context, args.routing_map, options,
                          args.drop_and_pad ? std::nullopt : std::optional(args.top_k), &map));
  if (args.drop_and_pad) {
    for (std::int64_t row = 0; row < map.num_rows; ++row) {
      SetIndex(args.sorted_indices, row, map.row_tokens[row]);
    }
  } else {
    WriteSlots(context, map, args.top_k, args.sorted_indices);
  }
  WriteIndices(map.tokens_per_expert, args.tokens_per_expert);
  WriteIndices(map.expert_offsets, args.expert_offsets);
  PermuteRows(context, map, args.tokens, args.permuted_tokens, args.probs, args.permuted_probs);
  return {};
}

}  // namespace

Status InferPermuteWithRoutingMap(const PermuteWithRoutingMapArgs& args,
                                  PermuteWithRoutingMapSpecs* specs) noexcept {
  return Guarded([&]() -> Status {
    MOEPERM_TRY(CheckInputs(args));
    const std::int64_t rows = NumRows(args);
    const std::int64_t experts = args.routing_map.shape(1);
    specs->permuted_tokens = {args.tokens.dtype(), {rows, args.tokens.shape(1)}};
    specs->permuted_probs.reset();
    if (args.probs) specs->permuted_probs = {args.probs->dtype(), {rows}};
    specs->sorted_indices = {DType::kInt32, {NumIndices(args)}};
    specs->tokens_per_expert = {DType::kInt64, {experts}};
    specs->expert_offsets = {DType::kInt64, {experts + 1}};
    return {};
  });
}

Status PermuteWithRoutingMap(const PermuteWithRoutingMapArgs& args,
                             const Context& context) noexcept {
  return Guarded([&]() -> Status {
    MOEPERM_TRY(context.status());
    MOEPERM_TRY(CheckInputs(args));
    MOEPERM_TRY(CheckOutputs(args));
    return Run(args, *context.impl());
  });
}

namespace {

Status CheckSide(std::span<const SideData> side, const RowMap::Impl& map, Names* names,
                 std::vector<NamedInput>* inputs, std::vector<NamedOutput>* outputs) {
  for (std::size_t i = 0; i < side.size(); ++i) {
    const std::string_view src = names->emplace_back("side[" + std::to_string(i) + "].src");
    const std::string_view dst = names->emplace_back("side[" + std::to_string(i) + "].dst");
    MOEPERM_TRY(CheckInput(src, side[i].src, 2, Kind::kAny));
    MOEPERM_TRY(CheckOutput(dst, side[i].dst, 2, Kind::kAny));
    MOEPERM_TRY(CheckDim(src, side[i].src, 0, map.num_tokens, "the tokens of the row map"));
    MOEPERM_TRY(CheckSameDType(dst, side[i].dst, src, side[i].src.dtype()));
    MOEPERM_TRY(CheckDim(dst, side[i].dst, 0, map.num_rows, "the rows of the row map"));
    MOEPERM_TRY(CheckDim(dst, side[i].dst, 1, side[i].src.shape(1), "the columns of src"));
    inputs->push_back({src, side[i].src});
    outputs->push_back({dst, side[i].dst});
  }
  return {};
}

}  // namespace

Status PermuteByRowMap(const RowMap& row_map, const PermuteByRowMapArgs& args,
                       const Context& context) noexcept {
  return Guarded([&]() -> Status {
    MOEPERM_TRY(context.status());
    const RowMap::Impl& map = row_map.impl();
    constexpr std::string_view why_rows = "the rows of the row map";
    MOEPERM_TRY(CheckShape("tokens", args.tokens, 2, Kind::kFloat));
    MOEPERM_TRY(CheckDim("tokens", args.tokens, 0, map.num_tokens, "the tokens of the row map"));
    if (args.probs) MOEPERM_TRY(CheckProbs(*args.probs, map.num_tokens, map.num_experts));
    MOEPERM_TRY(CheckPermutedTokens(args.tokens, args.permuted_tokens, map.num_rows, why_rows));
    MOEPERM_TRY(CheckPermutedProbs(args.probs, args.permuted_probs, map.num_rows, why_rows));
    std::vector<NamedInput> inputs = {{"tokens", args.tokens}};
    std::vector<NamedOutput> outputs = {{"permuted_tokens", args.permuted_tokens}};
    if (args.probs) {
      inputs.push_back({"probs", *args.probs});
      outputs.push_back({"permuted_probs", *args.permuted_probs});
    }
    Names names;
    MOEPERM_TRY(CheckSide(args.side, map, &names, &inputs, &outputs));
    MOEPERM_TRY(CheckAllDisjoint(outputs, inputs));
    PermuteRows(*context.impl(), map, args.tokens, args.permuted_tokens, args.probs,
                args.permuted_probs);
    for (const SideData& side : args.side) MoveRows(*context.impl(), map, side.src, side.dst);
    return {};
  });
}

}  // namespace moeperm
