// SPDX-License-Identifier: Apache-2.0
// The gradient: check the arguments, read or invert the index, reduce the rows.
#include <algorithm>
#include <vector>

#include "base/checks.hpp"
#include "base/status_macros.hpp"
#include "moeperm/permute_with_routing_map.hpp"
#include "rowmap/map_view.hpp"
#include "rowmap/route_scan.hpp"
#include "rowmap/row_map_impl.hpp"
#include "rows/rows.hpp"
#include "rows/weights.hpp"

namespace moeperm {
namespace {

// The four gradients, which the forms with and without a row map share.
struct Gradients {
  const std::optional<ConstTensorView>& permuted_tokens_grad;
  const std::optional<ConstTensorView>& permuted_probs_grad;
  const std::optional<TensorView>& tokens_grad;
  const std::optional<TensorView>& probs_grad;
};

// Inputs and outputs are there where they are needed, and agree with each other.
Status CheckGradients(const Gradients& grads, std::int64_t tokens, std::int64_t experts) {
  if (!grads.tokens_grad && !grads.probs_grad) {
    return msg::NothingToDo("tokens_grad, probs_grad");
  }
  if (grads.tokens_grad && !grads.permuted_tokens_grad) {
    return msg::Missing("permuted_tokens_grad", "tokens_grad is wanted");
  }
  if (grads.probs_grad && !grads.permuted_probs_grad) {
    return msg::Missing("permuted_probs_grad", "probs_grad is wanted");
  }
  if (grads.tokens_grad) {
    const ConstTensorView& in = *grads.permuted_tokens_grad;
    MOEPERM_TRY(CheckInput("permuted_tokens_grad", in, 2, Kind::kFloat));
    MOEPERM_TRY(CheckOutput("tokens_grad", *grads.tokens_grad, 2, Kind::kFloat));
    MOEPERM_TRY(
        CheckSameDType("tokens_grad", *grads.tokens_grad, "permuted_tokens_grad", in.dtype()));
    MOEPERM_TRY(CheckDim("tokens_grad", *grads.tokens_grad, 0, tokens, "the number of tokens"));
    MOEPERM_TRY(CheckDim("tokens_grad", *grads.tokens_grad, 1, in.shape(1),
                         "hidden, as in permuted_tokens_grad"));
  }
  if (grads.probs_grad) {
    const ConstTensorView& in = *grads.permuted_probs_grad;
    MOEPERM_TRY(CheckInput("permuted_probs_grad", in, 1, Kind::kFloat));
    MOEPERM_TRY(CheckOutput("probs_grad", *grads.probs_grad, 2, Kind::kFloat));
    MOEPERM_TRY(CheckSameDType("probs_grad", *grads.probs_grad, "permuted_probs_grad", in.dtype()));
    MOEPERM_TRY(CheckDim("probs_grad", *grads.probs_grad, 0, tokens, "the number of tokens"));
    MOEPERM_TRY(CheckDim("probs_grad", *grads.probs_grad, 1, experts, "the number of experts"));
  }
  return {};
}

Status CheckGradientsDisjoint(const Gradients& grads, std::vector<NamedInput> inputs) {
  std::vector<NamedOutput> outputs;
  if (grads.tokens_grad) {
    inputs.push_back({"permuted_tokens_grad", *grads.permuted_tokens_grad});
    outputs.push_back({"tokens_grad", *grads.tokens_grad});
  }
  if (grads.probs_grad) {
    inputs.push_back({"permuted_probs_grad", *grads.permuted_probs_grad});
    outputs.push_back({"probs_grad", *grads.probs_grad});
  }
  return CheckAllDisjoint(outputs, inputs);
}

bool StreamWeights(const TensorView& probs_grad) {
  return ShouldStream(probs_grad.shape(0) * probs_grad.shape(1) *
                      static_cast<std::int64_t>(SizeOf(probs_grad.dtype())));
}

// probs_grad from an index whose slots know their expert: expert_of(slot).
template <class ExpertOf>
void WriteProbsGrad(const Context::Impl& context, const TokenRows& index, const ExpertOf& expert_of,
                    const ConstTensorView& permuted_probs_grad, const TensorView& probs_grad) {
  const std::int64_t bytes = probs_grad.shape(0) * probs_grad.shape(1) *
                             static_cast<std::int64_t>(SizeOf(probs_grad.dtype()));
  const int parts = TaskCount(*context.pool, index.num_tokens, bytes, 4);
  const bool stream = StreamWeights(probs_grad);
  context.pool->Run(parts, [&](int part) {
    const Range tokens = CutRange(index.num_tokens, parts, part);
    WithWeightGradWriter(
        context, permuted_probs_grad, probs_grad, stream, tokens.begin, [&](auto& writer) {
          for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
            for (std::int64_t slot = index.Begin(token); slot < index.End(token); ++slot) {
              writer.Set(expert_of(slot), index.rows[slot]);
            }
            writer.Next();
          }
        });
  });
}

// Not padded: the map alone decides. No row map is built: the ranks are used as they are found.
Status ProbsGradByMap(const PermuteWithRoutingMapGradArgs& args, const Context::Impl& context,
                      std::int64_t top_k) {
  RouteScan scan;
  MOEPERM_TRY(scan.Scan(context, *args.routing_map, top_k));
  const bool stream = StreamWeights(*args.probs_grad);
  scan.ForEachBlock(context, [&](RouteScan::Block& block) {
    WithWeightGradWriter(
        context, *args.permuted_probs_grad, *args.probs_grad, stream, block.token_begin,
        [&](auto& writer) {
          const std::int32_t* expert = block.experts.data();
          for (std::int64_t token = block.token_begin; token < block.token_end; ++token) {
            for (std::int32_t i = scan.token_counts()[token]; i > 0; --i, ++expert) {
              writer.Set(*expert, block.next_ranks[*expert]++);
            }
            writer.Next();
          }
        });
  });
  return {};
}

// Rows of the permuted gradients; checked to be one number.
Status NumRows(const PermuteWithRoutingMapGradArgs& args, std::int64_t* rows) {
  if (args.permuted_tokens_grad) {
    MOEPERM_TRY(CheckShape("permuted_tokens_grad", *args.permuted_tokens_grad, 2, Kind::kFloat));
    MOEPERM_TRY(CheckCount("permuted_tokens_grad", *args.permuted_tokens_grad, 0));
    *rows = args.permuted_tokens_grad->shape(0);
  }
  if (args.permuted_probs_grad) {
    MOEPERM_TRY(CheckShape("permuted_probs_grad", *args.permuted_probs_grad, 1, Kind::kFloat));
    MOEPERM_TRY(CheckCount("permuted_probs_grad", *args.permuted_probs_grad, 0));
    if (args.permuted_tokens_grad) {
      MOEPERM_TRY(CheckDim("permuted_probs_grad", *args.permuted_probs_grad, 0, *rows,
                           "the rows of permuted_tokens_grad"));
    }
    *rows = args.permuted_probs_grad->shape(0);
  }
  if (args.permuted_tokens_grad || args.permuted_probs_grad) return {};
  return msg::Missing("permuted_tokens_grad", "it or permuted_probs_grad must be given");
}

// What can be known without data and outputs.
Status CheckInputs(const PermuteWithRoutingMapGradArgs& args, std::int64_t* rows) {
  MOEPERM_TRY(CheckRowCount("num_tokens", args.num_tokens));
  MOEPERM_TRY(CheckRowCount("num_experts", args.num_experts));
  MOEPERM_TRY(NumRows(args, rows));
  MOEPERM_TRY(CheckShape("sorted_indices", args.sorted_indices, 1, Kind::kIndex));
  if (args.drop_and_pad) {
    MOEPERM_TRY(CheckDim("sorted_indices", args.sorted_indices, 0, *rows, "the permuted rows"));
  } else {
    const std::int64_t slots = args.sorted_indices.shape(0);
    if (args.num_tokens == 0 ? slots != 0 : slots % args.num_tokens != 0) {
      return msg::SlotsNotMultiple(slots, args.num_tokens);
    }
  }
  if (args.routing_map) {
    MOEPERM_TRY(CheckShape("routing_map", *args.routing_map, 2, Kind::kRoutingMap));
    MOEPERM_TRY(CheckDim("routing_map", *args.routing_map, 0, args.num_tokens, "num_tokens"));
    if (args.permuted_probs_grad || args.num_experts != 0) {
      MOEPERM_TRY(CheckDim("routing_map", *args.routing_map, 1, args.num_experts, "num_experts"));
    }
  }
  return {};
}

Status Run(const PermuteWithRoutingMapGradArgs& args, const Context::Impl& context,
           std::int64_t rows) {
  IndexValues indices;
  MOEPERM_TRY(indices.Load(args.sorted_indices));
  const std::int64_t slots = args.sorted_indices.shape(0);
  if (args.drop_and_pad) {
    TokenOfRowIndex by_token;
    std::int64_t bad = -1;
    MOEPERM_TRY(by_token.Build(context, indices.data(), rows, args.num_tokens, &bad));
    if (bad >= 0) {
      return msg::TokenOutOfRange(bad, IndexAt(args.sorted_indices, bad), args.num_tokens);
    }
    const TokenRows index = {args.num_tokens, by_token.rows.data(), by_token.offsets.data(), 0};
    if (args.tokens_grad) {
      ReduceRows(context, index, {.from_zero = true}, *args.permuted_tokens_grad,
                 *args.tokens_grad);
    }
    if (args.probs_grad) {
      const std::int64_t capacity = args.num_experts == 0 ? 1 : rows / args.num_experts;
      WriteProbsGrad(
          context, index,
          [&](std::int64_t slot) { return static_cast<std::int32_t>(index.rows[slot] / capacity); },
          *args.permuted_probs_grad, *args.probs_grad);
    }
    return {};
  }
  const std::int64_t top_k = args.num_tokens == 0 ? 0 : slots / args.num_tokens;
  if (args.tokens_grad) {
    const TokenRows index = {args.num_tokens, indices.data(), nullptr, top_k};
    const std::int64_t bad =
        ReduceRows(context, index, {.skip_out_of_range = args.skip_rows_out_of_range},
                   *args.permuted_tokens_grad, *args.tokens_grad);
    if (bad >= 0) return msg::RowOutOfRange(bad, IndexAt(args.sorted_indices, bad), rows);
  }
  return args.probs_grad ? ProbsGradByMap(args, context, top_k) : Status();
}

}  // namespace

