/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the library's version where it works. */
#include <moeperm/moeperm.h>
#include <stdio.h>

int main(void) {
  const float tokens[] = {1, 10, 2, 20, 3, 30};
  const int8_t routing_map[] = {1, 0, 1, 1, 1, 0, 0, 1, 1};
  float permuted_tokens[12];
  int32_t sorted_indices[6];
  const int64_t tokens_shape[] = {3, 2}, map_shape[] = {3, 3}, permuted_shape[] = {6, 2};
  const moeperm_tensor inputs[] = {
      moeperm_tensor_contiguous(tokens, MOEPERM_FLOAT32, 2, tokens_shape),
      moeperm_tensor_contiguous(routing_map, MOEPERM_INT8, 2, map_shape)};
  const moeperm_tensor outputs[] = {
      moeperm_tensor_contiguous(permuted_tokens, MOEPERM_FLOAT32, 2, permuted_shape),
      moeperm_tensor_contiguous(sorted_indices, MOEPERM_INT32, 1, permuted_shape)};

  moeperm_permute_with_routing_map_args args = MOEPERM_PERMUTE_WITH_ROUTING_MAP_ARGS_INIT;
  args.tokens = &inputs[0];
  args.routing_map = &inputs[1];
  args.num_out_tokens = 6;
  args.top_k = 2;
  args.permuted_tokens = &outputs[0];
  args.sorted_indices = &outputs[1];
  if (moeperm_permute_with_routing_map(&args, NULL) != MOEPERM_OK) {
    fprintf(stderr, "%s\n", moeperm_last_error());
    return 1;
  }
  if (sorted_indices[1] != 4 || permuted_tokens[9] != 10) return 1;
  return puts(moeperm_version()) < 0;
}
