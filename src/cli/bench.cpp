// SPDX-License-Identifier: Apache-2.0
// bench: times the operators and says how far they are from what the memory allows.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure.hpp"
#include "cli/attributes.hpp"
#include "cli/command.hpp"
#include "cli/operators.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "io/error.hpp"

namespace moeperm::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string filter;
  std::string dtype;
  std::vector<std::string> ops;
  bool quick = false;
  AttributeOptions attributes;
};

std::string SizesText(const bench::Sizes& sizes) {
  return sizes.drop_and_pad
             ? fmt::format("{} tokens, {} experts of {} rows, hidden {}, {}", sizes.tokens,
                           sizes.experts, sizes.rows / std::max<std::int64_t>(1, sizes.experts),
                           sizes.hidden, Name(sizes.dtype))
             : fmt::format("{} tokens, top {} of {} experts, hidden {}, {}", sizes.tokens,
                           sizes.top_k, sizes.experts, sizes.hidden, Name(sizes.dtype));
}

// Above this spread, as a part of the time, a line is marked.
constexpr double kNoisy = 0.05;

// One measured line.
Json ToJson(const std::string& name, const bench::Sizes& sizes, std::string_view op,
            const bench::Traffic& traffic, const bench::Timing& timing, const bench::Roofs& roofs,
            bool in_cache) {
  const auto bytes = static_cast<double>(traffic.read + traffic.written);
  const double floor = traffic.Floor(roofs);
  return {{"name", name},
          {"sizes", SizesText(sizes)},
          {"op", op},
          {"bytes_read", traffic.read},
          {"bytes_written", traffic.written},
          {"seconds", timing.median},
          {"seconds_mad", timing.mad},
          {"seconds_best", timing.best},
          {"samples", timing.samples},
          {"noisy", timing.mad > kNoisy * timing.median},
          {"gb_per_s", bytes / timing.median / 1e9},
          {"memory_read_gb_per_s", roofs.read / 1e9},
          {"memory_write_gb_per_s", roofs.write / 1e9},
          {"floor_seconds", floor},
          {"floor_gb_per_s", bytes / floor / 1e9},
          {"in_cache", in_cache},
          {"floor_over_time", in_cache ? Json(nullptr) : Json(floor / timing.median)}};
}

class Bench {
 public:
  Bench(const Options& options, const Globals& globals)
      : options_(options),
        context_(MakeContext(globals)),
        cache_bytes_(bench::CacheBytes()),
        progress_("measuring the memory"),
        memory_(context_.num_threads()) {
    timing_.max_seconds = options.quick ? 0.5 : 2.0;
  }

  void RunFile(const std::string& path) {
    const io::SafetensorsFile file(path);
    if (IsIndexForm(file)) {
      io::Fail("{}: has indices; bench takes cases with a routing_map, and derives indices from it",
               path);
    }
    const ForwardInputs inputs(file, options_.attributes);
    // What the operator refuses is refused with its own words, before memory is taken.
    PermuteWithRoutingMapSpecs specs;
    ThrowUnlessOk(InferPermuteWithRoutingMap(ForwardArgs(inputs), &specs), path);
    bench::Sizes sizes;
    sizes.tokens = inputs.tokens.view().shape(0);
    sizes.hidden = inputs.tokens.view().shape(1);
    sizes.experts = inputs.routing_map.view().shape(1);
    sizes.top_k = inputs.attributes.top_k;
    sizes.drop_and_pad = inputs.attributes.drop_and_pad;
    sizes.rows = inputs.attributes.num_out_tokens;
    if (sizes.drop_and_pad && sizes.experts > 0) {
      sizes.rows = sizes.rows / sizes.experts * sizes.experts;
    }
    sizes.dtype = inputs.tokens.view().dtype();
    sizes.probs_dtype = inputs.probs ? inputs.probs->view().dtype() : sizes.dtype;
    bench::Workload work(sizes);
    std::ranges::copy(inputs.tokens.bytes(), work.tokens().begin());
    std::ranges::copy(inputs.routing_map.bytes(), work.routing_map().begin());
    if (inputs.probs) std::ranges::copy(inputs.probs->bytes(), work.probs().begin());
    RunOps(path, sizes, work);
  }

