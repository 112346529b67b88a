// SPDX-License-Identifier: Apache-2.0
#include "cann/host/masked_select.hpp"

#include <algorithm>

namespace moeperm::cann::host {
namespace {

constexpr Wide kTileAlignment = 128;

Wide LastTile(Wide length, Wide tile) {
  const Wide rest = SafeMod(length, tile);
  return rest != 0 ? rest : tile;
}

}  // namespace

MaskedSelect SplitMaskedSelect(Wide ub_bytes, Wide cores, Wide tokens, Wide experts,
                               Wide prob_bytes) {
  MaskedSelect select{};
  const Wide fits = (ub_bytes - kMaskedSelectReserve) / MaskedSelectElementBytes(prob_bytes);
  const Wide tile = std::min(AlignDown(fits, kTileAlignment), tokens);
  if (tile <= 0) return select;
  select.need_cores = std::min(experts, cores);
  const Wide rest = SafeMod(experts, select.need_cores);
  select.former_num = rest != 0 ? rest : select.need_cores;
  select.tail_num = select.need_cores - select.former_num;
  select.former_length = CeilDiv(experts, select.need_cores) * tokens;
  select.former_tiles = CeilDiv(select.former_length, tile);
  select.former_tile_length = tile;
  select.former_last_tile = LastTile(select.former_length, tile);
  if (select.tail_num > 0) {
    select.tail_length =
        (tokens * experts - select.former_length * select.former_num) / select.tail_num;
    select.tail_tiles = CeilDiv(select.tail_length, tile);
    select.tail_tile_length = tile;
    select.tail_last_tile = LastTile(select.tail_length, tile);
  }
  select.token_num = tokens;
  return select;
}

void AddMaskedSelectFields(const MaskedSelect& select, TilingBuilder* builder) {
  builder->Add("formerNum", select.former_num);
  builder->Add("formerLength", select.former_length);
  builder->Add("formertileNum", select.former_tiles);
  builder->Add("formertileLength", select.former_tile_length);
  builder->Add("formerlasttileLength", select.former_last_tile);
  builder->Add("tailNum", select.tail_num);
  builder->Add("tailLength", select.tail_length);
  builder->Add("tailtileNum", select.tail_tiles);
  builder->Add("tailtileLength", select.tail_tile_length);
  builder->Add("taillasttileLength", select.tail_last_tile);
  builder->Add("tokenNum", select.token_num);
  builder->Add("needCoreNum", select.need_cores);
}

}  // namespace moeperm::cann::host
