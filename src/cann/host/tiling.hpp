// SPDX-License-Identifier: Apache-2.0
// A tiling: how an operator's work is cut for the vector cores and their unified buffers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace moeperm::cann::host {

// What a tiling depends on beside the problem.
struct Platform {
  std::string_view soc = "ascend910b";
  std::int64_t vector_cores = 40;
  // Bytes of a core's unified buffer as the tiling sees them: 256 below the configured ones.
  std::int64_t ub_bytes = 196352;
  // Vector cores in the operator's compile info, which the forward uses; 0: vector_cores.
  std::int64_t compiled_cores = 0;
};

struct TilingField {
  std::string_view name;
  std::int64_t value;
};

struct Tiling {
  std::int64_t key = 0;
  std::int64_t block_dim = 0;  // cores that are started
  std::int64_t workspace_bytes = 0;
  std::vector<TilingField> fields;  // in the order they are serialised in, an int64 each

  // 0 where there is no such field.
  [[nodiscard]] std::int64_t operator[](std::string_view name) const {
    for (const TilingField& field : fields) {
      if (field.name == name) return field.value;
    }
    return 0;
  }
};

}  // namespace moeperm::cann::host
