// SPDX-License-Identifier: Apache-2.0
// Instruction sets: what this build has and this machine runs, by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moeperm {

struct Isa {
  std::string name;   // as Highway calls it
  std::size_t index;  // of its entry in a Highway dispatch table
};

// Best first; never empty.
const std::vector<Isa>& SupportedIsas();

// Upper or lower case; nullptr where there is none of that name.
const Isa* FindIsa(std::string_view name);

}  // namespace moeperm
