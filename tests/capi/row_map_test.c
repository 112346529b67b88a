/* SPDX-License-Identifier: Apache-2.0 */
/* Row maps of every option, and the way back over them. */
#include <string.h>

#include "fixtures.h"
#include "struct_size.h"

static moeperm_row_map* Create(const Case* c, const moeperm_row_map_options* options) {
  moeperm_row_map* map = NULL;
  CHECK_CODE(moeperm_row_map_create(&c->routing_map, options, NULL, &map), MOEPERM_OK);
  return map;
}

static void TestAlign(void) {
  static const int64_t offsets[] = {0, 4, 8, 12};
  static const int32_t row_tokens[] = {0, 1, -1, -1, 1, 2, -1, -1, 0, 2, -1, -1};
  Case c;
  SetUp(&c, &kF1);
  moeperm_row_map_options options = MOEPERM_ROW_MAP_OPTIONS_INIT;
  options.align = 4;
  moeperm_row_map* map = Create(&c, &options);
  CHECK_INT64S(moeperm_row_map_expert_offsets(map), offsets);
  CHECK_INT32S(moeperm_row_map_row_tokens(map), row_tokens);
  CHECK(moeperm_row_map_num_routes(map) == 6 && moeperm_row_map_num_dropped(map) == 0);
  moeperm_row_map_destroy(map);
  options.align = -4;
  CHECK_FAILS(moeperm_row_map_create(&c.routing_map, &options, NULL, &map),
              MOEPERM_INVALID_ARGUMENT, "align = -4");

  /* Token 0 alone, to expert 1 alone. */
  c.routing_map.shape[0] = 1;
  c.routing_map.shape[1] = 2;
  static const int64_t with_empty[] = {0, 4, 8};
  static const int8_t one[] = {0, 1};
  c.routing_map.data = (void*)one;
  options.align = 4;
  options.pad_empty_experts = 1;
  map = Create(&c, &options);
  CHECK_INT64S(moeperm_row_map_expert_offsets(map), with_empty);
  moeperm_row_map_destroy(map);
}

static void TestKeep(void) {
  static const int64_t kept[] = {1, 1, 1};
  static const int32_t first[] = {0, 1, 0};
  static const int32_t highest[] = {1, 2, 2};
  Case c;
  SetUp(&c, &kF1);
  moeperm_row_map_options options = MOEPERM_ROW_MAP_OPTIONS_INIT;
  options.capacity = 1;
  moeperm_row_map* map = Create(&c, &options);
  CHECK_INT32S(moeperm_row_map_row_tokens(map), first);
  CHECK_INT64S(moeperm_row_map_kept_per_expert(map), kept);
  CHECK(moeperm_row_map_num_routes(map) == 6 && moeperm_row_map_num_dropped(map) == 3);
  moeperm_row_map_destroy(map);
  options.keep = MOEPERM_KEEP_HIGHEST_PROB;
  CHECK_FAILS(moeperm_row_map_create(&c.routing_map, &options, NULL, &map),
              MOEPERM_INVALID_ARGUMENT, "probs is missing");
  options.probs = &c.probs;
  map = Create(&c, &options);
  CHECK_INT32S(moeperm_row_map_row_tokens(map), highest);
  moeperm_row_map_destroy(map);
  CHECK(moeperm_row_map_num_routes(NULL) == 0 && moeperm_row_map_num_dropped(NULL) == 0);
  CHECK(moeperm_row_map_kept_per_expert(NULL) == NULL);
}

/* F4, its pad row masked: the way back of the rows 1, 2, 4, 8. */
static void TestBack(void) {
  static const float rows[] = {1, 2, 4, 8};
  static const float grads[] = {1, 2, 3, 4};
  static const float tokens[] = {.5F, 3.5F, 0, 0};
  static const float rows_grad[] = {.5F, .5F, 1.5F, 0};
  static const float probs_grad[] = {1, 0, 4, 8, 0, 0, 0, 0};
  Case c;
  SetUp(&c, &kF4);
  moeperm_row_map_options options = MOEPERM_ROW_MAP_OPTIONS_INIT;
  options.drop_and_pad = options.mask_pads = 1;
  options.capacity = 2;
  moeperm_row_map* map = Create(&c, &options);
  moeperm_tensor permuted = c.permuted_tokens;
  moeperm_tensor tokens_grad = c.tokens;
  permuted.data = (void*)rows;
  tokens_grad.data = (void*)grads;
  {
    NEWER(moeperm_unpermute_by_row_map_args) newer = {MOEPERM_UNPERMUTE_BY_ROW_MAP_ARGS_INIT, {0}};
    newer.known.permuted_tokens = &permuted;
    newer.known.probs = &c.probs;
    newer.known.tokens = &c.tokens_grad;
    CHECK_CONVENTION(moeperm_unpermute_by_row_map(map, &newer.known, NULL));
    CHECK_FLOATS(c.outputs.tokens_grad + kGuard, tokens);
    newer.known.struct_size = sizeof(newer.known);
    CHECK_FAILS(moeperm_unpermute_by_row_map(NULL, &newer.known, NULL), MOEPERM_INVALID_ARGUMENT,
                "row_map");
    newer.known.tokens = NULL;
    CHECK_FAILS(moeperm_unpermute_by_row_map(map, &newer.known, NULL), MOEPERM_INVALID_ARGUMENT,
                "tokens is missing");
  }
  {
    NEWER(moeperm_unpermute_by_row_map_grad_args)
    newer = {MOEPERM_UNPERMUTE_BY_ROW_MAP_GRAD_ARGS_INIT, {0}};
    newer.known.tokens_grad = &tokens_grad;
    newer.known.permuted_tokens = &permuted;
    newer.known.probs = &c.probs;
    newer.known.permuted_tokens_grad = &c.permuted_tokens;
    newer.known.probs_grad = &c.probs_grad;
    CHECK_CONVENTION(moeperm_unpermute_by_row_map_grad(map, &newer.known, NULL));
    CHECK_FLOATS(c.outputs.permuted_tokens + kGuard, rows_grad);
    CHECK_FLOATS(c.outputs.probs_grad + kGuard, probs_grad);
  }
  moeperm_row_map_destroy(map);
}

void TestRowMapOptions(void) {
  TestAlign();
  TestKeep();
  TestBack();
}
