// SPDX-License-Identifier: Apache-2.0
// A call from the destructor of a global that was made before the library's first use: whatever the
// library keeps must still be there. Exit status 0 where the call gave the right values.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include "moeperm/moeperm.hpp"

namespace {

bool CallIsRight() {
  const std::array<float, 4> tokens{1, 2, 3, 4};
  const std::array<bool, 4> map{false, true, true, false};
  std::array<float, 4> permuted{};
  std::array<std::int32_t, 2> sorted_indices{};
  moeperm::PermuteWithRoutingMapArgs args;
  args.tokens = moeperm::ConstTensorView(tokens.data(), {2, 2});
  args.routing_map = moeperm::ConstTensorView(map.data(), {2, 2});
  args.num_out_tokens = 2;
  args.top_k = 1;
  args.permuted_tokens = moeperm::TensorView(permuted.data(), {2, 2});
  args.sorted_indices = moeperm::TensorView(sorted_indices.data(), {2});
  const moeperm::RowMap empty;
  return moeperm::PermuteWithRoutingMap(args).ok() &&
         permuted == std::array<float, 4>{3, 4, 1, 2} && empty.num_rows() == 0;
}

struct CallsAtTheEnd {
  CallsAtTheEnd() = default;
  ~CallsAtTheEnd() {
    // Reuse what has been freed by now.
    std::vector<std::unique_ptr<unsigned char[]>> blocks;
    for (std::size_t size = 16; size < 4096; size += 16) {
      blocks.emplace_back(new unsigned char[size]);
      std::fill_n(blocks.back().get(), size, 0x41);
    }
    if (!CallIsRight()) std::_Exit(1);
  }
};

const CallsAtTheEnd calls_at_the_end;

}  // namespace

int main() { return CallIsRight() ? 0 : 1; }
