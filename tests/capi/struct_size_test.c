/* SPDX-License-Identifier: Apache-2.0 */
/* struct_size: sizes of older and newer callers, and of callers that set none. */
#include <string.h>

#include "fixtures.h"

/* `type` as a later version of the library may have it. */
#define NEWER(type)         \
  struct {                  \
    type known;             \
    unsigned char tail[40]; \
  }

/* Calls with `newer.known`, whose struct_size is set here, and expects what the convention says.
 * `call` is an expression with `newer`. */
#define CHECK_CONVENTION(call)                                                              \
  do {                                                                                      \
    const size_t known = sizeof(newer.known);                                               \
    memset(newer.tail, 0, sizeof(newer.tail));                                              \
    newer.known.struct_size = known;                                                        \
    CHECK_CODE(call, MOEPERM_OK);                                                           \
    newer.known.struct_size = known + sizeof(newer.tail);                                   \
    CHECK_CODE(call, MOEPERM_OK);                                                           \
    newer.tail[sizeof(newer.tail) - 1] = 1;                                                 \
    CHECK_FAILS(call, MOEPERM_INVALID_ARGUMENT, "is not 0");                                \
    newer.known.struct_size = known + sizeof(newer.tail) - 1; /* the byte is outside now */ \
    CHECK_CODE(call, MOEPERM_OK);                                                           \
    newer.tail[0] = 255;                                                                    \
    CHECK_FAILS(call, MOEPERM_INVALID_ARGUMENT, "is not 0");                                \
    CHECK_SIZES_REFUSED(call);                                                              \
  } while (0)

#define CHECK_SIZES_REFUSED(call)                                                           \
  do {                                                                                      \
    const size_t sizes[] = {0, 1, sizeof(size_t), sizeof(newer.known) - 1, 4097, SIZE_MAX}; \
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); ++i) {                           \
      newer.known.struct_size = sizes[i];                                                   \
      CHECK_FAILS(call, MOEPERM_INVALID_ARGUMENT, "struct_size = ");                        \
    }                                                                                       \
  } while (0)

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
    CHECK_CONVENTION(CreateRowMap(&c.routing_map, &newer.known));
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
