// SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"

#include <optional>
#include <utility>

#include "aclnn/opdev/op_errno.h"
#include "base/status_macros.hpp"
#include "cann/ops/checks.hpp"
#include "cann/ops/launch.hpp"
#include "cann/ops/messages.hpp"
#include "moeperm/permute_with_routing_map.hpp"

namespace moeperm::cann {
namespace {

constexpr std::string_view kApi = "aclnnMoeTokenPermuteWithRoutingMapGrad";
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"permuted_tokens_grad", "permutedTokenOutputGrad"},
    {"permuted_probs_grad", "permutedProbsOutputGradOptional"},
    {"sorted_indices", "sortedIndices"},
    {"routing_map", "routingMapOptional"},
    {"num_experts", "numExperts"},
    {"num_tokens", "tokensNum"},
    {"tokens_grad", "tokensGradOut"},
    {"probs_grad", "probsGradOutOptional"}};
constexpr Api kEntry = {kApi, ACLNN_ERR_INNER_NULLPTR, false, kNames};

struct Call {
  TensorArg rows;     // permutedTokenOutputGrad
  TensorArg probs;    // permutedProbsOutputGradOptional
  TensorArg indices;  // sortedIndices
  TensorArg map;      // routingMapOptional
  std::int64_t num_experts;
  std::int64_t num_tokens;
  bool drop_and_pad;
  TensorArg tokens_out;  // tokensGradOut
  TensorArg probs_out;   // probsGradOutOptional

  int Check();
  Status Bind(Launch* launch) const;

  // The original returns at once and leaves the outputs as they are.
  [[nodiscard]] bool empty() const { return rows.empty() || tokens_out.empty(); }
  [[nodiscard]] bool wants_probs() const { return probs && probs_out; }
};

int CheckDTypes(const Call& call) {
  MOEPERM_CANN_TRY(CheckFloat(kApi, call.rows));
  MOEPERM_CANN_TRY(CheckSameDType(kApi, call.tokens_out, call.rows));
  if (call.probs) {
    MOEPERM_CANN_TRY(CheckFloat(kApi, call.probs));
    if (call.probs_out) MOEPERM_CANN_TRY(CheckSameDType(kApi, call.probs_out, call.probs));
    MOEPERM_CANN_TRY(CheckProbsDType(kApi, call.probs, call.rows));
  }
  if (call.map) MOEPERM_CANN_TRY(CheckRoutingMap(kApi, call.map));
  return CheckInt32(kApi, call.indices);
}

int CheckShapes(const Call& call) {
  MOEPERM_CANN_TRY(CheckDims(kApi, {&call.rows, &call.probs, &call.indices, &call.map,
                                    &call.tokens_out, &call.probs_out}));
  MOEPERM_CANN_TRY(CheckRank(kApi, call.rows, 2));
  if (call.map) MOEPERM_CANN_TRY(CheckRank(kApi, call.map, 2));
  return call.probs ? CheckRank(kApi, call.probs, 1) : 0;
}

int CheckCallTiling(const Call& call) {
  // In drop-and-pad mode only the probs have a kernel of their own.
  if (call.drop_and_pad && !call.wants_probs()) return 0;
  host::Problem problem;
  problem.inputs = {Describe(call.rows), Describe(call.probs), Describe(call.indices),
                    Describe(call.map)};
  problem.outputs = {Describe(call.tokens_out), Describe(call.probs_out)};
  problem.attrs = {call.num_experts, call.num_tokens, call.drop_and_pad};
  return CheckTiling(kEntry, problem);
}

// What one gradient needs of a run: the arguments of the library without the output.
struct Part {
  PermuteWithRoutingMapGradArgs args;
  Output* out = nullptr;
};

// An output that is meant, whatever it holds.
Status ZeroAll(const TensorArg& arg, Launch* launch) {
  View view;
  MOEPERM_TRY(Resolve(arg, &view));
  launch->Zero(std::move(view));
  return {};
}

