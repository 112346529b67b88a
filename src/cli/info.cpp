// SPDX-License-Identifier: Apache-2.0
// info: what this build is and how calls would run here.
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "io/safetensors.hpp"

namespace moeperm::cli {
namespace {

constexpr std::array kVariables = {"MOEPERM_NUM_THREADS", "MOEPERM_ISA"};
constexpr std::array kDTypes = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8,
                                DType::kBool,    DType::kInt32,   DType::kInt64};

// Informs even where the environment variables or options are wrong: then it says so.
Json ToJson(const Globals& globals) {
  ContextOptions options;
  options.num_threads = globals.threads;
  options.isa = globals.isa;
  const Context context(options);
  Json json = {{"command", "info"}, {"version", Version()}, {"isa_available", AvailableIsas()}};
  if (context.status().ok()) {
    json["isa"] = context.isa();
    json["threads"] = context.num_threads();
  } else {
    json["problem"] = context.status().message();
  }
  json["processors"] = std::thread::hardware_concurrency();
  for (const char* const name : kVariables) {
    const char* const value = std::getenv(name);
    json["environment"][name] = value != nullptr ? Json(value) : Json(nullptr);
  }
  for (const DType dtype : kDTypes) {
    json["dtypes"].push_back({{"name", Name(dtype)},
                              {"safetensors", io::FindElementType(dtype)->name},
                              {"bytes", SizeOf(dtype)}});
  }
  json["limits"] = {{"max_tokens_experts_rows", kMaxCount},
                    {"max_dims", kMaxRank},
                    {"max_header_bytes", io::kMaxHeaderBytes}};
  return json;
}

std::string ToText(const Json& json) {
  std::string text = fmt::format("moeperm {}\n\n", json["version"].get<std::string>());
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<22}{}\n", name, value);
  };
  if (json.contains("problem")) {
    line("problem", json["problem"]);
  } else {
    line("instruction set", json["isa"]);
    line("threads", fmt::format("{} (of {} processors)", json["threads"].get<int>(),
                                json["processors"].get<unsigned>()));
  }
  line("available",
       fmt::format("{}", fmt::join(json["isa_available"].get<std::vector<std::string>>(), " ")));
  for (const auto& [name, value] : json["environment"].items()) {
    line(name, value.is_null() ? "not set" : value.get<std::string>());
  }
  std::string dtypes;
  for (const Json& dtype : json["dtypes"]) {
    dtypes += fmt::format("{}{} ({})", dtypes.empty() ? "" : ", ", dtype["name"].get<std::string>(),
                          dtype["safetensors"].get<std::string>());
  }
  line("dtypes (in files)", dtypes);
  line("limits", fmt::format("tokens, experts and rows up to {}; hidden as memory allows; {} dims",
                             FormatCount(kMaxCount), kMaxRank));
  return text;
}

}  // namespace

Command AddInfo(CLI::App& root, Globals& globals) {
  CLI::App* const app = AddSubcommand(
      root, globals, "info", "Show the version, instruction sets, threads, dtypes and limits");
  return {app, [&globals] {
            const Json json = ToJson(globals);
            if (globals.json) {
              PrintJson(json);
            } else {
              PrintText(ToText(json));
            }
            return static_cast<int>(json.contains("problem") ? kBadInput : kSuccess);
          }};
}

}  // namespace moeperm::cli
