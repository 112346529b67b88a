/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused, with which code and which words. */
#include <string.h>

#include "fixtures.h"

#define REFUSES(part) \
  CHECK_FAILS(moeperm_permute_with_routing_map(&c.args, NULL), MOEPERM_INVALID_ARGUMENT, part)
#define REFUSES_GRAD(part)                                                                         \
  CHECK_FAILS(moeperm_permute_with_routing_map_grad(&c.grad_args, NULL), MOEPERM_INVALID_ARGUMENT, \
              part)

static void TestMissing(void) {
  static const moeperm_permute_by_row_map_args no_args = MOEPERM_PERMUTE_BY_ROW_MAP_ARGS_INIT;
  static const moeperm_permute_by_row_map_grad_args no_grad_args =
      MOEPERM_PERMUTE_BY_ROW_MAP_GRAD_ARGS_INIT;
  Case c;
  CHECK_FAILS(moeperm_permute_with_routing_map(NULL, NULL), MOEPERM_INVALID_ARGUMENT, "args");
  CHECK_FAILS(moeperm_permute_with_routing_map_grad(NULL, NULL), MOEPERM_INVALID_ARGUMENT, "args");
  SetUp(&c, &kF1);
  c.args.tokens = NULL;
  REFUSES("tokens is missing");
  SetUp(&c, &kF1);
  c.args.routing_map = NULL;
  REFUSES("routing_map is missing");
  SetUp(&c, &kF1);
  c.args.permuted_tokens = NULL;
  REFUSES("permuted_tokens is missing");
  SetUp(&c, &kF1);
  c.args.sorted_indices = NULL;
  REFUSES("sorted_indices is missing");
  SetUp(&c, &kF1);
  c.args.probs = NULL; /* permuted_probs is still asked for */
  REFUSES("probs");

  SetUp(&c, &kF1);
  c.grad_args.sorted_indices = NULL;
  REFUSES_GRAD("sorted_indices is missing");
  SetUp(&c, &kF1);
  c.grad_args.permuted_tokens_grad = NULL;
  REFUSES_GRAD("permuted_tokens_grad");
  SetUp(&c, &kF1);
  c.grad_args.permuted_probs_grad = NULL;
  REFUSES_GRAD("permuted_probs_grad");

  moeperm_row_map* map = NULL;
  CHECK_CODE(moeperm_row_map_create(&c.routing_map, NULL, NULL, &map), MOEPERM_OK);
  CHECK_FAILS(moeperm_permute_by_row_map(map, NULL, NULL), MOEPERM_INVALID_ARGUMENT, "args");
  CHECK_FAILS(moeperm_permute_by_row_map_grad(map, NULL, NULL), MOEPERM_INVALID_ARGUMENT, "args");
  CHECK_FAILS(moeperm_permute_by_row_map(map, &no_args, NULL), MOEPERM_INVALID_ARGUMENT, "tokens");
  CHECK_FAILS(moeperm_permute_by_row_map_grad(map, &no_grad_args, NULL), MOEPERM_INVALID_ARGUMENT,
              "tokens_grad");
  moeperm_permute_by_row_map_args args = MOEPERM_PERMUTE_BY_ROW_MAP_ARGS_INIT;
  args.tokens = &c.tokens;
  CHECK_FAILS(moeperm_permute_by_row_map(map, &args, NULL), MOEPERM_INVALID_ARGUMENT,
              "permuted_tokens is missing");
  args.permuted_tokens = &c.permuted_tokens;
  CHECK_FAILS(moeperm_permute_by_row_map(NULL, &args, NULL), MOEPERM_INVALID_ARGUMENT,
              "row_map is missing");
  CHECK_FAILS(moeperm_permute_by_row_map_grad(NULL, &no_grad_args, NULL), MOEPERM_INVALID_ARGUMENT,
              "row_map is missing");
  moeperm_row_map_destroy(map);
}