Status BindTokens(const Call& call, const View& rows, const View& indices, Launch* launch,
                  std::optional<Part>* part) {
  const std::int64_t num_rows = rows.dims[0];
  const std::int64_t hidden = rows.dims[1];
  std::int64_t used = indices.elements;
  if (!call.drop_and_pad) {
    if (num_rows < call.num_tokens) return ZeroAll(call.tokens_out, launch);  // no slots
    if (num_rows % call.num_tokens != 0) {
      return op_msg::RowsNotMultiple(call.rows.name, num_rows, call.num_tokens);
    }
    if (used < num_rows) {
      return op_msg::TooShort(call.indices.name, used, num_rows, "a slot for each permuted row");
    }
    used = num_rows;
  } else if (used > num_rows) {
    return op_msg::TooLong(call.indices.name, used, num_rows, "rows of permutedTokenOutputGrad");
  }
  Part tokens;
  MOEPERM_TRY(launch->AddOutput(call.tokens_out, call.num_tokens, hidden, "tokensNum x hidden",
                                &tokens.out));
  // Drop-and-pad: rows past the indices belong to no token.
  tokens.args.permuted_tokens_grad = AsInput(call.drop_and_pad ? rows.Slice(0, used) : rows);
  tokens.args.num_tokens = call.num_tokens;
  tokens.args.drop_and_pad = call.drop_and_pad;
  tokens.args.skip_rows_out_of_range = true;
  tokens.args.sorted_indices = ConstTensorView(nullptr, DType::kInt32, std::span(&used, 1));
  *part = tokens;
  return {};
}

Status BindPaddedProbs(const Call& call, const View& probs, const View& indices, Launch* launch,
                       std::optional<Part>* part) {
  const std::int64_t capacity = call.rows.dim(0) / call.num_experts;
  const std::int64_t used = capacity * call.num_experts;
  if (used == 0) return ZeroAll(call.probs_out, launch);
  if (probs.elements < used) {
    return op_msg::TooShort(call.probs.name, probs.elements, used, "numExperts x capacity");
  }
  if (indices.elements < used) {
    return op_msg::TooShort(call.indices.name, indices.elements, used, "numExperts x capacity");
  }
  Part gradient;
  MOEPERM_TRY(launch->AddOutput(call.probs_out, call.num_tokens, call.num_experts,
                                "tokensNum x numExperts", &gradient.out));
  gradient.args.permuted_probs_grad = AsInput(probs.Slice(0, used));
  gradient.args.num_tokens = call.num_tokens;
  gradient.args.num_experts = call.num_experts;
  gradient.args.drop_and_pad = true;
  gradient.args.sorted_indices = ConstTensorView(nullptr, DType::kInt32, std::span(&used, 1));
  *part = gradient;
  return {};
}

// The map alone decides, its own shape included: neither tokensNum nor numExperts takes part.
Status BindProbs(const Call& call, const View& indices, Launch* launch, std::optional<Part>* part) {
  View probs;
  MOEPERM_TRY(launch->Input(call.probs, &probs));
  if (call.drop_and_pad) return BindPaddedProbs(call, probs, indices, launch, part);
  View map;
  MOEPERM_TRY(launch->Input(call.map, &map));
  const std::vector<std::int64_t>& out = call.probs_out.meta->dims;
  if (out != map.dims) {
    return op_msg::ShapesDiffer(call.probs_out.name, out, call.map.name, map.dims);
  }
  const std::int64_t none = 0;
  Part gradient;
  gradient.args.permuted_probs_grad = AsInput(probs);
  gradient.args.routing_map = AsInput(map);
  gradient.args.num_tokens = map.dims[0];
  gradient.args.num_experts = map.dims[1];
  gradient.args.sorted_indices = ConstTensorView(nullptr, DType::kInt32, std::span(&none, 1));
  MOEPERM_TRY(launch->AddOutput(call.probs_out, map.dims[0], map.dims[1], "as routingMapOptional",
                                &gradient.out));
  *part = gradient;
  return {};
}

// The two gradients run as one call of the library where they agree on rows, tokens and indices.
bool CanJoin(const Part& tokens, const Part& probs) {
  const PermuteWithRoutingMapGradArgs& a = tokens.args;
  const PermuteWithRoutingMapGradArgs& b = probs.args;
  return a.num_tokens == b.num_tokens &&
         a.permuted_tokens_grad->shape(0) == b.permuted_probs_grad->shape(0) &&
         (!a.drop_and_pad || a.sorted_indices.shape(0) == b.sorted_indices.shape(0));
}

Status RunPart(PermuteWithRoutingMapGradArgs args, Output* tokens_out, Output* probs_out,
               const ConstTensorView& indices) {
  args.sorted_indices = FirstOf(indices, args.sorted_indices.shape(0));
  if (tokens_out != nullptr) MOEPERM_TRY(tokens_out->Begin(false, &args.tokens_grad.emplace()));
  if (probs_out != nullptr) MOEPERM_TRY(probs_out->Begin(false, &args.probs_grad.emplace()));
  return PermuteWithRoutingMapGrad(args);
}

