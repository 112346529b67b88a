// SPDX-License-Identifier: Apache-2.0
// routes: where the tokens of a case go.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "cli/attributes.hpp"
#include "cli/chart.hpp"
#include "cli/command.hpp"
#include "cli/expert_load.hpp"
#include "cli/output.hpp"
#include "cli/tensors.hpp"
#include "io/output_file.hpp"

namespace moeperm::cli {
namespace {

struct Options {
  std::string input;
  std::string svg;
  std::int64_t top = 10;
  bool all = false;
  AttributeOptions attributes;
};

ExpertLoad LoadOf(const io::SafetensorsFile& file, const Options& options, const Context& context) {
  const InputTensor map = LoadRoutingMap(file);
  const std::int64_t experts = map.view().shape(1);
  std::optional<std::int64_t> capacity;
  // Without drop-and-pad no attribute matters here, so none needs to be known.
  if (options.attributes.drop_and_pad.value_or(FindDropAndPad(file).value_or(false))) {
    const Attributes attributes =
        ResolveAttributes(options.attributes, file, map.view().shape(0), experts);
    capacity = experts > 0 ? attributes.num_out_tokens / experts : 0;
  }
  RowMap row_map;
  ThrowUnlessOk(RowMap::FromRoutingMap(map.view(), {}, &row_map, context), file.path());
  return SummarizeLoad(row_map.tokens_per_expert(), capacity);
}

Json ToJson(const ExpertLoad& load, const Options& options) {
  Json json = {{"command", "routes"},        {"file", options.input},
               {"routes", load.routes},      {"experts", load.tokens_per_expert.size()},
               {"min", load.least},          {"mean", load.mean},
               {"max", load.most},           {"imbalance", load.imbalance()},
               {"empty_experts", load.empty}};
  if (load.capacity) {
    json["capacity"] = *load.capacity;
    json["dropped"] = load.dropped;
    json["drop_rate"] = load.drop_rate();
    json["pad_rows"] = load.padded;
  }
  json["tokens_per_expert"] = load.tokens_per_expert;
  return json;
}

// The busiest experts, or all in their order.
std::string ExpertTable(const ExpertLoad& load, const Options& options) {
  std::vector<std::size_t> order(load.tokens_per_expert.size());
  std::iota(order.begin(), order.end(), 0);
  if (!options.all) {
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](std::size_t e) { return load.tokens_per_expert[e]; });
    order.resize(std::min(order.size(), static_cast<std::size_t>(options.top)));
  }
  TextTable table({">expert", ">tokens", ">of mean", ""});
  for (const std::size_t e : order) {
    const std::int64_t tokens = load.tokens_per_expert[e];
    table.AddRow(
        {fmt::format("{}", e), FormatCount(tokens),
         load.mean > 0 ? fmt::format("{:.2f}", static_cast<double>(tokens) / load.mean) : "-",
         TextBar(tokens, load.most, 40)});
  }
  return table.Text();
}

std::string Summary(const ExpertLoad& load) {
  std::string text =
      fmt::format("{} routes to {} experts\n", FormatCount(load.routes),
                  FormatCount(static_cast<std::int64_t>(load.tokens_per_expert.size())));
  text += fmt::format("tokens an expert  min {}, mean {:.1f}, max {}\n", FormatCount(load.least),
                      load.mean, FormatCount(load.most));
  text += fmt::format("imbalance         {:.2f} (max / mean)\n", load.imbalance());
  text += fmt::format("empty experts     {}\n", FormatCount(load.empty));
  if (load.capacity) {
    text += fmt::format(
        "capacity          {} rows an expert\n"
        "dropped           {} routes ({:.2f} %)\n"
        "pad rows          {}\n",
        FormatCount(*load.capacity), FormatCount(load.dropped), load.drop_rate() * 100,
        FormatCount(load.padded));
  }
  return text;
}

int Run(const Options& options, const Globals& globals) {
  const Context context = MakeContext(globals);
  const io::SafetensorsFile file(options.input);
  const ExpertLoad load = LoadOf(file, options, context);
  if (!options.svg.empty()) {
    const std::string name = std::filesystem::path(options.input).filename().string();
    const std::string svg = SvgChart(load, "Tokens per expert: " + name);
    io::OutputFile out(options.svg, svg.size());
    out.Write(std::as_bytes(std::span(svg)));
    out.Commit();
  }
  if (globals.json) {
    PrintJson(ToJson(load, options));
    return kSuccess;
  }
  std::string text = Summary(load) + '\n' + TextChart(load) + '\n' + ExpertTable(load, options);
  if (!options.svg.empty()) text += "\nwrote " + options.svg + '\n';
  PrintText(text);
  return kSuccess;
}

}  // namespace

Command AddRoutes(CLI::App& root, Globals& globals) {
  CLI::App* const app =
      AddSubcommand(root, globals, "routes", "Show how many tokens each expert gets");
  const auto options = std::make_shared<Options>();
  app->add_option("CASE", options->input, "File with routing_map")->required();
  app->add_option("--top", options->top, "List this many of the busiest experts [10]")
      ->check(Range(0, kMaxCount))
      ->type_name("N");
  app->add_flag("--all", options->all, "List all experts, in their order");
  app->add_option("--svg", options->svg, "Draw the load as an SVG picture")->type_name("FILE");
  options->attributes.AddTo(*app);
  return {app, [options, &globals] { return Run(*options, globals); }};
}

}  // namespace moeperm::cli
