// SPDX-License-Identifier: Apache-2.0
// permute: the forward operator on a file.
#include <memory>
#include <string>
#include <vector>

#include "cli/attributes.hpp"
#include "cli/calls.hpp"
#include "cli/command.hpp"
#include "cli/operators.hpp"

namespace moeperm::cli {
namespace {

struct Options {
  std::string input;
  std::string output;
  AttributeOptions attributes;
  bool int64_indices = false;
};

int Run(const Options& options, const Globals& globals) {
  const Context context = MakeContext(globals);
  const io::SafetensorsFile file(options.input);
  RefuseToReplace(options.output, {&file});
  const DType index_dtype = options.int64_indices ? DType::kInt64 : DType::kInt32;
  // What grad and unpermute need to know goes with the rows.
  io::Metadata metadata = file.metadata();
  const auto write = [&](const Attributes& attributes, std::int64_t tokens,
                         const std::vector<OwnedTensor>& tensors, double seconds) {
    AddToMetadata(attributes, &metadata);
    metadata["num_tokens"] = std::to_string(tokens);
    return WriteResult("permute", options.output, tensors, metadata, seconds, globals);
  };
  if (IsIndexForm(file)) {
    const IndexInputs inputs(file, options.attributes);
    const Called called = Call(inputs, index_dtype, context);
    return write(inputs.attributes, inputs.tokens.view().shape(0), called.tensors, called.seconds);
  }
  const ForwardInputs inputs(file, options.attributes);
  metadata["num_experts"] = std::to_string(inputs.routing_map.view().shape(1));
  ForwardOutputs outputs(inputs, index_dtype);
  const double seconds = outputs.Run(context);
  return write(inputs.attributes, inputs.tokens.view().shape(0), outputs.tensors(), seconds);
}

}  // namespace

Command AddPermute(CLI::App& root, Globals& globals) {
  CLI::App* const app = AddSubcommand(
      root, globals, "permute", "Lay the tokens of a case out expert by expert (the forward)");
  const auto options = std::make_shared<Options>();
  app->add_option("CASE", options->input,
                  "File with tokens, routing_map or indices and, if any, probs")
      ->required();
  app->add_option("OUT", options->output,
                  "File to write: permuted_tokens, permuted_probs, sorted_indices, "
                  "tokens_per_expert, expert_offsets (not with indices)")
      ->required();
  options->attributes.AddTo(*app);
  app->add_flag("--int64-indices", options->int64_indices, "sorted_indices as int64, not int32");
  return {app, [options, &globals] { return Run(*options, globals); }};
}

}  // namespace moeperm::cli
