/* SPDX-License-Identifier: Apache-2.0 */
/* The index form and the ways back: results worked out by hand, refusals, struct sizes. */
#include <string.h>

#include "family.h"
#include "struct_size.h"

static void TestAllRows(const moeperm_context* context) {
  static const float rows[] = {1, 10, 2, 20, 2, 20, 1, 10, 3, 30};
  static const float row_probs[] = {.25F, 2, 0, .5F, 8};
  static const int64_t counts[] = {1, 2, 2};
  static const float tokens_grad[] = {9, -9, 6, -6, 16, -16};
  static const float probs_grad[] = {4, 1, 2, 3, 0, 5};
  static const float tokens[] = {4.25F, -4.25F, 4, -4, 128, -128};
  static const float sums[] = {9, -9, 6, -6, 16, -16}; /* without probs */
  static const float rows_grad[] = {.25F, .5F, 6, 8, 0, 0, .5F, 1, 40, 48};
  static const float dots[] = {-8, -1, -2, -4, 0, -16};
  Index x;
  SetUpIndex(&x, 0, kR);
  CHECK_CODE(moeperm_permute(&x.permute, context), MOEPERM_OK);
  CHECK_FLOATS(x.out_rows, rows);
  CHECK_FLOATS(x.out_row_probs, row_probs);
  CHECK_INT32S(x.out_indices, kRows);
  CHECK_INT64S(x.out_counts, counts);
  CHECK_CODE(moeperm_permute_grad(&x.permute_grad, context), MOEPERM_OK);
  CHECK_FLOATS(x.out_tokens, tokens_grad);
  CHECK_FLOATS(x.out_probs, probs_grad);
  CHECK_CODE(moeperm_unpermute(&x.unpermute, context), MOEPERM_OK);
  CHECK_FLOATS(x.out_tokens, tokens);
  CHECK_CODE(moeperm_unpermute_grad(&x.unpermute_grad, context), MOEPERM_OK);
  CHECK_FLOATS(x.out_rows, rows_grad);
  CHECK_FLOATS(x.out_probs, dots);

  /* Absent optional tensors. */
  SetUpIndex(&x, 0, kR);
  x.permute.probs = x.permute.permuted_probs = x.permute.tokens_per_expert = NULL;
  x.permute.num_experts = 0;
  CHECK_CODE(moeperm_permute(&x.permute, context), MOEPERM_OK);
  CHECK_FLOATS(x.out_rows, rows);
  CHECK(x.out_counts[0] == -1); /* not written */
  x.permute_grad.probs_grad = x.permute_grad.permuted_probs_grad = NULL;
  CHECK_CODE(moeperm_permute_grad(&x.permute_grad, context), MOEPERM_OK);
  CHECK_FLOATS(x.out_tokens, tokens_grad);
  x.unpermute.probs = NULL;
  CHECK_CODE(moeperm_unpermute(&x.unpermute, context), MOEPERM_OK);
  CHECK_FLOATS(x.out_tokens, sums);
  x.unpermute_grad.permuted_tokens_grad = NULL;
  CHECK_CODE(moeperm_unpermute_grad(&x.unpermute_grad, context), MOEPERM_OK);
  CHECK_FLOATS(x.out_probs, dots);
  SetUpIndex(&x, 0, kR);
  x.unpermute_grad.permuted_tokens = x.unpermute_grad.probs = x.unpermute_grad.probs_grad = NULL;
  CHECK_CODE(moeperm_unpermute_grad(&x.unpermute_grad, context), MOEPERM_OK);
  const float copies[] = {1, 2, 3, 4, 3, 4, 1, 2, 5, 6};
  CHECK_FLOATS(x.out_rows, copies);
}

