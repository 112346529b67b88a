// SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/status_macros.hpp"
#include "cann/objects/executor.hpp"
#include "cann/objects/messages.hpp"
#include "cann/ops/checks.hpp"
#include "cann/ops/launch.hpp"
#include "cann/ops/messages.hpp"
#include "moeperm/permute_with_routing_map.hpp"

namespace moeperm::cann {
namespace {

constexpr std::string_view kApi = "aclnnMoeTokenPermuteWithRoutingMapGrad";

struct Call {
  TensorArg rows;        // permutedTokenOutputGrad
  TensorArg probs;       // permutedProbsOutputGradOptional
  TensorArg indices;     // sortedIndices
  TensorArg map;         // routingMapOptional
  TensorArg tokens_out;  // tokensGradOut
  TensorArg probs_out;   // probsGradOutOptional
  std::int64_t num_experts = 0;
  std::int64_t num_tokens = 0;
  bool drop_and_pad = false;

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
  return CheckTiling(kApi, problem);
}

// Zeros for an output the call computes nothing for. One that the program hands over without
// meaning it (no address, no dtype) is left alone.
Status ZeroUnused(const TensorArg& arg, Launch* launch) {
  if (!arg || arg.tensor->data() == nullptr) return {};
  if (!DTypeKnown(arg)) return {};
  View view;
  MOEPERM_TRY(Resolve(arg, &view));
  launch->Zero(std::move(view));
  return {};
}

Status Fit(const TensorArg& arg, const View& view, std::int64_t rows, std::int64_t cols,
           std::string_view why) {
  if (Output::Fits(view, rows, cols)) return {};
  return op_msg::DoesNotFit(arg.name, view.dims, rows, cols, why);
}

// What one gradient needs of a run: the arguments of the library without the output.
struct Part {
  PermuteWithRoutingMapGradArgs args;
  Output* out = nullptr;
};

Status BindTokens(const Call& call, const View& rows, const View& indices, Launch* launch,
                  std::optional<Part>* part) {
  const std::int64_t num_rows = rows.dims[0];
  const std::int64_t hidden = rows.dims[1];
  View out;
  MOEPERM_TRY(Resolve(call.tokens_out, &out));
  std::int64_t used = indices.elements;
  if (!call.drop_and_pad) {
    if (num_rows < call.num_tokens) {  // no slots
      launch->Zero(std::move(out));
      return {};
    }
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
  MOEPERM_TRY(Fit(call.tokens_out, out, call.num_tokens, hidden, "tokensNum x hidden"));
  Part tokens;
  // Drop-and-pad: rows past the indices belong to no token.
  tokens.args.permuted_tokens_grad = AsInput(call.drop_and_pad ? rows.Slice(0, used) : rows);
  tokens.args.num_tokens = call.num_tokens;
  tokens.args.drop_and_pad = call.drop_and_pad;
  tokens.args.skip_rows_out_of_range = true;
  tokens.args.sorted_indices = ConstTensorView(nullptr, DType::kInt32, std::span(&used, 1));
  tokens.out = &launch->Add(Output(std::move(out), call.num_tokens, hidden));
  *part = tokens;
  return {};
}

Status BindPaddedProbs(const Call& call, const View& probs, const View& indices, View out,
                       Launch* launch, std::optional<Part>* part) {
  const std::int64_t capacity = call.rows.dim(0) / call.num_experts;
  const std::int64_t used = capacity * call.num_experts;
  if (used == 0) {
    launch->Zero(std::move(out));
    return {};
  }
  if (probs.elements < used) {
    return op_msg::TooShort(call.probs.name, probs.elements, used, "numExperts x capacity");
  }
  if (indices.elements < used) {
    return op_msg::TooShort(call.indices.name, indices.elements, used, "numExperts x capacity");
  }
  MOEPERM_TRY(
      Fit(call.probs_out, out, call.num_tokens, call.num_experts, "tokensNum x numExperts"));
  Part gradient;
  gradient.args.permuted_probs_grad = AsInput(probs.Slice(0, used));
  gradient.args.num_tokens = call.num_tokens;
  gradient.args.num_experts = call.num_experts;
  gradient.args.drop_and_pad = true;
  gradient.args.sorted_indices = ConstTensorView(nullptr, DType::kInt32, std::span(&used, 1));
  gradient.out = &launch->Add(Output(std::move(out), call.num_tokens, call.num_experts));
  *part = gradient;
  return {};
}

// The map alone decides, its own shape included: neither tokensNum nor numExperts takes part.
Status BindProbs(const Call& call, const View& indices, Launch* launch, std::optional<Part>* part) {
  View probs;
  View out;
  MOEPERM_TRY(launch->Input(call.probs, &probs));
  MOEPERM_TRY(Resolve(call.probs_out, &out));
  if (call.drop_and_pad) {
    return BindPaddedProbs(call, probs, indices, std::move(out), launch, part);
  }
  View map;
  MOEPERM_TRY(launch->Input(call.map, &map));
  if (out.dims != map.dims) {
    return op_msg::ShapesDiffer(call.probs_out.name, out.dims, call.map.name, map.dims);
  }
  const std::int64_t none = 0;
  Part gradient;
  gradient.args.permuted_probs_grad = AsInput(probs);
  gradient.args.routing_map = AsInput(map);
  gradient.args.num_tokens = map.dims[0];
  gradient.args.num_experts = map.dims[1];
  gradient.args.sorted_indices = ConstTensorView(nullptr, DType::kInt32, std::span(&none, 1));
  gradient.out = &launch->Add(Output(std::move(out), map.dims[0], map.dims[1]));
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

// The indices as one dimension, copied where no stride does that.
class Indices {
 public:
  explicit Indices(View view) : view_(std::move(view)) {}
  Status Load() {
    if (std::optional<TensorView> vector = AsVector(view_)) {
      all_ = *vector;
      return {};
    }
    MOEPERM_TRY(copy_.Allocate(view_.elements));
    CopyDense(view_, reinterpret_cast<std::byte*>(copy_.data()));
    all_ = ConstTensorView(copy_.data(), {view_.elements});
    return {};
  }
  [[nodiscard]] ConstTensorView First(std::int64_t count) const {
    return ConstTensorView(all_.data(), DType::kInt32, std::span(&count, 1), all_.strides());
  }

 private:
  View view_;
  Buffer<std::int32_t> copy_;
  ConstTensorView all_;
};

Status RunPart(PermuteWithRoutingMapGradArgs args, Output* tokens_out, Output* probs_out,
               const Indices& indices) {
  args.sorted_indices = indices.First(args.sorted_indices.shape(0));
  if (tokens_out != nullptr) MOEPERM_TRY(tokens_out->Begin(false, &args.tokens_grad.emplace()));
  if (probs_out != nullptr) MOEPERM_TRY(probs_out->Begin(false, &args.probs_grad.emplace()));
  return PermuteWithRoutingMapGrad(args);
}

Status Run(const std::optional<Part>& tokens, const std::optional<Part>& probs, Indices* indices) {
  MOEPERM_TRY(indices->Load());
  if (tokens && probs && CanJoin(*tokens, *probs)) {
    PermuteWithRoutingMapGradArgs args = tokens->args;
    args.permuted_probs_grad = probs->args.permuted_probs_grad;
    args.routing_map = probs->args.routing_map;
    args.num_experts = probs->args.num_experts;
    return RunPart(args, tokens->out, probs->out, *indices);
  }
  if (tokens) MOEPERM_TRY(RunPart(tokens->args, tokens->out, nullptr, *indices));
  return probs ? RunPart(probs->args, nullptr, probs->out, *indices) : Status();
}

// What the library would refuse before it starts (too many tokens, rows, experts).
Status CheckPart(const std::optional<Part>& part) {
  if (!part) return {};
  PermuteWithRoutingMapGradSpecs specs;
  return InferPermuteWithRoutingMapGrad(part->args, &specs);
}

Status BindCall(const Call& call, Work* work) {
  auto launch = std::make_shared<Launch>();
  if (call.empty()) {
    MOEPERM_TRY(ZeroUnused(call.tokens_out, launch.get()));
    MOEPERM_TRY(ZeroUnused(call.probs_out, launch.get()));
    *work = Launch::Finish(std::move(launch));
    return {};
  }
  View rows;
  View index_view;
  std::optional<Part> tokens;
  std::optional<Part> probs;
  MOEPERM_TRY(launch->Input(call.rows, &rows));
  MOEPERM_TRY(launch->Input(call.indices, &index_view));
  MOEPERM_TRY(BindTokens(call, rows, index_view, launch.get(), &tokens));
  if (call.wants_probs()) {
    MOEPERM_TRY(BindProbs(call, index_view, launch.get(), &probs));
  } else {
    MOEPERM_TRY(ZeroUnused(call.probs_out, launch.get()));
  }
  MOEPERM_TRY(CheckPart(tokens));
  MOEPERM_TRY(CheckPart(probs));
  auto indices = std::make_shared<Indices>(std::move(index_view));
  launch->compute = [tokens, probs, indices] { return Run(tokens, probs, indices.get()); };
  *work = Launch::Finish(std::move(launch));
  return {};
}

}  // namespace
}  // namespace moeperm::cann

aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
    const aclTensor* permutedTokenOutputGrad, const aclTensor* permutedProbsOutputGradOptional,
    const aclTensor* sortedIndices, const aclTensor* routingMapOptional, int64_t numExperts,
    int64_t tokensNum, bool dropAndPad, aclTensor* tokensGradOut, aclTensor* probsGradOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor) try {
  using namespace moeperm::cann;
  Call call;
  call.num_experts = numExperts;
  call.num_tokens = tokensNum;
  call.drop_and_pad = dropAndPad;
  const Handle rows = {"permutedTokenOutputGrad", permutedTokenOutputGrad, &call.rows};
  const Handle probs = {"permutedProbsOutputGradOptional", permutedProbsOutputGradOptional,
                        &call.probs};
  const Handle indices = {"sortedIndices", sortedIndices, &call.indices};
  const Handle map = {"routingMapOptional", routingMapOptional, &call.map};
  const Handle tokens_out = {"tokensGradOut", tokensGradOut, &call.tokens_out};
  const Handle probs_out = {"probsGradOutOptional", probsGradOutOptional, &call.probs_out};

  if (numExperts <= 0) return op_msg::NotPositive(kApi, "numExperts", numExperts);
  if (tokensNum <= 0) return op_msg::NotPositive(kApi, "tokensNum", tokensNum);
  MOEPERM_CANN_TRY(CheckGiven(kApi, {rows, indices, tokens_out}));
  if (probs.tensor != nullptr && map.tensor == nullptr) {
    return op_msg::MissingBecause(kApi, map.name, probs.name);
  }
  MOEPERM_CANN_TRY(FindTensors(kApi, {rows, probs, indices, map, tokens_out, probs_out}));
  MOEPERM_CANN_TRY(CheckDTypes(call));
  MOEPERM_CANN_TRY(CheckShapes(call));
  if (!call.empty()) MOEPERM_CANN_TRY(CheckCallTiling(call));
  return MakeExecutor(
      kApi, [call = std::move(call)](Work* work) { return BindCall(call, work); }, 0, workspaceSize,
      executor);
} catch (...) {
  return moeperm::cann::object_msg::OutOfMemory(moeperm::cann::kApi);
}

aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGrad(void* workspace, uint64_t workspaceSize,
                                                   aclOpExecutor* executor,
                                                   const aclrtStream stream) {
  return moeperm::cann::RunExecutor(moeperm::cann::kApi, workspace, workspaceSize, executor,
                                    stream);
}
