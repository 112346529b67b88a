// SPDX-License-Identifier: Apache-2.0
#include "cli/calls.hpp"

#include "cli/command.hpp"
#include "cli/operators.hpp"

namespace moeperm::cli {
namespace {

TensorView Add(Called& called, const char* name, DType dtype, std::vector<std::int64_t> shape) {
  return called.tensors.emplace_back(name, TensorSpec{dtype, std::move(shape)}).view();
}

std::int64_t SlotsPerToken(const ConstTensorView& sorted_indices, std::int64_t tokens) {
  return tokens > 0 ? sorted_indices.shape(0) / tokens : 0;  // the library refuses a remainder
}

// The outputs of both gradients of the way back; probs_grad has the shape of probs.
template <class Args>
Called CallBackward(Args args, std::int64_t rows, Only only, const Context& context,
                    std::string_view path, Status (*operation)(const Args&, const Context&)) {
  Called called;
  if (only != Only::kProbs) {
    args.permuted_tokens_grad = Add(called, "permuted_tokens_grad", args.tokens_grad.dtype(),
                                    {rows, args.tokens_grad.shape(1)});
  }
  if (args.probs && only != Only::kTokens) {
    const auto shape = args.probs->shape();
    args.probs_grad = Add(called, "probs_grad", args.probs->dtype(), {shape.begin(), shape.end()});
  }
  called.seconds = Time(
      "bringing gradients to the experts", [&] { return operation(args, context); }, path);
  return called;
}

}  // namespace

IndexInputs::IndexInputs(const io::SafetensorsFile& file, const AttributeOptions& options)
    : path(file.path()),
      tokens(LoadTensor(file, "tokens")),
      indices(LoadTensor(file, "indices")),
      probs(LoadTensorIfThere(file, "probs")),
      attributes(ResolveIndexAttributes(options, file, indices.view().shape(0),
                                        indices.view().rank() == 1 ? 1 : indices.view().shape(1))) {
}

Called Call(const IndexInputs& inputs, DType index_dtype, const Context& context) {
  PermuteArgs args;
  args.tokens = inputs.tokens.view();
  args.indices = inputs.indices.view();
  args.probs = ViewOf(inputs.probs);
  args.num_experts = inputs.attributes.num_experts;
  args.num_out_tokens = inputs.attributes.num_out_tokens;
  args.first_row = inputs.attributes.first_row;
  PermuteSpecs specs;
  ThrowUnlessOk(InferPermute(args, &specs), inputs.path);
  Called called;
  const auto add = [&](const char* name, const TensorSpec& spec) {
    return Add(called, name, spec.dtype, spec.shape);
  };
  args.permuted_tokens = add("permuted_tokens", specs.permuted_tokens);
  if (specs.permuted_probs) args.permuted_probs = add("permuted_probs", *specs.permuted_probs);
  specs.sorted_indices.dtype = index_dtype;
  args.sorted_indices = add("sorted_indices", specs.sorted_indices);
  if (args.num_experts > 0) {
    args.tokens_per_expert = add("tokens_per_expert", {DType::kInt64, {args.num_experts}});
  }
  called.seconds = Time(
      "permuting", [&] { return Permute(args, context); }, inputs.path);
  return called;
}

Called Call(PermuteGradArgs args, const Context& context, std::string_view path) {
  Called called;
  if (args.permuted_tokens_grad) {
    args.tokens_grad = Add(called, "tokens_grad", args.permuted_tokens_grad->dtype(),
                           {args.num_tokens, args.permuted_tokens_grad->shape(1)});
  }
  if (args.permuted_probs_grad) {
    args.probs_grad = Add(called, "probs_grad", args.permuted_probs_grad->dtype(),
                          {args.num_tokens, SlotsPerToken(args.sorted_indices, args.num_tokens)});
  }
  called.seconds = Time(
      "bringing gradients back", [&] { return PermuteGrad(args, context); }, path);
  return called;
}

Called Call(UnpermuteArgs args, std::int64_t tokens, const Context& context,
            std::string_view path) {
  Called called;
  args.tokens =
      Add(called, "tokens", args.permuted_tokens.dtype(), {tokens, args.permuted_tokens.shape(1)});
  called.seconds = Time(
      "bringing rows back", [&] { return Unpermute(args, context); }, path);
  return called;
}

Called Call(UnpermuteWithRoutingMapArgs args, std::int64_t tokens, const Context& context,
            std::string_view path) {
  Called called;
  args.tokens =
      Add(called, "tokens", args.permuted_tokens.dtype(), {tokens, args.permuted_tokens.shape(1)});
  if (args.probs) {
    args.gathered_probs =
        Add(called, "gathered_probs", args.probs->dtype(), {args.sorted_indices.shape(0)});
  }
  called.seconds = Time(
      "bringing rows back", [&] { return UnpermuteWithRoutingMap(args, context); }, path);
  return called;
}

Called Call(UnpermuteGradArgs args, std::int64_t rows, Only only, const Context& context,
            std::string_view path) {
  return CallBackward<UnpermuteGradArgs>(args, rows, only, context, path, UnpermuteGrad);
}

Called Call(UnpermuteWithRoutingMapGradArgs args, std::int64_t rows, Only only,
            const Context& context, std::string_view path) {
  return CallBackward<UnpermuteWithRoutingMapGradArgs>(args, rows, only, context, path,
                                                       UnpermuteWithRoutingMapGrad);
}

}  // namespace moeperm::cli
