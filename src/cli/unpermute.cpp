// SPDX-License-Identifier: Apache-2.0
// unpermute, unpermute-grad: the way back from the experts, and its gradients, on files.
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
  std::string permuted;
  std::string grads;  // unpermute-grad
  std::string output;
  std::string probs_from;
  std::string tokens_from;
  std::string only;  // unpermute-grad
  std::optional<std::int64_t> num_tokens;
  std::optional<std::int64_t> first_row;
  bool round_products = false;  // unpermute
  bool skip_rows_out_of_range = false;
  AttributeOptions attributes;
};

// What both commands read: the rows and where they belong, from PERMUTED; the weights, and for the
// form with a routing_map the map, from the case.
struct Sources {
  explicit Sources(const Options& options)
      : permuted(options.permuted), sorted_indices(LoadTensor(permuted, "sorted_indices")) {
    if (!options.probs_from.empty()) {
      file.emplace(options.probs_from);
      CheckSameForm(permuted, *file);
      probs = LoadTensor(*file, "probs");
    }
    ResolveMode(options);
    if (file && !index_form && !drop_and_pad) routing_map = LoadRoutingMap(*file);
    ResolveTokens(options);
    LoadRows(options);
  }

  // For WithRoutingMap; index_form says which of both is meant.
  template <class Args>
  void FillMap(const Options& options, Args* args) const {
    args->sorted_indices = sorted_indices.view();
    args->probs = ViewOf(probs);
    args->routing_map = ViewOf(routing_map);
    args->drop_and_pad = drop_and_pad;
    args->skip_rows_out_of_range = options.skip_rows_out_of_range;
  }
  template <class Args>
  void FillIndex(Args* args) const {
    args->sorted_indices = sorted_indices.view();
    args->probs = ViewOf(probs);
    args->first_row = first_row;
  }

  io::SafetensorsFile permuted;
  std::optional<io::SafetensorsFile> file;   // the case
  std::optional<io::SafetensorsFile> other;  // with the rows
  InputTensor sorted_indices;
  std::optional<InputTensor> probs;
  std::optional<InputTensor> routing_map;
  std::optional<InputTensor> permuted_tokens;
  std::optional<std::int64_t> num_rows;
  bool index_form = false;
  bool drop_and_pad = false;
  std::int64_t num_tokens = 0;
  std::int64_t first_row = 0;

 private:
  // PERMUTED knows how it was made; the case and the options are asked where it does not say.
  void ResolveMode(const Options& options) {
    const auto said = FindDropAndPad(permuted);
    index_form = file ? IsIndexForm(*file)
                      : FindFirstRow(permuted).has_value() ||
                            (!said && !options.attributes.drop_and_pad.value_or(false));
    if (index_form) {
      if (options.attributes.drop_and_pad.value_or(false)) {
        io::Fail("{}: was permuted by indices; --drop-and-pad is for cases with a routing_map",
                 permuted.path());
      }
      first_row = options.first_row ? *options.first_row : FindFirstRow(permuted).value_or(0);
      return;
    }
    if (options.first_row) io::Fail("--first-row is for cases with indices");
    drop_and_pad = options.attributes.drop_and_pad ? *options.attributes.drop_and_pad
                   : said                          ? *said
                   : file                          ? FindDropAndPad(*file).value_or(false)
                                                   : false;
  }

  void ResolveTokens(const Options& options) {
    auto tokens = options.num_tokens ? options.num_tokens : FindNumTokens(permuted);
    const auto of_case =
        probs && probs->view().rank() > 0 ? std::optional(probs->view().shape(0)) : std::nullopt;
    if (tokens && of_case && *tokens != *of_case) {
      io::Fail("{}: has {} tokens, but tensor 'probs' of {} has {} rows", permuted.path(), *tokens,
               file->path(), *of_case);
    }
    if (!tokens) tokens = of_case;
    if (const auto top_k = FindTopK(permuted); !tokens && !drop_and_pad && top_k.value_or(0) > 0) {
      tokens = sorted_indices.view().shape(0) / *top_k;
    }
    if (!tokens) {
      io::Fail("{}: its metadata do not say num_tokens; give it with --num-tokens",
               permuted.path());
    }
    num_tokens = *tokens;
  }

  void LoadRows(const Options& options) {
    if (!options.tokens_from.empty()) other.emplace(options.tokens_from);
    const io::SafetensorsFile& from = other ? *other : permuted;
    permuted_tokens = LoadTensorIfThere(from, "permuted_tokens");
    const auto experts = FindNumExperts(permuted);
    if (!drop_and_pad || experts) {
      num_rows = FindRows(permuted, drop_and_pad, experts.value_or(0));
    }
    if (permuted_tokens) {
      CheckRows(num_rows, permuted, from, "permuted_tokens", permuted_tokens->view(),
                "--tokens-from");
      num_rows = permuted_tokens->view().shape(0);
    } else if (other) {
      io::Fail("{}: has no tensor 'permuted_tokens'", from.path());
    }
  }
};