/* Rows 1 and 2 only: a process that holds expert 1. */
static void TestSomeRows(void) {
  static const float rows[] = {2, 20, 2, 20};
  static const float row_probs[] = {2, 0};
  static const float tokens_grad[] = {0, 0, 6, -6, 0, 0};
  static const float probs_grad[] = {0, 0, 2, 3, 0, 0};
  static const float tokens[] = {0, 0, 4, -4, 0, 0};
  static const float rows_grad[] = {6, 8, 0, 0};
  static const float dots[] = {0, 0, -2, -4, 0, 0};
  Index x;
  SetUpIndex(&x, 1, 2);
  CHECK_CODE(moeperm_permute(&x.permute, NULL), MOEPERM_OK);
  CHECK_FLOATS(x.out_rows, rows);
  CHECK_FLOATS(x.out_row_probs, row_probs);
  CHECK_INT32S(x.out_indices, kRows); /* of the full layout */
  CHECK_CODE(moeperm_permute_grad(&x.permute_grad, NULL), MOEPERM_OK);
  CHECK_FLOATS(x.out_tokens, tokens_grad);
  CHECK_FLOATS(x.out_probs, probs_grad);
  CHECK_CODE(moeperm_unpermute(&x.unpermute, NULL), MOEPERM_OK);
  CHECK_FLOATS(x.out_tokens, tokens);
  CHECK_CODE(moeperm_unpermute_grad(&x.unpermute_grad, NULL), MOEPERM_OK);
  CHECK_FLOATS(x.out_rows, rows_grad);
  CHECK_FLOATS(x.out_probs, dots);
}

static void TestByRoutingMap(void) {
  static const float tokens[] = {4.5F, -4.5F, 2, -2, 23, -23};
  static const float gathered[] = {.5F, .25F, .75F, .125F, .375F, .625F};
  static const float rows_grad[] = {.5F,    1,     2.25F, 3,   .375F,  .5F,
                                    1.875F, 2.25F, .25F,  .5F, 3.125F, 3.75F};
  static const float probs_grad[] = {-1, 0, -16, -2, -4, 0, 0, -8, -32};
  Back b;
  SetUpBack(&b, &kF1, kTokensGrad);
  CHECK_CODE(moeperm_unpermute_with_routing_map(&b.forward, NULL), MOEPERM_OK);
  CHECK_FLOATS(b.tokens, tokens);
  CHECK_FLOATS(b.gathered, gathered);
  CHECK_CODE(moeperm_unpermute_with_routing_map_grad(&b.backward, NULL), MOEPERM_OK);
  CHECK_FLOATS(b.rows_grad, rows_grad);
  CHECK_FLOATS(b.probs_grad, probs_grad);
  b.forward.probs = b.forward.routing_map = b.forward.gathered_probs = NULL;
  CHECK_CODE(moeperm_unpermute_with_routing_map(&b.forward, NULL), MOEPERM_OK);
  /* Without probs it is the gradient of the permutation. */
  CheckFloats(b.tokens, kF1.tokens_grad, 6, "tokens", __FILE__, __LINE__);
}

static void TestDropAndPad(void) {
  static const float tokens[] = {.5F, 3.5F, 0, 0};
  static const float gathered[] = {.5F, .25F, .75F, 0};
  static const float rows_grad[] = {.5F, .5F, 1.5F, 0};
  static const float probs_grad[] = {1, 8, 4, 8, 0, 0, 0, 0};
  Back b;
  SetUpBack(&b, &kF4, kTokensGrad);
  CHECK_CODE(moeperm_unpermute_with_routing_map(&b.forward, NULL), MOEPERM_OK);
  CHECK_FLOATS(b.tokens, tokens);
  CHECK_FLOATS(b.gathered, gathered);
  b.forward.round_products = 1; /* float32 already */
  CHECK_CODE(moeperm_unpermute_with_routing_map(&b.forward, NULL), MOEPERM_OK);
  CHECK_FLOATS(b.tokens, tokens);
  CHECK_CODE(moeperm_unpermute_with_routing_map_grad(&b.backward, NULL), MOEPERM_OK);
  CHECK_FLOATS(b.rows_grad, rows_grad);
  CHECK_FLOATS(b.probs_grad, probs_grad);
}