Status Run(const std::optional<Part>& tokens, const std::optional<Part>& probs,
           Reshaped* reshaped) {
  ConstTensorView indices;
  MOEPERM_TRY(reshaped->Load(&indices));
  if (tokens && probs && CanJoin(*tokens, *probs)) {
    PermuteWithRoutingMapGradArgs args = tokens->args;
    args.permuted_probs_grad = probs->args.permuted_probs_grad;
    args.routing_map = probs->args.routing_map;
    args.num_experts = probs->args.num_experts;
    return RunPart(args, tokens->out, probs->out, indices);
  }
  if (tokens) MOEPERM_TRY(RunPart(tokens->args, tokens->out, nullptr, indices));
  return probs ? RunPart(probs->args, nullptr, probs->out, indices) : Status();
}

// What the library would refuse before it starts (too many tokens, rows, experts).
Status CheckPart(const std::optional<Part>& part) {
  if (!part) return {};
  PermuteWithRoutingMapGradSpecs specs;
  return InferPermuteWithRoutingMapGrad(part->args, &specs);
}

Status Call::Bind(Launch* launch) const {
  if (empty()) {
    MOEPERM_TRY(launch->Zero(tokens_out));
    return launch->Zero(probs_out);
  }
  View row_view;
  View index_view;
  std::optional<Part> tokens_part;
  std::optional<Part> probs_part;
  MOEPERM_TRY(launch->Input(rows, &row_view));
  MOEPERM_TRY(launch->Input(indices, &index_view));
  MOEPERM_TRY(BindTokens(*this, row_view, index_view, launch, &tokens_part));
  if (wants_probs()) {
    MOEPERM_TRY(BindProbs(*this, index_view, launch, &probs_part));
  } else {
    MOEPERM_TRY(launch->Zero(probs_out));
  }
  MOEPERM_TRY(CheckPart(tokens_part));
  MOEPERM_TRY(CheckPart(probs_part));
  const std::int64_t slots = index_view.elements;
  Reshaped* const column = &launch->AddReshaped(Reshaped(std::move(index_view), slots, 1));
  launch->compute = [tokens_part, probs_part, column] {
    return Run(tokens_part, probs_part, column);
  };
  return {};
}

int Call::Check() {
  if (num_experts <= 0) return op_msg::NotPositive(kApi, "numExperts", num_experts);
  if (num_tokens <= 0) return op_msg::NotPositive(kApi, "tokensNum", num_tokens);
  MOEPERM_CANN_TRY(CheckGiven(kApi, {&rows, &indices, &tokens_out}));
  MOEPERM_CANN_TRY(CheckGivenWith(kApi, map, probs));
  MOEPERM_CANN_TRY(FindTensors(kApi, {&rows, &probs, &indices, &map, &tokens_out, &probs_out}));
  MOEPERM_CANN_TRY(CheckDTypes(*this));
  MOEPERM_CANN_TRY(CheckShapes(*this));
  return empty() ? 0 : CheckCallTiling(*this);
}

}  // namespace
}  // namespace moeperm::cann

aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
    const aclTensor* permutedTokenOutputGrad, const aclTensor* permutedProbsOutputGradOptional,
    const aclTensor* sortedIndices, const aclTensor* routingMapOptional, int64_t numExperts,
    int64_t tokensNum, bool dropAndPad, aclTensor* tokensGradOut, aclTensor* probsGradOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  using namespace moeperm::cann;
  return Prepare(kEntry,
                 Call{.rows = {"permutedTokenOutputGrad", permutedTokenOutputGrad},
                      .probs = {"permutedProbsOutputGradOptional", permutedProbsOutputGradOptional},
                      .indices = {"sortedIndices", sortedIndices},
                      .map = {"routingMapOptional", routingMapOptional},
                      .num_experts = numExperts,
                      .num_tokens = tokensNum,
                      .drop_and_pad = dropAndPad,
                      .tokens_out = {"tokensGradOut", tokensGradOut},
                      .probs_out = {"probsGradOutOptional", probsGradOutOptional}},
                 workspaceSize, executor);
}

aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGrad(void* workspace, uint64_t workspaceSize,
                                                   aclOpExecutor* executor, aclrtStream stream) {
  return moeperm::cann::RunExecutor(moeperm::cann::kApi, workspace, workspaceSize, executor,
                                    stream);
}
