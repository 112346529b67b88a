// SPDX-License-Identifier: Apache-2.0
#include "cli/operators.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/output.hpp"
#include "io/error.hpp"

namespace moeperm::cli {
ForwardInputs::ForwardInputs(const io::SafetensorsFile& file, const AttributeOptions& options)
    : path(file.path()),
      tokens(LoadTensor(file, "tokens")),
      routing_map(LoadRoutingMap(file)),
      probs(LoadTensorIfThere(file, "probs")),
      attributes(ResolveAttributes(options, file, routing_map.view().shape(0),
                                   routing_map.view().shape(1))) {}

PermuteWithRoutingMapArgs ForwardArgs(const ForwardInputs& inputs) {
  PermuteWithRoutingMapArgs args;
  args.tokens = inputs.tokens.view();
  args.routing_map = inputs.routing_map.view();
  args.probs = ViewOf(inputs.probs);
  args.num_out_tokens = inputs.attributes.num_out_tokens;
  args.top_k = inputs.attributes.top_k;
  args.drop_and_pad = inputs.attributes.drop_and_pad;
  return args;
}

ForwardOutputs::ForwardOutputs(const ForwardInputs& inputs, DType index_dtype)
    : path_(inputs.path), args_(ForwardArgs(inputs)) {
  PermuteWithRoutingMapSpecs specs;
  ThrowUnlessOk(InferPermuteWithRoutingMap(args_, &specs), path_);
  specs.sorted_indices.dtype = index_dtype;
  const auto add = [&](const char* name, const TensorSpec& spec) {
    return tensors_.emplace_back(name, spec).view();
  };
  args_.permuted_tokens = add("permuted_tokens", specs.permuted_tokens);
  if (specs.permuted_probs) args_.permuted_probs = add("permuted_probs", *specs.permuted_probs);
  args_.sorted_indices = add("sorted_indices", specs.sorted_indices);
  args_.tokens_per_expert = add("tokens_per_expert", specs.tokens_per_expert);
  args_.expert_offsets = add("expert_offsets", specs.expert_offsets);
}

double ForwardOutputs::Run(const Context& context) {
  return Time(
      "permuting", [&] { return PermuteWithRoutingMap(args_, context); }, path_);
}

GradOutputs::GradOutputs(const PermuteWithRoutingMapGradArgs& args) : args_(args) {
  PermuteWithRoutingMapGradSpecs specs;
  ThrowUnlessOk(InferPermuteWithRoutingMapGrad(args_, &specs));
  const auto add = [&](const char* name, const TensorSpec& spec) {
    return tensors_.emplace_back(name, spec).view();
  };
  if (specs.tokens_grad) args_.tokens_grad = add("tokens_grad", *specs.tokens_grad);
  if (specs.probs_grad) args_.probs_grad = add("probs_grad", *specs.probs_grad);
}

double GradOutputs::Run(const Context& context) {
  return Time("bringing gradients back", [&] { return PermuteWithRoutingMapGrad(args_, context); });
}

int WriteResult(std::string_view command, const std::string& path,
                const std::vector<OwnedTensor>& tensors, const io::Metadata& metadata,
                double seconds, const Globals& globals) {
  Json result = {{"command", command}, {"file", path}, {"operator_seconds", seconds}};
  std::vector<io::OutputTensor> outputs;
  for (const OwnedTensor& tensor : tensors) {
    const TensorView view = tensor.view();
    result["tensors"].push_back(TensorJson(tensor.name(), view.dtype(), view.shape()));
    outputs.push_back(io::InMemory(tensor.name(), view));
  }
  WriteTensors(path, std::move(outputs), metadata);
  if (globals.json) {
    PrintJson(result);
  } else {
    // One call on a file not read before says nothing about speed; `bench` does.
    PrintText(fmt::format("wrote {}\n{}", path, TensorTable(result["tensors"])));
  }
  return kSuccess;
}

}  // namespace moeperm::cli
