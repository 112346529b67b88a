// SPDX-License-Identifier: Apache-2.0
// Problems for the tests, by their sizes.
#pragma once

#include <cstdint>

#include "cann/host/op_def.hpp"

namespace moeperm::cann::host_test {

inline constexpr const char* kForward = "MoeTokenPermuteWithRoutingMap";
inline constexpr const char* kGrad = "MoeTokenPermuteWithRoutingMapGrad";

struct Sizes {
  std::int64_t tokens = 512;
  std::int64_t experts = 64;
  std::int64_t hidden = 1024;
  std::int64_t num_out_tokens = 1024;
  host::DType dtype = host::DType::kBFloat16;
  bool drop_and_pad = false;
  bool probs = true;
};

host::Problem ForwardProblem(const Sizes& sizes);
host::Problem GradProblem(const Sizes& sizes);

// Expect success; the tiling is empty where there was none.
host::Tiling TilingOf(const char* op, const host::Problem& problem,
                      const host::Platform& platform = {});
// Expects failure.
std::string TilingError(const char* op, const host::Problem& problem,
                        const host::Platform& platform = {});

}  // namespace moeperm::cann::host_test
