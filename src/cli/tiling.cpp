// SPDX-License-Identifier: Apache-2.0
// tiling: how the host side of an operator cuts its work for the vector cores.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <string>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/tiling_case.hpp"
#include "cli/tiling_run.hpp"
#include "io/output_file.hpp"

namespace moeperm::cli {
namespace {

namespace host = cann::host;

struct Options {
  TilingOptions tiling;
  std::string svg;
  bool run = false;
  std::uint64_t seed = 0;
};

Json GroupsJson(const std::vector<host::Group>& groups) {
  Json json = Json::array();
  for (const host::Group& group : groups) {
    json.push_back({{"count", group.count}, {"each", group.each}});
  }
  return json;
}

Json TensorsJson(std::span<const host::TensorDef> defs,
                 const std::vector<std::optional<host::TensorDesc>>& tensors) {
  Json json = Json::array();
  for (std::size_t i = 0; i < defs.size(); ++i) {
    if (!tensors[i]) continue;
    json.push_back({{"name", defs[i].name},
                    {"dtype", host::Name(tensors[i]->dtype)},
                    {"shape", tensors[i]->shape}});
  }
  return json;
}

Json AttrsJson(const TilingCase& made) {
  Json json = Json::object();
  for (std::size_t i = 0; i < made.op->attrs.size(); ++i) {
    if (!made.problem.attrs[i]) continue;
    std::visit([&](const auto& value) { json[std::string(made.op->attrs[i].name)] = value; },
               *made.problem.attrs[i]);
  }
  return json;
}

Json StageJson(const host::Stage& stage) {
  Json json = {{"title", stage.title},
               {"unit", stage.unit},
               {"cores", GroupsJson(stage.cores)},
               {"steps", GroupsJson(stage.steps)},
               {"row_parts", GroupsJson(stage.row_parts)},
               {"buffer", Json::array()}};
  for (const host::BufferPart& part : stage.buffer) {
    json["buffer"].push_back({{"name", part.name}, {"bytes", part.bytes}});
  }
  return json;
}

Json ToJson(const TilingCase& made) {
  Json json = {{"command", "tiling"},
               {"op", made.op->name},
               {"soc", made.soc_name.empty() ? Json(nullptr) : Json(made.soc_name)},
               {"family", made.platform.soc},
               {"vector_cores", made.platform.vector_cores},
               {"ub_bytes", made.platform.ub_bytes},
               {"inputs", TensorsJson(made.op->inputs, made.problem.inputs)},
               {"outputs", TensorsJson(made.op->outputs, made.problem.outputs)},
               {"attrs", AttrsJson(made)},
               {"tiling_key", made.tiling.key},
               {"block_dim", made.tiling.block_dim},
               {"workspace_bytes", made.tiling.workspace_bytes},
               {"fields", Json::array()},
               {"stages", Json::array()},
               {"notes", made.layout.notes}};
  for (const host::TilingField& field : made.tiling.fields) {
    json["fields"].push_back(
        {{"name", field.name}, {"value", field.value}, {"meaning", host::MeaningOf(field.name)}});
  }
  for (const host::Stage& stage : made.layout.stages) json["stages"].push_back(StageJson(stage));
  return json;
}

std::string CallText(const Json& json) {
  TextTable table({"", "name", "type", "shape or value"});
  for (const auto& [kind, key] : {std::pair{"input", "inputs"}, std::pair{"output", "outputs"}}) {
    for (const Json& tensor : json[key]) {
      table.AddRow({kind, tensor["name"], tensor["dtype"],
                    FormatShape(tensor["shape"].get<std::vector<std::int64_t>>())});
    }
  }
  for (const auto& [name, value] : json["attrs"].items()) {
    table.AddRow({"attribute", name, "", value.dump()});
  }
  return table.Text();
}

// "16 x 86, 24 x 85"
std::string GroupsText(const std::vector<host::Group>& groups) {
  std::string text;
  for (const host::Group& group : groups) {
    if (group.count <= 0) continue;
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", FormatCount(group.count),
                        FormatCount(group.each));
  }
  return text.empty() ? "none" : text;
}

std::string StagesText(const host::Layout& layout) {
  std::string text;
  int number = 0;
  for (const host::Stage& stage : layout.stages) {
    text += fmt::format("\n{}. {}\n", ++number, stage.title);
    const auto line = [&](std::string_view name, const std::string& value) {
      text += fmt::format("   {:<16}{}\n", name, value);
    };
    line("cores", fmt::format("{} {}", GroupsText(stage.cores), stage.unit));
    if (!stage.steps.empty()) {
      line("steps", GroupsText(stage.steps) + " (of the first core)");
    }
    if (!stage.row_parts.empty()) line("a row", GroupsText(stage.row_parts) + " elements");
    for (const host::BufferPart& part : stage.buffer) {
      line(
          &part == stage.buffer.data() ? "unified buffer" : "",
          fmt::format("{:>10}  {:4.1f} %  {}", FormatCount(part.bytes),
                      100.0 * static_cast<double>(part.bytes) / static_cast<double>(stage.ub_bytes),
                      part.name));
    }
  }
  for (const std::string& note : layout.notes) text += "\nnote: " + note + '\n';
  return text;
}

std::string ToText(const TilingCase& made) {
  const Json json = ToJson(made);
  std::string text =
      fmt::format("{} on {}: {} vector cores, {} bytes of unified buffer\n\n", made.op->name,
                  made.soc_name.empty() ? std::string(made.platform.soc) : made.soc_name,
                  FormatCount(made.platform.vector_cores), FormatCount(made.platform.ub_bytes));
  text += CallText(json);
  text += fmt::format("\ntiling key  {}\nblock dim   {}\nworkspace   {} bytes\n\n", made.tiling.key,
                      FormatCount(made.tiling.block_dim), FormatCount(made.tiling.workspace_bytes));
  TextTable table({"field", ">value", "meaning"});
  for (const host::TilingField& field : made.tiling.fields) {
    table.AddRow({std::string(field.name), FormatCount(field.value),
                  std::string(host::MeaningOf(field.name))});
  }
  return text + table.Text() + StagesText(made.layout);
}

int Run(const Options& options, const Globals& globals) {
  const TilingCase made = MakeTilingCase(options.tiling);
  if (!options.svg.empty()) {
    const std::string svg = TilingPicture(made);
    io::OutputFile out(options.svg, svg.size());
    out.Write(std::as_bytes(std::span(svg)));
    out.Commit();
  }
  Json kernels = Json::array();
  if (options.run) kernels = RunTiling(made, options.seed);
  const int result = RunIsRight(kernels) ? kSuccess : kCheckFailed;
  if (globals.json) {
    Json json = ToJson(made);
    if (options.run) json["run"] = kernels;
    PrintJson(json);
    return result;
  }
  std::string text = ToText(made);
  if (options.run) text += RunText(kernels);
  if (!options.svg.empty()) text += "\nwrote " + options.svg + '\n';
  PrintText(text);
  return result;
}

}  // namespace

Command AddTiling(CLI::App& root, Globals& globals) {
  CLI::App* const app =
      AddSubcommand(root, globals, "tiling", "Show how an operator is cut for a chip's cores");
  const auto options = std::make_shared<Options>();
  options->tiling.AddTo(*app);
  app->add_option("--svg", options->svg, "Draw it as an SVG picture")->type_name("FILE");
  app->add_flag("--run", options->run,
                "Execute it, on synthetic values, with a model of the vector cores");
  app->add_option("--seed", options->seed, "Of --run's values [0]")
      ->check(Range(0, std::numeric_limits<std::int64_t>::max() - 1))
      ->type_name("N");
  return {app, [options, &globals] { return Run(*options, globals); }};
}

}  // namespace moeperm::cli
