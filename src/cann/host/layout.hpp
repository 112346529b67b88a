// SPDX-License-Identifier: Apache-2.0
// What the numbers of a tiling mean, for tables and pictures: which core has what, in which steps,
// and what fills its unified buffer meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cann/host/tiling.hpp"

namespace moeperm::cann::host {

// `count` neighbours with `each` units. Groups follow one another from 0 on.
struct Group {
  std::int64_t count;
  std::int64_t each;
};
// Units of all groups; saturates.
std::int64_t TotalOf(const std::vector<Group>& groups);

struct BufferPart {
  std::string_view name;
  std::int64_t bytes;
};

// A kernel, or a phase of one between two barriers.
struct Stage {
  std::string_view title;
  std::string_view unit;           // of the cores' work: "tokens"
  std::vector<Group> cores;        // `each` units for `count` cores
  std::vector<Group> steps;        // of the first core, in units; empty: no steps
  std::vector<Group> row_parts;    // of a row, in elements; empty: rows are not looked into
  std::vector<BufferPart> buffer;  // of a core; empty: the unified buffer is not used
  std::int64_t ub_bytes = 0;       // all of it
};

struct Layout {
  std::vector<Stage> stages;
  std::vector<std::string> notes;  // what is peculiar about this one
};

// One line on a field, by its name; empty where there is none.
std::string_view MeaningOf(std::string_view field);

// The stages that operators share, out of their tilings.
Stage AdditionStage(const Tiling& tiling, const Platform& platform, std::int64_t element_bytes);
Stage MaskedSelectStage(const Tiling& tiling, const Platform& platform, std::int64_t prob_bytes);
Stage SortStage(const Tiling& tiling, const Platform& platform);
Stage RowCopyStage(const Tiling& tiling, const Platform& platform);

}  // namespace moeperm::cann::host