  void RunTable() {
    for (const bench::Shape& row : bench::kShapes) {
      bench::Shape shape = row;
      const bool varies_dtype = row.dtype != DType::kBFloat16;
      if (!options_.dtype.empty()) {
        // The rows that vary the dtype would be the base case again.
        if (varies_dtype && !row.quick) continue;
        shape.dtype = options_.dtype == "float32"   ? DType::kFloat32
                      : options_.dtype == "float16" ? DType::kFloat16
                                                    : DType::kBFloat16;
      }
      if (options_.quick && !shape.quick) continue;
      const std::string name(shape.name);
      if (name.find(options_.filter) == std::string::npos) continue;
      const bench::Sizes sizes(shape);
      const std::uint64_t memory = bench::MemoryBytes(shape, SizeOf(shape.dtype));
      if (memory > bench::kMaxMemoryBytes) {
        skipped_.push_back({{"name", name}, {"memory_bytes", memory}});
        continue;
      }
      progress_.SetLabel("preparing " + name);
      bench::Workload work(shape);
      RunOps(name, sizes, work);
    }
  }

  [[nodiscard]] Json Result() {
    return {{"command", "bench"},
            {"threads", context_.num_threads()},
            {"isa", context_.isa()},
            {"read_gb_per_s", memory_.best().read / 1e9},
            {"write_gb_per_s", memory_.best().write / 1e9},
            {"cache_bytes", cache_bytes_},
            {"results", results_},
            {"skipped", skipped_}};
  }

 private:
  void RunOps(const std::string& name, const bench::Sizes& sizes, bench::Workload& work) {
    ThrowUnlessOk(work.Prepare(context_), name);
    for (const bench::OpName& entry : bench::kOps) {
      const bench::Op op = entry.op;
      const std::string_view op_name = entry.name;
      if (!work.Has(op)) continue;
      if (!options_.ops.empty() && std::ranges::count(options_.ops, op_name) == 0) continue;
      progress_.SetLabel(fmt::format("measuring {} {}", name, op_name));
      const bench::Traffic traffic = work.Bytes(op);
      // Data that stay in the cache are not bound by the memory: the floor says nothing, and
      // measuring the memory in between would drive them out.
      const bool in_cache = traffic.read + traffic.written < cache_bytes_;
      std::vector<double> reads;
      std::vector<double> writes;
      Status status;
      const auto call = [&] {
        status = work.Run(op, context_);
        return status.ok();
      };
      const bench::Timing timing = bench::Measure(timing_, call, [&] {
        if (in_cache) return;
        reads.push_back(memory_.Read(traffic.read + traffic.written));
        writes.push_back(memory_.Write(traffic.read + traffic.written));
      });
      ThrowUnlessOk(status);
      bench::Roofs roofs = memory_.best();
      if (!in_cache) roofs = {bench::Median(reads), bench::Median(writes)};
      results_.push_back(ToJson(name, sizes, op_name, traffic, timing, roofs, in_cache));
    }
  }

  const Options& options_;
  Context context_;
  std::uint64_t cache_bytes_;
  Progress progress_;
  bench::RoofMeter memory_;
  bench::TimingOptions timing_;
  Json results_ = Json::array();
  Json skipped_ = Json::array();
};

