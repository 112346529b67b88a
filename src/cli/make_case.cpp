// SPDX-License-Identifier: Apache-2.0
// make-case: a synthetic case with the inputs of both operators.
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bench/synthetic.hpp"
#include "cli/attributes.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/tensors.hpp"
#include "io/error.hpp"
#include "io/safetensors_writer.hpp"

namespace moeperm::cli {
namespace {

using synthetic::Stream;
using synthetic::Values;

struct Options {
  std::string path;
  std::int64_t tokens = 4096;
  std::int64_t hidden = 1024;
  std::int64_t experts = 64;
  std::optional<std::int64_t> top_k;
  bool drop_and_pad = false;
  std::optional<std::int64_t> capacity;
  std::optional<std::int64_t> num_out_tokens;
  DType dtype = DType::kFloat32;
  std::string probs_dtype = "same";
  DType map_dtype = DType::kBool;
  synthetic::Routing routing = synthetic::Routing::kUniform;
  double skew = 1.0;
  bool ragged = false;
  bool index = false;
  bool duplicates = false;
  double drop_rate = 0;
  std::optional<RowRange> rows;
  std::uint64_t seed = 0;
};

const std::map<std::string, DType> kFloats = {
    {"float32", DType::kFloat32}, {"float16", DType::kFloat16}, {"bfloat16", DType::kBFloat16}};
const std::map<std::string, DType> kMapTypes = {{"bool", DType::kBool}, {"int8", DType::kInt8}};
const std::map<std::string, synthetic::Routing> kRoutings = {
    {"uniform", synthetic::Routing::kUniform},
    {"zipf", synthetic::Routing::kZipf},
    {"hot", synthetic::Routing::kHot}};

template <class T>
std::string KeyOf(const std::map<std::string, T>& names, T value) {
  return std::ranges::find(names, value, &std::pair<const std::string, T>::second)->first;
}

// Choices are shown and refused by name.
template <class T>
CLI::Option* AddChoice(CLI::App* app, const std::string& option, T& value,
                       const std::map<std::string, T>& names, const std::string& description) {
  std::vector<std::string> choices;
  choices.reserve(names.size());
  for (const auto& [name, unused] : names) choices.push_back(name);
  return app
      ->add_option_function<std::string>(
          option, [&value, &names](const std::string& name) { value = names.at(name); },
          fmt::format("{} [{}]", description, KeyOf(names, value)))
      ->check(OneOf(choices))
      ->type_name(fmt::format("{}", fmt::join(choices, "|")));
}

// Routes a token where --top-k does not say.
std::int64_t DefaultTopK(const Options& options) {
  if (!options.drop_and_pad) return std::min<std::int64_t>(8, options.experts);
  // So many that experts are full on average: some have too many tokens, some too few.
  const std::int64_t rows = *options.capacity * options.experts;
  return std::clamp<std::int64_t>(
      (rows + options.tokens / 2) / std::max<std::int64_t>(options.tokens, 1), 1, options.experts);
}

void Validate(const Options& options) {
  if (!(options.skew >= 0)) io::Fail("--skew {} is not a number", options.skew);
  if (options.drop_and_pad != options.capacity.has_value()) {
    io::Fail("--drop-and-pad and --capacity belong together");
  }
  if (options.capacity && *options.capacity > options.tokens) {
    io::Fail("--capacity {} is more than there are tokens ({})", *options.capacity, options.tokens);
  }
  if (options.top_k.value_or(0) > options.experts) {
    io::Fail("--top-k {} is more than there are experts ({})", *options.top_k, options.experts);
  }
  if (options.drop_and_pad && options.num_out_tokens) {
    io::Fail("--num-out-tokens is for cases without --drop-and-pad");
  }
}

Attributes MakeAttributes(const Options& options, std::int64_t top_k, std::int64_t routes) {
  Attributes attributes;
  attributes.drop_and_pad = options.drop_and_pad;
  attributes.index_form = options.index;
  if (options.drop_and_pad) {
    attributes.num_out_tokens = *options.capacity * options.experts;
  } else {
    attributes.top_k = top_k;
    attributes.num_out_tokens = options.num_out_tokens.value_or(routes);
  }
  if (options.rows) {
    attributes.first_row = options.rows->begin;
    attributes.num_out_tokens = options.rows->end - options.rows->begin;
  }
  if (attributes.num_out_tokens > kMaxCount) {
    io::Fail("{} rows are more than the {} an operator can have", attributes.num_out_tokens,
             kMaxCount);
  }
  return attributes;
}

// A tensor of random values that exists only a piece at a time.
io::OutputTensor Random(std::string name, DType dtype, std::vector<std::int64_t> shape,
                        Values values, std::uint64_t key) {
  const auto elements = static_cast<std::uint64_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
  auto write = [=](const io::Sink& sink) {
    constexpr std::uint64_t kPiece = 1 << 18;  // elements; stays in the cache
    std::vector<std::byte> piece(kPiece * SizeOf(dtype));
    for (std::uint64_t first = 0; first < elements; first += kPiece) {
      const std::span part(piece.data(), std::min(kPiece, elements - first) * SizeOf(dtype));
      synthetic::Fill(dtype, values, key, first, part);
      sink(part);
    }
  };
  return {std::move(name), dtype, std::move(shape), std::move(write)};
}

int Run(const Options& options, const Globals& globals) {
  Validate(options);
  const std::int64_t top_k = options.top_k.value_or(DefaultTopK(options));
  synthetic::RoutingOptions routing;
  routing.tokens = options.tokens;
  routing.experts = options.experts;
  routing.top_k = top_k;
  routing.routing = options.routing;
  routing.skew = options.skew;
  routing.ragged = options.ragged;
  routing.seed = options.seed;
  const std::vector<std::uint8_t> map = synthetic::RoutingMap(routing);
  std::vector<std::int32_t> indices;
  if (options.index) {
    indices = synthetic::Indices(routing, map, options.duplicates, options.drop_rate);
  }
  const std::int64_t routes =
      options.index ? std::ranges::count_if(indices, [](std::int32_t e) { return e >= 0; })
                    : std::reduce(map.begin(), map.end(), std::int64_t{0});
  const Attributes attributes = MakeAttributes(options, top_k, routes);
  const std::int64_t rows = attributes.num_out_tokens;

  const auto key = [&](Stream stream) { return synthetic::Key(options.seed, stream); };
  const std::int64_t columns = options.index ? top_k : options.experts;  // of probs
  std::vector<io::OutputTensor> tensors;
  tensors.push_back(Random("tokens", options.dtype, {options.tokens, options.hidden},
                           Values::kSigned, key(Stream::kTokens)));
  tensors.push_back(Random("permuted_tokens_grad", options.dtype, {rows, options.hidden},
                           Values::kSigned, key(Stream::kTokensGrad)));
  if (options.probs_dtype != "none") {
    const DType dtype =
        options.probs_dtype == "same" ? options.dtype : kFloats.at(options.probs_dtype);
    tensors.push_back(
        Random("probs", dtype, {options.tokens, columns}, Values::kUnit, key(Stream::kProbs)));
    tensors.push_back(
        Random("permuted_probs_grad", dtype, {rows}, Values::kSigned, key(Stream::kProbsGrad)));
  }
  if (options.index) {
    tensors.push_back(
        io::InMemory("indices", ConstTensorView(indices.data(), {options.tokens, top_k})));
  } else {
    tensors.push_back(
        io::InMemory("routing_map", ConstTensorView(map.data(), options.map_dtype,
                                                    std::array{options.tokens, options.experts})));
  }

  io::Metadata metadata = {{"generator", fmt::format("moeperm make-case {}", Version())},
                           {"num_tokens", std::to_string(options.tokens)},
                           {"num_experts", std::to_string(options.experts)},
                           {"routes_per_token", std::to_string(top_k)},
                           {"routing", KeyOf(kRoutings, options.routing)},
                           {"seed", std::to_string(options.seed)}};
  if (options.drop_and_pad) metadata["capacity"] = std::to_string(*options.capacity);
  if (options.routing == synthetic::Routing::kZipf) {
    metadata["skew"] = fmt::format("{}", options.skew);
  }
  if (options.ragged) metadata["ragged"] = "true";
  if (options.duplicates) metadata["duplicates"] = "true";
  if (options.drop_rate > 0) metadata["drop_rate"] = fmt::format("{}", options.drop_rate);
  AddToMetadata(attributes, &metadata);

  Json result = {{"command", "make-case"}, {"file", options.path}, {"metadata", metadata}};
  for (const io::OutputTensor& tensor : tensors) {
    result["tensors"].push_back(TensorJson(tensor.name, tensor.dtype, tensor.shape));
  }
  WriteTensors(options.path, std::move(tensors), metadata);
  if (globals.json) {
    PrintJson(result);
  } else {
    PrintText(fmt::format("wrote {}\n{}", options.path, TensorTable(result["tensors"])));
  }
  return kSuccess;
}

}  // namespace

Command AddMakeCase(CLI::App& root, Globals& globals) {
  CLI::App* const app = AddSubcommand(root, globals, "make-case",
                                      "Write a synthetic case: the inputs of both operators");
  const auto options = std::make_shared<Options>();
  const auto count = [&](const std::string& name, auto& value, const std::string& description,
                         std::int64_t least) {
    return app->add_option(name, value, description)
        ->check(Range(least, kMaxCount))
        ->type_name("N");
  };
  app->add_option("OUT", options->path, "The .safetensors file to write")->required();
  count("--tokens", options->tokens, "Tokens [4096]", 0);
  count("--hidden", options->hidden, "Elements of a token [1024]", 0);
  count("--experts", options->experts, "Experts [64]", 1);
  count("--top-k", options->top_k,
        "Routes a token [8; with --drop-and-pad so many that experts are full on average, at least "
        "1]",
        0);
  CLI::Option* const drop_and_pad =
      app->add_flag("--drop-and-pad", options->drop_and_pad, "A case of drop-and-pad mode");
  count("--capacity", options->capacity, "Rows an expert; with --drop-and-pad", 0);
  CLI::Option* const num_out_tokens =
      count("--num-out-tokens", options->num_out_tokens, "Rows, cut or filled up [one a route]", 0);
  AddChoice(app, "--dtype", options->dtype, kFloats, "Type of the tokens");
  app->add_option("--probs-dtype", options->probs_dtype, "Type of the probs; none: no probs [same]")
      ->check(OneOf({"same", "float32", "float16", "bfloat16", "none"}))
      ->type_name("same|float32|float16|bfloat16|none");
  CLI::Option* const map_dtype =
      AddChoice(app, "--map-dtype", options->map_dtype, kMapTypes, "Type of the routing map");
  AddChoice(
      app, "--routing", options->routing, kRoutings,
      "How popular experts are. uniform: all the same; zipf: rank^-skew; hot: one as much as all "
      "others");
  app->add_option("--skew", options->skew, "Exponent of --routing zipf [1]")
      ->check(CLI::Range(0.0, 100.0).description(""))
      ->type_name("X");
  app->add_flag("--ragged", options->ragged, "0 to top-k routes a token instead of top-k");
  CLI::Option* const index =
      app->add_flag("--index", options->index,
                    "Say the routes by indices [tokens, top-k], -1 for none, and not by a "
                    "routing_map; probs are [tokens, top-k], too")
          ->excludes(drop_and_pad)
          ->excludes(map_dtype);
  app->add_flag("--duplicates", options->duplicates,
                "With --index: some tokens go to an expert more than once")
      ->needs(index);
  app->add_option("--drop-rate", options->drop_rate,
                  "With --index: this part of the slots, by chance, has no expert [0]")
      ->check(CLI::Range(0.0, 1.0).description(""))
      ->type_name("P")
      ->needs(index);
  AddRows(*app, options->rows)->needs(index)->excludes(num_out_tokens);
  app->add_option("--seed", options->seed, "The same seed gives the same file anywhere [0]")
      // A number too large to be read becomes the largest one, which the range therefore leaves
      // out.
      ->check(Range(0, std::numeric_limits<std::int64_t>::max() - 1))
      ->type_name("N");
  return {app, [options, &globals] { return Run(*options, globals); }};
}

}  // namespace moeperm::cli