int Run(const Options& options, const Globals& globals) {
  const Context context = MakeContext(globals);
  const Sources sources(options);
  RefuseToReplace(options.output, {&sources.permuted, sources.file ? &*sources.file : nullptr,
                                   sources.other ? &*sources.other : nullptr});
  if (!sources.permuted_tokens) {
    io::Fail("{}: has no tensor 'permuted_tokens'", sources.permuted.path());
  }
  Called called;
  if (sources.index_form) {
    if (options.round_products) {
      io::Fail("{}: was permuted by indices; --round-products is for cases with a routing_map",
               options.permuted);
    }
    UnpermuteArgs args;
    args.permuted_tokens = sources.permuted_tokens->view();
    sources.FillIndex(&args);
    called = Call(args, sources.num_tokens, context);
  } else {
    UnpermuteWithRoutingMapArgs args;
    args.permuted_tokens = sources.permuted_tokens->view();
    args.round_products = options.round_products;
    sources.FillMap(options, &args);
    called = Call(args, sources.num_tokens, context);
  }
  return WriteResult("unpermute", options.output, called.tensors, sources.permuted.metadata(),
                     called.seconds, globals);
}

int RunGrad(const Options& options, const Globals& globals) {
  const Context context = MakeContext(globals);
  const Sources sources(options);
  const io::SafetensorsFile grads(options.grads);
  RefuseToReplace(options.output,
                  {&sources.permuted, &grads, sources.file ? &*sources.file : nullptr,
                   sources.other ? &*sources.other : nullptr});
  const InputTensor tokens_grad = LoadTensor(grads, "tokens_grad");
  if (options.only == "probs" && !sources.probs) {
    io::Fail("--only probs needs the probs; give them with --probs-from");
  }
  if (tokens_grad.view().rank() > 0 && tokens_grad.view().shape(0) != sources.num_tokens) {
    io::Fail("{}: has {} tokens, but tensor 'tokens_grad' of {} has {} rows",
             sources.permuted.path(), sources.num_tokens, grads.path(),
             tokens_grad.view().shape(0));
  }
  if (!sources.num_rows) {
    io::Fail("{}: has no tensor 'permuted_tokens', and its metadata do not say num_out_tokens",
             sources.permuted.path());
  }
  const Only only = options.only == "tokens"  ? Only::kTokens
                    : options.only == "probs" ? Only::kProbs
                                              : Only::kBoth;
  const auto call = [&](auto args, const auto& fill) {
    args.tokens_grad = tokens_grad.view();
    args.permuted_tokens = ViewOf(sources.permuted_tokens);
    fill(&args);
    return Call(args, *sources.num_rows, only, context);
  };
  const Called called =
      sources.index_form ? call(UnpermuteGradArgs(), [&](auto* args) { sources.FillIndex(args); })
                         : call(UnpermuteWithRoutingMapGradArgs(),
                                [&](auto* args) { sources.FillMap(options, args); });
  return WriteResult("unpermute-grad", options.output, called.tensors, sources.permuted.metadata(),
                     called.seconds, globals);
}

void AddSources(CLI::App* app, Options& options) {
  app->add_option("--probs-from", options.probs_from,
                  "Weigh the rows with the probs of this case (default: no weights)")
      ->type_name("CASE");
  app->add_option("--tokens-from", options.tokens_from,
                  "Take permuted_tokens, as the experts left them, from this file")
      ->type_name("FILE");
  app->add_option("--num-tokens", options.num_tokens, "Tokens (default: as PERMUTED says)")
      ->check(Range(0, kMaxCount))
      ->type_name("N");
  app->add_option("--first-row", options.first_row,
                  "Cases with indices: the first row there is (default: as PERMUTED says)")
      ->check(Range(0, kMaxCount))
      ->type_name("N");
  app->add_flag("--skip-rows-out-of-range", options.skip_rows_out_of_range,
                "Skip slots with a row number past the last row instead of refusing them");
  options.attributes.AddDropAndPadTo(*app, "PERMUTED");
}

constexpr const char* kPermuted = "File with permuted_tokens and sorted_indices, from `permute`";

}  // namespace

Command AddUnpermute(CLI::App& root, Globals& globals) {
  CLI::App* const app = AddSubcommand(root, globals, "unpermute",
                                      "Bring the experts' rows back to token order, weighted");
  const auto options = std::make_shared<Options>();
  app->add_option("PERMUTED", options->permuted, kPermuted)->required();
  app->add_option("OUT", options->output,
                  "File to write: tokens, gathered_probs (not with indices)")
      ->required();
  AddSources(app, *options);
  app->add_flag("--round-products", options->round_products,
                "Cases with a routing_map: round products to the type of the rows before they are "
                "added");
  return {app, [options, &globals] { return Run(*options, globals); }};
}

Command AddUnpermuteGrad(CLI::App& root, Globals& globals) {
  CLI::App* const app =
      AddSubcommand(root, globals, "unpermute-grad",
                    "Bring a gradient of tokens to the experts' rows and to the probs");
  const auto options = std::make_shared<Options>();
  app->add_option("PERMUTED", options->permuted, kPermuted)->required();
  app->add_option("GRADS", options->grads, "File with tokens_grad")->required();
  app->add_option("OUT", options->output, "File to write: permuted_tokens_grad, probs_grad")
      ->required();
  AddSources(app, *options);
  app->add_option("--only", options->only, "Compute one gradient only")
      ->check(OneOf({"tokens", "probs"}))
      ->type_name("tokens|probs");
  return {app, [options, &globals] { return RunGrad(*options, globals); }};
}

}  // namespace moeperm::cli
