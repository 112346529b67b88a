// SPDX-License-Identifier: Apache-2.0
// Fills a Tiling field by field and finds out whether every number fits its int64.
#pragma once

#include <string_view>

#include "cann/host/arithmetic.hpp"
#include "cann/host/messages.hpp"
#include "cann/host/tiling.hpp"

namespace moeperm::cann::host {

// Workspace that the runtime's own library asks for, in every tiling of the family.
inline constexpr std::int64_t kSystemWorkspaceBytes = std::int64_t{16} * 1024 * 1024;

class TilingBuilder {
 public:
  void Add(std::string_view name, Wide value) {
    tiling_.fields.push_back({name, Narrow(name, value)});
  }
  void Key(std::int64_t key) { tiling_.key = key; }
  void BlockDim(Wide cores) { tiling_.block_dim = Narrow("block dim", cores); }
  void Workspace(Wide bytes) { tiling_.workspace_bytes = Narrow("workspace", bytes); }

  // `tiling` is left alone on error.
  Status Finish(Tiling* tiling) {
    if (!too_large_.empty()) return FieldTooLarge(too_large_);
    *tiling = std::move(tiling_);
    return {};
  }

 private:
  std::int64_t Narrow(std::string_view name, Wide value) {
    if (!FitsInt64(value)) {
      if (too_large_.empty()) too_large_ = name;
      return 0;
    }
    return static_cast<std::int64_t>(value);
  }

  Tiling tiling_;
  std::string_view too_large_;
};

}  // namespace moeperm::cann::host