Status InferPermuteWithRoutingMapGrad(const PermuteWithRoutingMapGradArgs& args,
                                      PermuteWithRoutingMapGradSpecs* specs) noexcept {
  return Guarded([&]() -> Status {
    std::int64_t rows = 0;
    MOEPERM_TRY(CheckInputs(args, &rows));
    specs->tokens_grad.reset();
    specs->probs_grad.reset();
    if (args.permuted_tokens_grad) {
      const ConstTensorView& in = *args.permuted_tokens_grad;
      MOEPERM_TRY(CheckBytes("tokens_grad", in.dtype(), {args.num_tokens, in.shape(1)}));
      specs->tokens_grad = {args.permuted_tokens_grad->dtype(),
                            {args.num_tokens, args.permuted_tokens_grad->shape(1)}};
    }
    if (args.permuted_probs_grad) {
      MOEPERM_TRY(CheckBytes("probs_grad", args.permuted_probs_grad->dtype(),
                             {args.num_tokens, args.num_experts}));
      specs->probs_grad = {args.permuted_probs_grad->dtype(), {args.num_tokens, args.num_experts}};
    }
    return {};
  });
}

Status PermuteWithRoutingMapGrad(const PermuteWithRoutingMapGradArgs& args,
                                 const Context& context) noexcept {
  return Guarded([&]() -> Status {
    MOEPERM_TRY(context.status());
    const Gradients grads = {args.permuted_tokens_grad, args.permuted_probs_grad, args.tokens_grad,
                             args.probs_grad};
    std::int64_t rows = 0;
    MOEPERM_TRY(CheckInputs(args, &rows));
    MOEPERM_TRY(CheckGradients(grads, args.num_tokens, args.num_experts));
    MOEPERM_TRY(CheckInput("sorted_indices", args.sorted_indices, 1, Kind::kIndex));
    std::vector<NamedInput> inputs = {{"sorted_indices", args.sorted_indices}};
    if (args.probs_grad && args.drop_and_pad) {
      if (args.num_experts == 0 ? rows != 0 : rows % args.num_experts != 0) {
        return msg::RowsNotMultiple(rows, args.num_experts);
      }
    } else if (args.probs_grad) {
      if (!args.routing_map) return msg::Missing("routing_map", "probs_grad is wanted");
      MOEPERM_TRY(CheckInput("routing_map", *args.routing_map, 2, Kind::kRoutingMap));
      inputs.push_back({"routing_map", *args.routing_map});
    }
    MOEPERM_TRY(CheckGradientsDisjoint(grads, std::move(inputs)));
    return Run(args, *context.impl(), rows);
  });
}

