// SPDX-License-Identifier: Apache-2.0
// The inputs, outputs and attributes of a call, out of sizes, or as they are given.
#pragma once

#include "cann/host/op_def.hpp"
#include "cli/tiling_case.hpp"

namespace moeperm::cli {

// Throws io::Error where an option says something impossible or unknown.
cann::host::Problem BuildProblem(const cann::host::OpDef& op, const TilingOptions& options);

}  // namespace moeperm::cli
