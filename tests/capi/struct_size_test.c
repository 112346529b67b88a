/* SPDX-License-Identifier: Apache-2.0 */
/* struct_size: sizes of older and newer callers, and of callers that set none. */
#include "struct_size.h"

#include <stddef.h>
#include <string.h>

#include "fixtures.h"

static moeperm_code CreateContext(const moeperm_context_options* options) {
  moeperm_context* context = NULL;
  const moeperm_code code = moeperm_context_create(options, &context);
  CHECK((code == MOEPERM_OK) == (context != NULL));
  moeperm_context_destroy(context);
  return code;
}

static moeperm_code CreateRowMap(const moeperm_tensor* map,
                                 const moeperm_row_map_options* options) {
  moeperm_row_map* row_map = NULL;
  const moeperm_code code = moeperm_row_map_create(map, options, NULL, &row_map);
  CHECK((code == MOEPERM_OK) == (row_map != NULL));
  moeperm_row_map_destroy(row_map);
  return code;
}

static void TestInputs(void) {
  Case c;
  SetUp(&c, &kF1);
  {
    NEWER(moeperm_context_options) newer = {MOEPERM_CONTEXT_OPTIONS_INIT, {0}};
    CHECK_CONVENTION(CreateContext(&newer.known));
  }
  {
    NEWER(moeperm_row_map_options) newer = {MOEPERM_ROW_MAP_OPTIONS_INIT, {0}};
    const size_t first = offsetof(moeperm_row_map_options, num_rows) + sizeof(int64_t);
    CHECK_CONVENTION_SINCE(first, CreateRowMap(&c.routing_map, &newer.known));
    /* An older caller: what lies past its struct is not read. */
    newer.known.keep = 77;
    newer.known.align = -1;
    newer.known.struct_size = first;
    CHECK_CODE(CreateRowMap(&c.routing_map, &newer.known), MOEPERM_OK);
    newer.known.struct_size = sizeof(newer.known);
    CHECK_FAILS(CreateRowMap(&c.routing_map, &newer.known), MOEPERM_INVALID_ARGUMENT, "keep = 77");
  }
  {
    NEWER(moeperm_permute_with_routing_map_args) newer;
    moeperm_permute_with_routing_map_specs specs = MOEPERM_PERMUTE_WITH_ROUTING_MAP_SPECS_INIT;
    newer.known = c.args;
    CHECK_CONVENTION(moeperm_permute_with_routing_map(&newer.known, NULL));
    CHECK_CONVENTION(moeperm_infer_permute_with_routing_map(&newer.known, &specs));
  }
  {
    NEWER(moeperm_permute_with_routing_map_grad_args) newer;
    moeperm_permute_with_routing_map_grad_specs specs =
        MOEPERM_PERMUTE_WITH_ROUTING_MAP_GRAD_SPECS_INIT;
    newer.known = c.grad_args;
    CHECK_CONVENTION(moeperm_permute_with_routing_map_grad(&newer.known, NULL));
    CHECK_CONVENTION(moeperm_infer_permute_with_routing_map_grad(&newer.known, &specs));
  }

  moeperm_row_map* map = NULL;
  CHECK_CODE(moeperm_row_map_create(&c.routing_map, NULL, NULL, &map), MOEPERM_OK);
  {
    NEWER(moeperm_permute_by_row_map_args) newer = {MOEPERM_PERMUTE_BY_ROW_MAP_ARGS_INIT, {0}};
    newer.known.tokens = &c.tokens;
    newer.known.permuted_tokens = &c.permuted_tokens;
    CHECK_CONVENTION(moeperm_permute_by_row_map(map, &newer.known, NULL));
  }
  {
    NEWER(moeperm_permute_by_row_map_grad_args)
    newer = {MOEPERM_PERMUTE_BY_ROW_MAP_GRAD_ARGS_INIT, {0}};
    newer.known.permuted_tokens_grad = &c.permuted_tokens_grad;
    newer.known.tokens_grad = &c.tokens_grad;
    CHECK_CONVENTION(moeperm_permute_by_row_map_grad(map, &newer.known, NULL));
  }
  moeperm_row_map_destroy(map);
}

/* A newer caller's specs: what this library does not know is 0, "no such output"; what is past the
 * caller's struct is not touched. */
static void TestSpecs(void) {
  Case c;
  SetUp(&c, &kF1);
  {
    NEWER(moeperm_permute_with_routing_map_specs) newer;
    memset(&newer, 0xFF, sizeof(newer));
    newer.known.struct_size = sizeof(newer.known) + 30;
    CHECK_CODE(moeperm_infer_permute_with_routing_map(&c.args, &newer.known), MOEPERM_OK);
    CHECK(newer.known.struct_size == sizeof(newer.known) + 30);
    CHECK(newer.known.expert_offsets.dtype == MOEPERM_INT64);
    for (size_t i = 0; i < sizeof(newer.tail); ++i) CHECK(newer.tail[i] == (i < 30 ? 0 : 0xFF));
    CHECK_SIZES_REFUSED(moeperm_infer_permute_with_routing_map(&c.args, &newer.known));
  }
  {
    NEWER(moeperm_permute_with_routing_map_grad_specs) newer;
    memset(&newer, 0xFF, sizeof(newer));
    newer.known.struct_size = sizeof(newer.known);
    CHECK_CODE(moeperm_infer_permute_with_routing_map_grad(&c.grad_args, &newer.known), MOEPERM_OK);
    CHECK(newer.known.probs_grad.dtype == MOEPERM_FLOAT32);
    CHECK(newer.tail[0] == 0xFF);
    CHECK_SIZES_REFUSED(moeperm_infer_permute_with_routing_map_grad(&c.grad_args, &newer.known));
  }
}

void TestStructSizes(void) {
  TestInputs();
  TestSpecs();
}
