// SPDX-License-Identifier: Apache-2.0
// The SoCs the door knows: `MOEPERM_SOC` and `moeperm tiling --soc` take their names.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cann/host/tiling.hpp"

namespace moeperm::cann::host {

struct Soc {
  std::string_view name;    // as aclrtGetSocName says it: "Ascend910B2"
  std::string_view family;  // as operator definitions say it: "ascend910b"
  std::int64_t vector_cores;
  std::int64_t ai_cores;
  std::int64_t ub_bytes;  // configured; the tiling sees 256 less
  std::int64_t l2_bytes;
};

std::span<const Soc> Socs();
const Soc* FindSoc(std::string_view name);  // null where there is none
Platform PlatformOf(const Soc& soc);

}  // namespace moeperm::cann::host