/* `field` of `args` absent: a refusal that names it, and nothing else of the call is wrong. */
#define CHECK_NEEDED(function, args, field)                                               \
  do {                                                                                    \
    const moeperm_tensor* const kept = (args).field;                                      \
    (args).field = NULL;                                                                  \
    CHECK_FAILS(function(&(args), NULL), MOEPERM_INVALID_ARGUMENT, #field " is missing"); \
    (args).field = kept;                                                                  \
    CHECK_CODE(function(&(args), NULL), MOEPERM_OK);                                      \
  } while (0)

static void TestNeeded(void) {
  Index x;
  Back b;
  CHECK_FAILS(moeperm_permute(NULL, NULL), MOEPERM_INVALID_ARGUMENT, "args");
  CHECK_FAILS(moeperm_permute_grad(NULL, NULL), MOEPERM_INVALID_ARGUMENT, "args");
  CHECK_FAILS(moeperm_unpermute(NULL, NULL), MOEPERM_INVALID_ARGUMENT, "args");
  CHECK_FAILS(moeperm_unpermute_grad(NULL, NULL), MOEPERM_INVALID_ARGUMENT, "args");
  CHECK_FAILS(moeperm_unpermute_with_routing_map(NULL, NULL), MOEPERM_INVALID_ARGUMENT, "args");
  CHECK_FAILS(moeperm_unpermute_with_routing_map_grad(NULL, NULL), MOEPERM_INVALID_ARGUMENT,
              "args");
  SetUpIndex(&x, 0, kR);
  CHECK_NEEDED(moeperm_permute, x.permute, tokens);
  CHECK_NEEDED(moeperm_permute, x.permute, indices);
  CHECK_NEEDED(moeperm_permute, x.permute, permuted_tokens);
  CHECK_NEEDED(moeperm_permute, x.permute, permuted_probs);
  CHECK_NEEDED(moeperm_permute, x.permute, sorted_indices);
  CHECK_NEEDED(moeperm_permute_grad, x.permute_grad, permuted_tokens_grad);
  CHECK_NEEDED(moeperm_permute_grad, x.permute_grad, permuted_probs_grad);
  CHECK_NEEDED(moeperm_permute_grad, x.permute_grad, sorted_indices);
  CHECK_NEEDED(moeperm_unpermute, x.unpermute, permuted_tokens);
  CHECK_NEEDED(moeperm_unpermute, x.unpermute, sorted_indices);
  CHECK_NEEDED(moeperm_unpermute, x.unpermute, tokens);
  CHECK_NEEDED(moeperm_unpermute_grad, x.unpermute_grad, tokens_grad);
  CHECK_NEEDED(moeperm_unpermute_grad, x.unpermute_grad, permuted_tokens);
  CHECK_NEEDED(moeperm_unpermute_grad, x.unpermute_grad, sorted_indices);
  CHECK_NEEDED(moeperm_unpermute_grad, x.unpermute_grad, probs);
  SetUpBack(&b, &kF1, kTokensGrad);
  CHECK_NEEDED(moeperm_unpermute_with_routing_map, b.forward, permuted_tokens);
  CHECK_NEEDED(moeperm_unpermute_with_routing_map, b.forward, sorted_indices);
  CHECK_NEEDED(moeperm_unpermute_with_routing_map, b.forward, routing_map);
  CHECK_NEEDED(moeperm_unpermute_with_routing_map, b.forward, tokens);
  CHECK_NEEDED(moeperm_unpermute_with_routing_map_grad, b.backward, tokens_grad);
  CHECK_NEEDED(moeperm_unpermute_with_routing_map_grad, b.backward, permuted_tokens);
  CHECK_NEEDED(moeperm_unpermute_with_routing_map_grad, b.backward, routing_map);
  CHECK_NEEDED(moeperm_unpermute_with_routing_map_grad, b.backward, probs);
}

static void TestRefused(void) {
  static const int32_t expert_3[] = {2, 0, 1, 3, -1, 2};
  static const int32_t row_6[] = {0, 4, 1, 2, 3, 6};
  Index x;
  Back b;
  SetUpIndex(&x, 0, kR);
  x.indices.data = (void*)expert_3;
  CHECK_FAILS(moeperm_permute(&x.permute, NULL), MOEPERM_INDEX_OUT_OF_RANGE, "3");
  SetUpIndex(&x, 0, kR);
  x.permute.first_row = -1;
  CHECK_FAILS(moeperm_permute(&x.permute, NULL), MOEPERM_INVALID_ARGUMENT, "first_row = -1");
  SetUpIndex(&x, 0, kR);
  x.tokens.rank = 5;
  CHECK_FAILS(moeperm_permute(&x.permute, NULL), MOEPERM_INVALID_ARGUMENT, "tokens");
  SetUpIndex(&x, 0, kR);
  x.permute_grad.tokens_grad = x.permute_grad.probs_grad = NULL;
  CHECK_FAILS(moeperm_permute_grad(&x.permute_grad, NULL), MOEPERM_INVALID_ARGUMENT,
              "tokens_grad, probs_grad");
  SetUpIndex(&x, 0, kR);
  x.probs.shape[1] = 1;
  CHECK_FAILS(moeperm_unpermute(&x.unpermute, NULL), MOEPERM_INVALID_ARGUMENT, "probs");
  SetUpIndex(&x, 0, kR);
  x.unpermute.tokens = &x.rows; /* an output over an input */
  CHECK_FAILS(moeperm_unpermute(&x.unpermute, NULL), MOEPERM_INVALID_ARGUMENT, "tokens");
  SetUpIndex(&x, 0, kR);
  x.tokens_grad.dtype = MOEPERM_FLOAT16;
  CHECK_FAILS(moeperm_unpermute_grad(&x.unpermute_grad, NULL), MOEPERM_INVALID_ARGUMENT, "float16");

  SetUpBack(&b, &kF1, kTokensGrad);
  b.sorted_indices.data = (void*)row_6;
  CHECK_FAILS(moeperm_unpermute_with_routing_map(&b.forward, NULL), MOEPERM_INDEX_OUT_OF_RANGE,
              "sorted_indices[5] = 6");
  CHECK_FAILS(moeperm_unpermute_with_routing_map_grad(&b.backward, NULL),
              MOEPERM_INDEX_OUT_OF_RANGE, "sorted_indices[5] = 6");
  b.forward.skip_rows_out_of_range = b.backward.skip_rows_out_of_range = 1;
  CHECK_CODE(moeperm_unpermute_with_routing_map(&b.forward, NULL), MOEPERM_OK);
  CHECK_CODE(moeperm_unpermute_with_routing_map_grad(&b.backward, NULL), MOEPERM_OK);
  const float without_slot_5[] = {4.5F, -4.5F, 2, -2, 3, -3};
  CHECK_FLOATS(b.tokens, without_slot_5);
}

static void TestInferPermute(void) {
  const int64_t rows[] = {kR, kH, 0, 0};
  const int64_t slots[] = {kT * kK, 0, 0, 0};
  moeperm_permute_specs specs = MOEPERM_PERMUTE_SPECS_INIT;
  Index x;
  SetUpIndex(&x, 0, kR);
  x.permute.permuted_tokens = x.permute.sorted_indices = NULL; /* outputs are not looked at */
  CHECK_CODE(moeperm_infer_permute(&x.permute, &specs), MOEPERM_OK);
  CHECK_INT64S(specs.permuted_tokens.shape, rows);
  CHECK(specs.permuted_tokens.dtype == MOEPERM_FLOAT32 && specs.permuted_tokens.rank == 2);
  CHECK(specs.permuted_probs.shape[0] == kR && specs.permuted_probs.rank == 1);
  CHECK_INT64S(specs.sorted_indices.shape, slots);
  CHECK(specs.sorted_indices.dtype == MOEPERM_INT32);
  x.permute.probs = NULL;
  CHECK_CODE(moeperm_infer_permute(&x.permute, &specs), MOEPERM_OK);
  CHECK(specs.permuted_probs.dtype == MOEPERM_DTYPE_INVALID);
  x.permute.num_out_tokens = -1;
  specs.permuted_tokens.rank = 77;
  CHECK_FAILS(moeperm_infer_permute(&x.permute, &specs), MOEPERM_INVALID_ARGUMENT,
              "num_out_tokens = -1");
  CHECK(specs.permuted_tokens.rank == 77); /* unchanged after an error */
  CHECK_FAILS(moeperm_infer_permute(NULL, &specs), MOEPERM_INVALID_ARGUMENT, "args");
  CHECK_FAILS(moeperm_infer_permute(&x.permute, NULL), MOEPERM_INVALID_ARGUMENT, "specs");
}

#define CHECK_CONVENTION_OF(type, args, call) \
  do {                                        \
    NEWER(type) newer;                        \
    newer.known = (args);                     \
    CHECK_CONVENTION(call);                   \
  } while (0)

static void TestSizes(void) {
  moeperm_permute_specs specs = MOEPERM_PERMUTE_SPECS_INIT;
  Index x;
  Back b;
  SetUpIndex(&x, 0, kR);
  SetUpBack(&b, &kF1, kTokensGrad);
  CHECK_CONVENTION_OF(moeperm_permute_args, x.permute, moeperm_permute(&newer.known, NULL));
  CHECK_CONVENTION_OF(moeperm_permute_args, x.permute, moeperm_infer_permute(&newer.known, &specs));
  CHECK_CONVENTION_OF(moeperm_permute_grad_args, x.permute_grad,
                      moeperm_permute_grad(&newer.known, NULL));
  CHECK_CONVENTION_OF(moeperm_unpermute_args, x.unpermute, moeperm_unpermute(&newer.known, NULL));
  CHECK_CONVENTION_OF(moeperm_unpermute_grad_args, x.unpermute_grad,
                      moeperm_unpermute_grad(&newer.known, NULL));
  CHECK_CONVENTION_OF(moeperm_unpermute_with_routing_map_args, b.forward,
                      moeperm_unpermute_with_routing_map(&newer.known, NULL));
  CHECK_CONVENTION_OF(moeperm_unpermute_with_routing_map_grad_args, b.backward,
                      moeperm_unpermute_with_routing_map_grad(&newer.known, NULL));
  NEWER(moeperm_permute_specs) newer;
  memset(&newer, 0xFF, sizeof(newer));
  newer.known.struct_size = sizeof(newer.known) + 30;
  CHECK_CODE(moeperm_infer_permute(&x.permute, &newer.known), MOEPERM_OK);
  CHECK(newer.known.sorted_indices.dtype == MOEPERM_INT32);
  for (size_t i = 0; i < sizeof(newer.tail); ++i) CHECK(newer.tail[i] == (i < 30 ? 0 : 0xFF));
  CHECK_SIZES_REFUSED(moeperm_infer_permute(&x.permute, &newer.known));
}

void TestFamily(void) {
  moeperm_context_options options = MOEPERM_CONTEXT_OPTIONS_INIT;
  options.num_threads = 2;
  moeperm_context* context = NULL;
  CHECK_CODE(moeperm_context_create(&options, &context), MOEPERM_OK);
  TestAllRows(NULL);
  TestAllRows(context);
  moeperm_context_destroy(context);
  TestSomeRows();
  TestByRoutingMap();
  TestDropAndPad();
  TestNeeded();
  TestRefused();
  TestInferPermute();
  TestSizes();
}
