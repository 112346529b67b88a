// SPDX-License-Identifier: Apache-2.0
#include "cli/tiling_case.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "cann/host/soc.hpp"
#include "cli/command.hpp"
#include "cli/tiling_problem.hpp"
#include "io/error.hpp"

namespace moeperm::cli {
namespace {

namespace host = cann::host;

constexpr std::string_view kDefaultSoc = "Ascend910B2";
constexpr std::string_view kPrefix = "moe_token_";

// What the platform keeps of a unified buffer of which --ub says the size.
constexpr std::int64_t kReservedUbBytes = 256;

const host::Soc& FindSocOrThrow(std::string_view name, std::string_view from) {
  if (const host::Soc* const soc = host::FindSoc(name)) return *soc;
  std::vector<std::string_view> names;
  for (const host::Soc& soc : host::Socs()) names.push_back(soc.name);
  io::Fail("{} is {}, which is none of {}", from, io::Quote(name), fmt::join(names, ", "));
}

void ResolvePlatform(const TilingOptions& options, TilingCase* made) {
  const char* const environment = std::getenv("MOEPERM_SOC");
  const host::Soc* soc = nullptr;
  if (!options.soc.empty()) {
    soc = &FindSocOrThrow(options.soc, "--soc");
  } else if (environment != nullptr && *environment != '\0') {
    soc = &FindSocOrThrow(environment, "MOEPERM_SOC");
  } else {
    soc = &FindSocOrThrow(kDefaultSoc, "the default");
  }
  made->platform = host::PlatformOf(*soc);
  if (options.cores) made->platform.vector_cores = *options.cores;
  if (options.ub) {
    if (*options.ub < kReservedUbBytes) {
      io::Fail("--ub {} is less than the {} bytes that the platform keeps to itself", *options.ub,
               kReservedUbBytes);
    }
    made->platform.ub_bytes = *options.ub - kReservedUbBytes;
  }
  if (!options.cores && !options.ub) made->soc_name = soc->name;
  const auto supports = [&](const host::SocSupport& support) { return support.soc == soc->family; };
  if (std::ranges::none_of(made->op->socs, supports)) {
    io::Fail("{} is not for {}", made->op->name, soc->name);
  }
}

}  // namespace

const host::OpDef& FindOpOrThrow(const std::string& name) {
  const host::OpDef* op = host::FindOp(name);
  if (op == nullptr) op = host::FindOp(std::string(kPrefix) + name);
  if (op != nullptr) return *op;
  std::vector<std::string_view> names;
  for (const host::OpDef& known : host::Ops()) names.push_back(known.name);
  io::Fail("there is no operator {}; there are {}", io::Quote(name), fmt::join(names, ", "));
}

void TilingOptions::AddTo(CLI::App& app) {
  app.add_option("OP", op, "The operator (`moeperm ops` lists them)")->required();
  const auto count = [&](const char* name, auto& value, const char* text, const char* group) {
    return app.add_option(name, value, text)
        ->check(Range(0, std::int64_t{1} << 62))
        ->type_name("N")
        ->group(group);
  };
  constexpr const char* kSizes = "Sizes";
  count("--tokens", tokens, "Tokens [4096]", kSizes);
  count("--hidden", hidden, "Elements of a token [1024]", kSizes);
  count("--experts", experts, "Experts [64]", kSizes);
  CLI::Option* const slots = count("--top-k", top_k, "Slots a token [8]", kSizes);
  CLI::Option* const rows =
      count("--num-out-tokens", num_out_tokens, "Permuted rows [tokens * top-k]", kSizes)
          ->excludes(slots);
  count("--capacity", capacity, "Drop-and-pad: rows an expert [tokens * top-k / experts]", kSizes)
      ->excludes(slots)
      ->excludes(rows);
  app.add_flag("--drop-and-pad", drop_and_pad, "Drop-and-pad mode")->group(kSizes);
  app.add_option("--dtype", dtype, "Type of the tokens [bfloat16]")
      ->type_name("NAME")
      ->group(kSizes);
  app.add_option("--probs-dtype", probs_dtype, "Type of the probs; none: no probs [same]")
      ->type_name("NAME")
      ->group(kSizes);
  constexpr const char* kShapes = "Shapes and attributes, each over those that the sizes make";
  const auto several = [&](const char* name, auto& value, const char* text, const char* form) {
    app.add_option(name, value, text)
        ->type_name(form)
        ->group(kShapes)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  several("--input", inputs,
          "An input, for instance tokens=4096x7168:float16; NAME=none: not given",
          "NAME=SHAPE[:DTYPE]");
  several("--output", outputs, "An output, likewise", "NAME=SHAPE[:DTYPE]");
  several("--attr", attrs, "An attribute: a number, true, false, or a list such as 0,8",
          "NAME=VALUE");
  constexpr const char* kPlatform = "Platform";
  app.add_option("--soc", soc, "The chip [MOEPERM_SOC, else Ascend910B2]")
      ->type_name("NAME")
      ->group(kPlatform);
  app.add_option("--cores", cores, "Vector cores [the chip's]")
      ->check(Range(1, 65536))
      ->type_name("N")
      ->group(kPlatform);
  app.add_option("--ub", ub, "Bytes of a core's unified buffer; tilings see 256 less [the chip's]")
      ->check(Range(0, std::int64_t{1} << 40))
      ->type_name("BYTES")
      ->group(kPlatform);
}

TilingCase MakeTilingCase(const TilingOptions& options) {
  TilingCase made;
  made.op = &FindOpOrThrow(options.op);
  ResolvePlatform(options, &made);
  made.problem = BuildProblem(*made.op, options);
  const Status status = made.op->compute_tiling(made.problem, made.platform, &made.tiling);
  if (!status.ok()) io::Fail("{}: {}", made.op->name, status.message());
  made.op->describe(made.problem, made.platform, made.tiling, &made.layout);
  return made;
}

}  // namespace moeperm::cli
