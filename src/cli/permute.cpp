// SPDX-License-Identifier: Apache-2.0
// permute: the forward operator on a file.
#include <memory>
#include <string>

#include "cli/attributes.hpp"
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
  const ForwardInputs inputs(file, options.attributes);
  ForwardOutputs outputs(inputs, options.int64_indices ? DType::kInt64 : DType::kInt32);
  const double seconds = outputs.Run(context);

  io::Metadata metadata = file.metadata();
  AddToMetadata(inputs.attributes, &metadata);
  return WriteResult("permute", options.output, outputs.tensors(), metadata, seconds, globals);
}

}  // namespace

Command AddPermute(CLI::App& root, Globals& globals) {
  CLI::App* const app = AddSubcommand(
      root, globals, "permute", "Lay the tokens of a case out expert by expert (the forward)");
  const auto options = std::make_shared<Options>();
  app->add_option("CASE", options->input, "File with tokens, routing_map and, if any, probs")
      ->required();
  app->add_option("OUT", options->output,
                  "File to write: permuted_tokens, permuted_probs, sorted_indices, "
                  "tokens_per_expert, expert_offsets")
      ->required();
  options->attributes.AddTo(*app);
  app->add_flag("--int64-indices", options->int64_indices, "sorted_indices as int64, not int32");
  return {app, [options, &globals] { return Run(*options, globals); }};
}

}  // namespace moeperm::cli