Status PermuteByRowMapGrad(const RowMap& row_map, const PermuteByRowMapGradArgs& args,
                           const Context& context) noexcept {
  return Guarded([&]() -> Status {
    MOEPERM_TRY(context.status());
    const RowMap::Impl& map = row_map.impl();
    const Gradients grads = {args.permuted_tokens_grad, args.permuted_probs_grad, args.tokens_grad,
                             args.probs_grad};
    MOEPERM_TRY(CheckGradients(grads, map.num_tokens, map.num_experts));
    if (args.tokens_grad) {
      MOEPERM_TRY(CheckDim("permuted_tokens_grad", *args.permuted_tokens_grad, 0, map.num_rows,
                           "the rows of the row map"));
    }
    if (args.probs_grad) {
      MOEPERM_TRY(CheckDim("permuted_probs_grad", *args.permuted_probs_grad, 0, map.num_rows,
                           "the rows of the row map"));
    }
    MOEPERM_TRY(CheckGradientsDisjoint(grads, {}));
    if (args.tokens_grad) {
      ReduceRows(*context.impl(), map.token_rows(), {.from_zero = map.drop_and_pad},
                 *args.permuted_tokens_grad, *args.tokens_grad);
    }
    if (args.probs_grad) {
      WriteProbsGrad(
          *context.impl(), map.token_rows(),
          [&](std::int64_t slot) { return map.slot_experts[slot]; }, *args.permuted_probs_grad,
          *args.probs_grad);
    }
    return {};
  });
}

}  // namespace moeperm
