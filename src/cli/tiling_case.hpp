// SPDX-License-Identifier: Apache-2.0
// An operator's call as its host side sees it, out of the options of `moeperm tiling`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cann/host/layout.hpp"
#include "cann/host/op_def.hpp"
#include "cann/host/tiling.hpp"

namespace moeperm::cli {

struct TilingOptions {
  std::string op;
  // Sizes, out of which the shapes are made.
  std::int64_t tokens = 4096;
  std::int64_t hidden = 1024;
  std::int64_t experts = 64;
  std::optional<std::int64_t> top_k;
  std::optional<std::int64_t> num_out_tokens;
  std::optional<std::int64_t> capacity;
  bool drop_and_pad = false;
  std::string dtype = "bfloat16";
  std::string probs_dtype;
  // Shapes and attributes given directly.
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attrs;
  // The platform.
  std::string soc;
  std::optional<std::int64_t> cores;
  std::optional<std::int64_t> ub;

  void AddTo(CLI::App& app);
};

// A tiling with all that it is of. `--run` starts from here: tensors of problem's shapes, tiling
// and platform into the model (cann/model/model.hpp).
struct TilingCase {
  const cann::host::OpDef* op = nullptr;
  cann::host::Problem problem;
  std::string soc_name;  // empty where --cores and --ub say it all
  cann::host::Platform platform;
  cann::host::Tiling tiling;
  cann::host::Layout layout;
};

// Throws io::Error: an unknown operator, SoC or name, or what the tiling refuses.
TilingCase MakeTilingCase(const TilingOptions& options);

// The operator of that name, type, api, or name without "moe_token_"; throws io::Error naming all.
const cann::host::OpDef& FindOpOrThrow(const std::string& name);

// The drawing of a case.
std::string TilingPicture(const TilingCase& made);

}  // namespace moeperm::cli
