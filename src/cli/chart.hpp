// SPDX-License-Identifier: Apache-2.0
// The load of the experts as a picture.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/expert_load.hpp"

namespace moeperm::cli {

// A bar for a table: `value` of `most`, `width` columns wide.
std::string TextBar(std::int64_t value, std::int64_t most, int width);
// Columns of blocks, one an expert, or one for several neighbours (then the busiest of them).
std::string TextChart(const ExpertLoad& load);
// A stand-alone SVG document.
std::string SvgChart(const ExpertLoad& load, std::string_view title);

}  // namespace moeperm::cli
