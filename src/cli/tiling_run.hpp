// SPDX-License-Identifier: Apache-2.0
// `moeperm tiling --run`: the kernels of a tiling, executed by the model of the vector cores.
#pragma once

#include <cstdint>
#include <string>

#include "cli/output.hpp"
#include "cli/tiling_case.hpp"

namespace moeperm::cli {

// On synthetic values. A list, an element a kernel: {"kernel", "tiling_key", "block_dim", "idle",
// "ub_bytes", "ub_peak", "bytes", "floor_bytes", "imbalance", "equal", "total", "cores"}. `equal`:
// the bits are the library's; null where the kernel had nothing to do. Throws io::Error.
Json RunTiling(const TilingCase& tiling_case, std::uint64_t seed);

bool RunIsRight(const Json& kernels);
std::string RunText(const Json& kernels);

}  // namespace moeperm::cli
