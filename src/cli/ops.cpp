// SPDX-License-Identifier: Apache-2.0
// ops: the operators of the aclnn interface and their definitions.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/tiling_case.hpp"

namespace moeperm::cli {
namespace {

namespace host = cann::host;

std::string_view Name(host::AttrType type) {
  switch (type) {
    case host::AttrType::kInt:
      return "int";
    case host::AttrType::kBool:
      return "bool";
    case host::AttrType::kIntList:
      return "list_int";
  }
  return "?";
}

Json TensorsJson(std::span<const host::TensorDef> tensors) {
  Json json = Json::array();
  for (const host::TensorDef& tensor : tensors) {
    Json dtypes = Json::array();
    for (const host::DType dtype : tensor.dtypes) dtypes.push_back(host::Name(dtype));
    json.push_back({{"name", tensor.name}, {"required", tensor.required}, {"dtypes", dtypes}});
  }
  return json;
}

Json ToJson(const host::OpDef& op) {
  Json json = {{"type", op.type},
               {"name", op.name},
               {"api", op.api},
               {"inputs", TensorsJson(op.inputs)},
               {"outputs", TensorsJson(op.outputs)},
               {"attrs", Json::array()},
               {"socs", Json::array()},
               {"binaries", Json::array()},
               {"infers_shape", op.infer_shape != nullptr},
               {"infers_dtype", op.infer_dtype != nullptr}};
  for (const host::AttrDef& attr : op.attrs) {
    Json entry = {{"name", attr.name}, {"type", Name(attr.type)}, {"required", attr.required}};
    std::visit([&](const auto& value) { entry["default"] = value; }, attr.default_value);
    json["attrs"].push_back(std::move(entry));
  }
  for (const host::SocSupport& soc : op.socs) {
    json["socs"].push_back({{"soc", soc.soc},
                            {"DynamicCompileStatic", soc.dynamic_compile_static},
                            {"DynamicFormat", soc.dynamic_format},
                            {"DynamicRankSupport", soc.dynamic_rank_support},
                            {"DynamicShapeSupport", soc.dynamic_shape_support},
                            {"NeedCheckSupport", soc.need_check_support},
                            {"opFile", soc.op_file}});
  }
  for (const host::Binary& binary : op.binaries) {
    json["binaries"].push_back({{"name", fmt::format("{}_{}", op.type, binary.suffix)},
                                {"combination", binary.combination + 1}});
  }
  return json;
}

std::string ListText() {
  TextTable table({"operator", "aclnn function", ">inputs", ">outputs", "chips"});
  for (const host::OpDef& op : host::Ops()) {
    std::string socs;
    for (const host::SocSupport& soc : op.socs) {
      socs += fmt::format("{}{}", socs.empty() ? "" : ", ", soc.soc);
    }
    table.AddRow({std::string(op.name), std::string(op.api), fmt::format("{}", op.inputs.size()),
                  fmt::format("{}", op.outputs.size()), socs});
  }
  return table.Text() + "\n`moeperm ops OPERATOR` shows a definition.\n";
}

// A line a tensor, a column a combination of dtypes.
std::string TensorsText(const host::OpDef& op) {
  std::vector<std::string> headings = {"", "name", ""};
  for (std::size_t i = 0; i < op.inputs[0].dtypes.size(); ++i) {
    headings.push_back(fmt::format("{}", i + 1));
  }
  TextTable table(headings);
  const auto add = [&](const char* kind, std::span<const host::TensorDef> tensors) {
    for (const host::TensorDef& tensor : tensors) {
      std::vector<std::string> cells = {kind, std::string(tensor.name),
                                        tensor.required ? "required" : "optional"};
      for (const host::DType dtype : tensor.dtypes) cells.emplace_back(host::Name(dtype));
      table.AddRow(std::move(cells));
    }
  };
  add("input", op.inputs);
  add("output", op.outputs);
  return table.Text();
}

std::string ToText(const host::OpDef& op) {
  const Json json = ToJson(op);
  std::string text = fmt::format("{}\n{}, {}\n\n", op.name, op.type, op.api);
  text += TensorsText(op) + '\n';
  TextTable attrs({"attribute", "type", "", "default"});
  for (const Json& attr : json["attrs"]) {
    attrs.AddRow({attr["name"], attr["type"],
                  attr["required"].get<bool>() ? "required" : "optional", attr["default"].dump()});
  }
  text += attrs.Text() + '\n';
  TextTable socs({"chip", "compile static", "format", "rank", "shape", "check", "file"});
  const auto yes = [](const Json& flag) { return flag.get<bool>() ? "yes" : "no"; };
  for (const Json& soc : json["socs"]) {
    socs.AddRow({soc["soc"], yes(soc["DynamicCompileStatic"]), yes(soc["DynamicFormat"]),
                 yes(soc["DynamicRankSupport"]), yes(soc["DynamicShapeSupport"]),
                 yes(soc["NeedCheckSupport"]), soc["opFile"]});
  }
  text += socs.Text();
  if (!op.binaries.empty()) {
    TextTable binaries({"binary", ">combination"});
    for (const Json& binary : json["binaries"]) {
      binaries.AddRow({binary["name"], binary["combination"].dump()});
    }
    text += '\n' + binaries.Text();
  }
  text += fmt::format("\nshape inference: {}; dtype inference: {}\n",
                      op.infer_shape != nullptr ? "yes" : "no",
                      op.infer_dtype != nullptr ? "yes" : "no");
  return text;
}

int Run(const std::string& name, const Globals& globals) {
  if (!name.empty()) {
    const host::OpDef& op = FindOpOrThrow(name);
    if (globals.json) {
      Json json = {{"command", "ops"}};
      json.update(ToJson(op));
      PrintJson(json);
    } else {
      PrintText(ToText(op));
    }
  } else if (globals.json) {
    Json json = {{"command", "ops"}, {"ops", Json::array()}};
    for (const host::OpDef& op : host::Ops()) json["ops"].push_back(ToJson(op));
    PrintJson(json);
  } else {
    PrintText(ListText());
  }
  return kSuccess;
}

}  // namespace

Command AddOps(CLI::App& root, Globals& globals) {
  CLI::App* const app =
      AddSubcommand(root, globals, "ops", "List the operators of the aclnn interface, or show one");
  const auto name = std::make_shared<std::string>();
  app->add_option("OP", *name, "Show this one's definition");
  return {app, [name, &globals] { return Run(*name, globals); }};
}

}  // namespace moeperm::cli
