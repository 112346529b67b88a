// SPDX-License-Identifier: Apache-2.0
// grad: the gradient operator on files.
#include <memory>
#include <optional>
#include <string>

#include "cli/attributes.hpp"
#include "cli/command.hpp"
#include "cli/operators.hpp"
#include "io/error.hpp"

namespace moeperm::cli {
namespace {

struct Options {
  std::string input;
  std::string permuted;
  std::string output;
  std::string grads;
  std::string only;
  bool skip_rows_out_of_range = false;
  AttributeOptions attributes;
};

// The indices decide what they mean, and how many rows there were; the case is only asked where
// their file does not say.
bool DropAndPad(const Options& options, const io::SafetensorsFile& permuted,
                const io::SafetensorsFile& file) {
  if (options.attributes.drop_and_pad) return *options.attributes.drop_and_pad;
  const std::optional<bool> said = FindDropAndPad(permuted);
  return said ? *said : FindDropAndPad(file).value_or(false);
}

// Gradients of another number of rows than were permuted belong to another call. The operator sees
// only that there are rows enough.
void CheckRows(const io::SafetensorsFile& permuted, const io::SafetensorsFile& grads,
               const char* name, const std::optional<InputTensor>& tensor, bool drop_and_pad,
               std::int64_t experts) {
  std::optional<std::int64_t> rows = FindNumOutTokens(permuted);
  if (!tensor || !rows || tensor->view().rank() == 0) return;
  if (drop_and_pad) rows = experts == 0 ? 0 : *rows / experts * experts;
  if (tensor->view().shape(0) == *rows) return;
  io::Fail(
      "{}: has {} permuted rows, but tensor '{}' of {} has {}; give the gradients that belong "
      "to it with --grads",
      permuted.path(), *rows, name, grads.path(), tensor->view().shape(0));
}

int Run(const Options& options, const Globals& globals) {
  const Context context = MakeContext(globals);
  const io::SafetensorsFile file(options.input);
  const io::SafetensorsFile permuted(options.permuted);
  std::optional<io::SafetensorsFile> other;
  if (!options.grads.empty()) other.emplace(options.grads);
  const io::SafetensorsFile& grads = other ? *other : file;
  RefuseToReplace(options.output, {&file, &permuted, &grads});

  const InputTensor sorted_indices = LoadTensor(permuted, "sorted_indices");
  const InputTensor routing_map = LoadRoutingMap(file);
  std::optional<InputTensor> tokens_grads;
  std::optional<InputTensor> probs_grads;
  // What is asked for by name must be there; without a name, what is there is computed.
  if (options.only == "tokens" || (options.only.empty() && grads.Find("permuted_tokens_grad"))) {
    tokens_grads = LoadTensor(grads, "permuted_tokens_grad");
  }
  if (options.only == "probs" || (options.only.empty() && grads.Find("permuted_probs_grad"))) {
    probs_grads = LoadTensor(grads, "permuted_probs_grad");
  }
  if (!tokens_grads && !probs_grads) {
    io::Fail("{}: has neither a tensor 'permuted_tokens_grad' nor 'permuted_probs_grad'",
             grads.path());
  }
  PermuteWithRoutingMapGradArgs args;
  args.permuted_tokens_grad = ViewOf(tokens_grads);
  args.permuted_probs_grad = ViewOf(probs_grads);
  args.sorted_indices = sorted_indices.view();
  args.routing_map = routing_map.view();
  args.num_tokens = routing_map.view().shape(0);
  args.num_experts = routing_map.view().shape(1);
  args.drop_and_pad = DropAndPad(options, permuted, file);
  CheckRows(permuted, grads, "permuted_tokens_grad", tokens_grads, args.drop_and_pad,
            args.num_experts);
  CheckRows(permuted, grads, "permuted_probs_grad", probs_grads, args.drop_and_pad,
            args.num_experts);
  args.skip_rows_out_of_range = options.skip_rows_out_of_range;
  GradOutputs outputs(args);
  const double seconds = outputs.Run(context);
  return WriteResult("grad", options.output, outputs.tensors(), permuted.metadata(), seconds,
                     globals);
}

}  // namespace

Command AddGrad(CLI::App& root, Globals& globals) {
  CLI::App* const app = AddSubcommand(
      root, globals, "grad", "Bring gradients of permuted tokens and probs back to token order");
  const auto options = std::make_shared<Options>();
  app->add_option("CASE", options->input,
                  "File with routing_map, permuted_tokens_grad and permuted_probs_grad")
      ->required();
  app->add_option("PERMUTED", options->permuted, "File with sorted_indices, from `permute`")
      ->required();
  app->add_option("OUT", options->output, "File to write: tokens_grad, probs_grad")->required();
  app->add_option("--grads", options->grads, "Take the permuted gradients from this file")
      ->type_name("FILE");
  app->add_option("--only", options->only, "Compute one gradient only")
      ->check(OneOf({"tokens", "probs"}))
      ->type_name("tokens|probs");
  app->add_flag("--skip-rows-out-of-range", options->skip_rows_out_of_range,
                "Skip slots with a row number past the last row instead of refusing them");
  options->attributes.AddDropAndPadTo(*app, "PERMUTED");
  return {app, [options, &globals] { return Run(*options, globals); }};
}

}  // namespace moeperm::cli