std::string ToText(const Json& json) {
  std::string text = fmt::format(
      "memory at best: {:.1f} GB/s read, {:.1f} GB/s written; {} thread{}, {}\n",
      json["read_gb_per_s"].get<double>(), json["write_gb_per_s"].get<double>(),
      json["threads"].get<int>(), json["threads"] == 1 ? "" : "s", json["isa"].get<std::string>());
  TextTable table(
      {"", ">read", ">written", ">time", ">spread", ">GB/s", ">possible", ">floor/time", ""});
  std::string name;
  bool any_in_cache = false;
  bool any_noisy = false;
  for (const Json& row : json["results"]) {
    if (row["name"] != name) {
      name = row["name"];
      table.AddRow({name + ": " + row["sizes"].get<std::string>()});
    }
    const bool in_cache = row["in_cache"];
    any_in_cache = any_in_cache || in_cache;
    const bool noisy = row["noisy"];
    any_noisy = any_noisy || noisy;
    const auto number = [&](const char* key, int digits) {
      return fmt::format("{:.{}f}", row[key].get<double>(), digits);
    };
    table.AddRow({"  " + row["op"].get<std::string>(), FormatBytes(row["bytes_read"]),
                  FormatBytes(row["bytes_written"]), FormatSeconds(row["seconds"]),
                  "+-" + FormatSeconds(row["seconds_mad"]), number("gb_per_s", 1),
                  in_cache ? "-" : number("floor_gb_per_s", 1),
                  in_cache ? "in cache" : number("floor_over_time", 2), noisy ? "noisy" : ""});
  }
  text += '\n' + table.Text();
  for (const Json& row : json["skipped"]) {
    text += fmt::format("skipped {}: needs {} of memory\n", row["name"].get<std::string>(),
                        FormatBytes(row["memory_bytes"]));
  }
  text +=
      "\n"
      "read, written  bytes that must move: each input once, each output once\n"
      "time           the median of the samples\n"
      "spread         half of the samples lie no further from the time than this\n"
      "possible       GB/s that plain reading and writing reached between the samples\n"
      "floor/time     GB/s as a part of what is possible; 1 is as fast as the memory allows\n";
  if (any_in_cache) {
    text += "in cache       the data are small enough to stay in the cache: there is no floor\n";
  }
  if (any_noisy) {
    text += fmt::format(
        "noisy          the spread is above {:.0f} % of the time: other work disturbed the "
        "samples\n",
        kNoisy * 100);
  }
  return text;
}

int Run(const Options& options, const Globals& globals) {
  Json result;
  {
    Bench bench(options, globals);
    for (const std::string& file : options.files) bench.RunFile(file);
    if (options.files.empty()) bench.RunTable();
    result = bench.Result();
  }
  if (result["results"].empty() && result["skipped"].empty()) {
    io::Fail("no shape has '{}' in its name", options.filter);
  }
  if (globals.json) {
    PrintJson(result);
  } else {
    PrintText(ToText(result));
  }
  return kSuccess;
}

}  // namespace

Command AddBench(CLI::App& root, Globals& globals) {
  CLI::App* const app = AddSubcommand(
      root, globals, "bench", "Time the operators beside what this machine's memory allows");
  const auto options = std::make_shared<Options>();
  app->add_option("CASE", options->files, "Files to measure (default: a table of shapes)");
  app->add_option("--filter", options->filter, "Only shapes with this text in their name")
      ->type_name("TEXT");
  app->add_option("--dtype", options->dtype, "Type of the tokens in all shapes")
      ->check(OneOf({"float32", "float16", "bfloat16"}))
      ->type_name("float32|float16|bfloat16");
  std::vector<std::string> names;
  names.reserve(bench::kOps.size());
  for (const auto& [op, name] : bench::kOps) names.emplace_back(name);
  app->add_option("--op", options->ops, "Only this operation; may be given several times")
      ->check(OneOf(names))
      ->type_name(fmt::format("{}", fmt::join(names, "|")))
      ->expected(1)
      ->take_all();
  app->add_flag("--quick", options->quick, "The main shapes only, half a second for each line");
  options->attributes.AddTo(*app);
  return {app, [options, &globals] { return Run(*options, globals); }};
}

}  // namespace moeperm::cli
