// SPDX-License-Identifier: Apache-2.0
#include <moeperm/moeperm.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

int main() {
  float tokens[] = {1, 10, 2, 20, 3, 30};
  std::int8_t routing_map[] = {1, 0, 1, 1, 1, 0, 0, 1, 1};
  float permuted_tokens[12];
  std::int32_t sorted_indices[6];

  moeperm::PermuteWithRoutingMapArgs args;
  args.tokens = moeperm::ConstTensorView(tokens, {3, 2});
  args.routing_map = moeperm::ConstTensorView(routing_map, {3, 3});
  args.num_out_tokens = 6;
  args.top_k = 2;
  args.permuted_tokens = moeperm::TensorView(permuted_tokens, {6, 2});
  args.sorted_indices = moeperm::TensorView(sorted_indices, {6});
  if (const moeperm::Status status = moeperm::PermuteWithRoutingMap(args); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  const std::vector<std::int32_t> got(sorted_indices, sorted_indices + 6);
  return got == std::vector<std::int32_t>{0, 4, 1, 2, 3, 5} && permuted_tokens[9] == 10 ? 0 : 1;
}
