// SPDX-License-Identifier: Apache-2.0
// How the cores of the routing-map operators walk the transposed map: whole experts for each core,
// a core's elements in tiles.
#pragma once

#include "cann/host/arithmetic.hpp"
#include "cann/host/tiling_builder.hpp"

namespace moeperm::cann::host {

struct MaskedSelect {
  Wide former_num, former_length, former_tiles, former_tile_length, former_last_tile;
  Wide tail_num, tail_length, tail_tiles, tail_tile_length, tail_last_tile;
  Wide token_num;
  Wide need_cores;
};

// All zeros where the buffer is too small for a tile. experts and tokens are at least 1.
MaskedSelect SplitMaskedSelect(Wide ub_bytes, Wide cores, Wide tokens, Wide experts,
                               Wide prob_bytes);
void AddMaskedSelectFields(const MaskedSelect& select, TilingBuilder* builder);

// Unified buffer: this much an element of a tile, and the reserve.
constexpr Wide MaskedSelectElementBytes(Wide prob_bytes) { return 4 * prob_bytes + 19; }
inline constexpr std::int64_t kMaskedSelectReserve = 128;

}  // namespace moeperm::cann::host