static void TestBadViews(void) {
  Case c;
  const int32_t bad_ranks[] = {-1, 5, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < sizeof(bad_ranks) / sizeof(*bad_ranks); ++i) {
    SetUp(&c, &kF1);
    c.tokens.rank = bad_ranks[i];
    REFUSES("tokens");
    SetUp(&c, &kF1);
    c.permuted_tokens.rank = bad_ranks[i];
    REFUSES("permuted_tokens");
    SetUp(&c, &kF1);
    c.probs_grad.rank = bad_ranks[i];
    REFUSES_GRAD("probs_grad");
  }
  SetUp(&c, &kF1);
  c.tokens.rank = 1;
  REFUSES("tokens has 1");
  SetUp(&c, &kF1);
  c.tokens.dtype = 99;
  REFUSES("99");
  SetUp(&c, &kF1);
  c.tokens.dtype = -1;
  REFUSES("-1");
  SetUp(&c, &kF1);
  c.routing_map.shape[1] = -3;
  REFUSES("routing_map.shape[1] = -3");
  SetUp(&c, &kF1);
  c.probs.data = NULL;
  REFUSES("probs");
  SetUp(&c, &kF1);
  c.permuted_tokens.strides[0] = 0; /* an output's elements share addresses */
  REFUSES("permuted_tokens");
  SetUp(&c, &kF1);
  c.permuted_probs_grad.shape[0] = 5;
  REFUSES_GRAD("5");

  moeperm_row_map* map = (moeperm_row_map*)&c;
  CHECK_FAILS(moeperm_row_map_create(NULL, NULL, NULL, &map), MOEPERM_INVALID_ARGUMENT,
              "routing_map is missing");
  CHECK(map == NULL);
  map = (moeperm_row_map*)&c;
  c.routing_map.dtype = MOEPERM_FLOAT32;
  CHECK_FAILS(moeperm_row_map_create(&c.routing_map, NULL, NULL, &map), MOEPERM_INVALID_ARGUMENT,
              "routing_map has dtype float32");
  CHECK(map == NULL);
  CHECK_FAILS(moeperm_row_map_create(&c.routing_map, NULL, NULL, NULL), MOEPERM_INVALID_ARGUMENT,
              "row_map is missing");
}

static void TestBadAttributesAndValues(void) {
  Case c;
  SetUp(&c, &kF1);
  c.args.num_out_tokens = INT64_C(4294967302); /* 2^32 + 6 */
  REFUSES("4294967302");
  SetUp(&c, &kF1);
  c.args.top_k = 1;
  c.sorted_indices.shape[0] = 3;
  REFUSES("top_k = 1");

  /* sorted_indices[1] = 6 with rows 0 .. 5 */
  SetUp(&c, &kF1);
  memcpy(c.outputs.sorted_indices + kGuard, kF1.sorted_indices, sizeof(kF1.sorted_indices));
  c.outputs.sorted_indices[kGuard + 1] = 6;
  CHECK_FAILS(moeperm_permute_with_routing_map_grad(&c.grad_args, NULL), MOEPERM_INDEX_OUT_OF_RANGE,
              "sorted_indices[1] = 6");
  c.grad_args.skip_rows_out_of_range = 1;
  CHECK_CODE(moeperm_permute_with_routing_map_grad(&c.grad_args, NULL), MOEPERM_OK);
  const float without_slot_1[] = {1, -1, 6, -6, 40, -40};
  CHECK_FLOATS(c.outputs.tokens_grad + kGuard, without_slot_1);

  /* More pad rows than tokens: refused before memory is asked for. */
  SetUp(&c, &kF4);
  c.args.num_out_tokens = INT64_C(1) << 41;
  REFUSES("1099511627776");
}

/* Not errors: a tensor without elements needs no data; a flag is any number but 0. */
static void TestAccepted(void) {
  Case c;
  SetUp(&c, &kF1);
  c.args.num_out_tokens = 0;
  c.tokens.shape[0] = c.routing_map.shape[0] = c.probs.shape[0] = 0;
  c.permuted_tokens.shape[0] = c.permuted_probs.shape[0] = c.sorted_indices.shape[0] = 0;
  c.tokens.data = c.routing_map.data = c.probs.data = NULL;
  c.permuted_tokens.data = c.permuted_probs.data = c.sorted_indices.data = NULL;
  CHECK_CODE(moeperm_permute_with_routing_map(&c.args, NULL), MOEPERM_OK);
  const int64_t zeros[] = {0, 0, 0, 0};
  CheckInt64s(c.outputs.tokens_per_expert + kGuard, zeros, 3, "counts", __FILE__, __LINE__);
  CHECK_INT64S(c.outputs.expert_offsets + kGuard, zeros);

  SetUp(&c, &kF4);
  c.args.drop_and_pad = -2;
  CHECK_CODE(moeperm_permute_with_routing_map(&c.args, NULL), MOEPERM_OK);
  CheckForward(&c);

  /* Strides are looked at: the map stored expert-major, seen transposed. */
  static const int8_t transposed[] = {1, 1, 0, 0, 1, 1, 1, 0, 1};
  SetUp(&c, &kF1);
  c.routing_map.data = (void*)transposed;
  c.routing_map.strides[0] = 1;
  c.routing_map.strides[1] = 3;
  CHECK_CODE(moeperm_permute_with_routing_map(&c.args, NULL), MOEPERM_OK);
  CheckForward(&c);
}

void TestErrors(void) {
  TestMissing();
  TestBadViews();
  TestBadAttributesAndValues();
  TestAccepted();
}
