// SPDX-License-Identifier: Apache-2.0
// grad: the gradient operator on files.
#include <memory>
#include <optional>
#include <string>

#include "cli/attributes.hpp"
#include "cli/calls.hpp"
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

// The permuted gradients that are there, or are asked for by name.
struct Gradients {
  std::optional<InputTensor> tokens;
  std::optional<InputTensor> probs;

  Gradients(const io::SafetensorsFile& file, const std::string& only) {
    if (only == "tokens" || (only.empty() && file.Find("permuted_tokens_grad"))) {
      tokens = LoadTensor(file, "permuted_tokens_grad");
    }
    if (only == "probs" || (only.empty() && file.Find("permuted_probs_grad"))) {
      probs = LoadTensor(file, "permuted_probs_grad");
    }
    if (!tokens && !probs) {
      io::Fail("{}: has neither a tensor 'permuted_tokens_grad' nor 'permuted_probs_grad'",
               file.path());
    }
  }

  void CheckRows(std::optional<std::int64_t> rows, const io::SafetensorsFile& permuted,
                 const io::SafetensorsFile& file) const {
    const auto check = [&](const char* name, const std::optional<InputTensor>& tensor) {
      if (tensor) cli::CheckRows(rows, permuted, file, name, tensor->view(), "--grads");
    };
    check("permuted_tokens_grad", tokens);
    check("permuted_probs_grad", probs);
  }
};

int RunIndexForm(const Options& options, const io::SafetensorsFile& file,
                 const io::SafetensorsFile& permuted, const io::SafetensorsFile& grads,
                 const Context& context, const Globals& globals) {
  if (options.attributes.drop_and_pad.value_or(false)) {
    io::Fail("{}: has a tensor 'indices'; --drop-and-pad is for cases with a routing_map",
             file.path());
  }
  const InputTensor sorted_indices = LoadTensor(permuted, "sorted_indices");
  const InputTensor indices = LoadTensor(file, "indices");
  const Gradients gradients(grads, options.only);
  gradients.CheckRows(FindNumOutTokens(permuted), permuted, grads);
  PermuteGradArgs args;
  args.permuted_tokens_grad = ViewOf(gradients.tokens);
  args.permuted_probs_grad = ViewOf(gradients.probs);
  args.sorted_indices = sorted_indices.view();
  args.num_tokens = indices.view().shape(0);
  args.first_row = FindFirstRow(permuted).value_or(0);
  const Called called = Call(args, context);
  return WriteResult("grad", options.output, called.tensors, permuted.metadata(), called.seconds,
                     globals);
}

int Run(const Options& options, const Globals& globals) {
  const Context context = MakeContext(globals);
  const io::SafetensorsFile file(options.input);
  const io::SafetensorsFile permuted(options.permuted);
  std::optional<io::SafetensorsFile> other;
  if (!options.grads.empty()) other.emplace(options.grads);
  const io::SafetensorsFile& grads = other ? *other : file;
  RefuseToReplace(options.output, {&file, &permuted, &grads});

  CheckSameForm(permuted, file);
  if (IsIndexForm(file)) return RunIndexForm(options, file, permuted, grads, context, globals);

  const InputTensor sorted_indices = LoadTensor(permuted, "sorted_indices");
  const InputTensor routing_map = LoadRoutingMap(file);
  const Gradients gradients(grads, options.only);
  PermuteWithRoutingMapGradArgs args;
  args.permuted_tokens_grad = ViewOf(gradients.tokens);
  args.permuted_probs_grad = ViewOf(gradients.probs);
  args.sorted_indices = sorted_indices.view();
  args.routing_map = routing_map.view();
  args.num_tokens = routing_map.view().shape(0);
  args.num_experts = routing_map.view().shape(1);
  args.drop_and_pad = DropAndPad(options, permuted, file);
  gradients.CheckRows(FindRows(permuted, args.drop_and_pad, args.num_experts), permuted, grads);
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
                  "File with routing_map or indices, permuted_tokens_grad and permuted_probs_grad")
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
