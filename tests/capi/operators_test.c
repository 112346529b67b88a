/* SPDX-License-Identifier: Apache-2.0 */
/* The operators on the two fixtures, by routing map and by row map, and their infer functions. */
#include <string.h>

#include "fixtures.h"

static void TestFixture(const Fixture* fixture, const moeperm_context* context) {
  Case c;
  SetUp(&c, fixture);
  CHECK_CODE(moeperm_permute_with_routing_map(&c.args, context), MOEPERM_OK);
  CheckForward(&c);
  CHECK_CODE(moeperm_permute_with_routing_map_grad(&c.grad_args, context), MOEPERM_OK);
  CheckGrad(&c);

  /* Absent optional tensors: what is left is the same. */
  float tokens_grad[kMaxTokens * kMaxHidden];
  memcpy(tokens_grad, c.outputs.tokens_grad + kGuard, sizeof(tokens_grad));
  SetUp(&c, fixture);
  c.args.probs = NULL;
  c.args.permuted_probs = NULL;
  c.args.tokens_per_expert = NULL;
  c.args.expert_offsets = NULL;
  CHECK_CODE(moeperm_permute_with_routing_map(&c.args, context), MOEPERM_OK);
  c.grad_args.permuted_probs_grad = NULL;
  c.grad_args.routing_map = NULL;
  c.grad_args.probs_grad = NULL;
  CHECK_CODE(moeperm_permute_with_routing_map_grad(&c.grad_args, context), MOEPERM_OK);
  CHECK(memcmp(tokens_grad, c.outputs.tokens_grad + kGuard,
               (size_t)(fixture->num_tokens * fixture->hidden) * sizeof(float)) == 0);
  CHECK(c.outputs.expert_offsets[kGuard] == -1); /* not written */
}

static void TestByRowMap(const Fixture* fixture, const moeperm_context* context) {
  Case c;
  SetUp(&c, fixture);
  /* What the row map does not give is taken from the fixture. */
  CHECK_CODE(moeperm_permute_with_routing_map(&c.args, context), MOEPERM_OK);
  memset(c.outputs.permuted_tokens, 0xFF, sizeof(c.outputs.permuted_tokens));
  memset(c.outputs.permuted_probs, 0xFF, sizeof(c.outputs.permuted_probs));

  moeperm_row_map_options options = MOEPERM_ROW_MAP_OPTIONS_INIT;
  options.drop_and_pad = fixture->drop_and_pad;
  options.capacity = fixture->drop_and_pad ? fixture->num_rows / fixture->num_experts : 0;
  moeperm_row_map* map = NULL;
  CHECK_CODE(moeperm_row_map_create(&c.routing_map, &options, context, &map), MOEPERM_OK);
  CHECK(moeperm_row_map_drop_and_pad(map) == fixture->drop_and_pad);
  CHECK(moeperm_row_map_num_tokens(map) == fixture->num_tokens);
  CHECK(moeperm_row_map_num_experts(map) == fixture->num_experts);
  CHECK(moeperm_row_map_num_rows(map) == fixture->num_rows);
  CheckInt64s(moeperm_row_map_tokens_per_expert(map), fixture->tokens_per_expert,
              (size_t)fixture->num_experts, "tokens_per_expert", __FILE__, __LINE__);
  CheckInt64s(moeperm_row_map_expert_offsets(map), fixture->expert_offsets,
              (size_t)fixture->num_experts + 1, "expert_offsets", __FILE__, __LINE__);

  moeperm_permute_by_row_map_args args = MOEPERM_PERMUTE_BY_ROW_MAP_ARGS_INIT;
  args.tokens = &c.tokens;
  args.probs = &c.probs;
  args.permuted_tokens = &c.permuted_tokens;
  args.permuted_probs = &c.permuted_probs;
  CHECK_CODE(moeperm_permute_by_row_map(map, &args, context), MOEPERM_OK);
  CheckForward(&c);

  moeperm_permute_by_row_map_grad_args grad_args = MOEPERM_PERMUTE_BY_ROW_MAP_GRAD_ARGS_INIT;
  grad_args.permuted_tokens_grad = &c.permuted_tokens_grad;
  grad_args.permuted_probs_grad = &c.permuted_probs_grad;
  grad_args.tokens_grad = &c.tokens_grad;
  grad_args.probs_grad = &c.probs_grad;
  CHECK_CODE(moeperm_permute_by_row_map_grad(map, &grad_args, context), MOEPERM_OK);
  CheckGrad(&c);
  moeperm_row_map_destroy(map);
}

void TestFixtures(void) {
  moeperm_context_options options = MOEPERM_CONTEXT_OPTIONS_INIT;
  options.num_threads = 2;
  moeperm_context* context = NULL;
  CHECK_CODE(moeperm_context_create(&options, &context), MOEPERM_OK);
  TestFixture(&kF1, NULL);
  TestFixture(&kF1, context);
  TestFixture(&kF4, NULL);
  TestFixture(&kF4, context);
  TestByRowMap(&kF1, NULL);
  TestByRowMap(&kF4, context);
  moeperm_context_destroy(context);
}

void TestRowMaps(void) {
  Case c;
  SetUp(&c, &kF1);
  moeperm_row_map* map = NULL;
  CHECK_CODE(moeperm_row_map_create(&c.routing_map, NULL, NULL, &map), MOEPERM_OK);
  CHECK(moeperm_row_map_num_slots(map) == 6);
  const int32_t token_offsets[] = {0, 2, 4, 6};
  const int32_t slot_rows[] = {0, 4, 1, 2, 3, 5};
  const int32_t slot_experts[] = {0, 2, 0, 1, 1, 2};
  const int32_t row_tokens[] = {0, 1, 1, 2, 0, 2};
  CHECK_INT32S(moeperm_row_map_token_offsets(map), token_offsets);
  CHECK_INT32S(moeperm_row_map_slot_rows(map), slot_rows);
  CHECK_INT32S(moeperm_row_map_slot_experts(map), slot_experts);
  CHECK_INT32S(moeperm_row_map_row_tokens(map), row_tokens);
  moeperm_row_map_destroy(map);

  /* num_rows counts only with its flag. */
  moeperm_row_map_options options = MOEPERM_ROW_MAP_OPTIONS_INIT;
  options.num_rows = 4;
  CHECK_CODE(moeperm_row_map_create(&c.routing_map, &options, NULL, &map), MOEPERM_OK);
  CHECK(moeperm_row_map_num_rows(map) == 6);
  moeperm_row_map_destroy(map);
  options.has_num_rows = 1;
  const int32_t cut_rows[] = {0, -1, 1, 2, 3, -1};
  CHECK_CODE(moeperm_row_map_create(&c.routing_map, &options, NULL, &map), MOEPERM_OK);
  CHECK(moeperm_row_map_num_rows(map) == 4);
  CHECK_INT32S(moeperm_row_map_slot_rows(map), cut_rows);
  moeperm_row_map_destroy(map);

  /* No row map. */
  moeperm_row_map_destroy(NULL);
  CHECK(moeperm_row_map_drop_and_pad(NULL) == 0 && moeperm_row_map_num_tokens(NULL) == 0);
  CHECK(moeperm_row_map_num_experts(NULL) == 0 && moeperm_row_map_num_rows(NULL) == 0);
  CHECK(moeperm_row_map_num_slots(NULL) == 0 && moeperm_row_map_token_offsets(NULL) == NULL);
  CHECK(moeperm_row_map_slot_rows(NULL) == NULL && moeperm_row_map_slot_experts(NULL) == NULL);
  CHECK(moeperm_row_map_row_tokens(NULL) == NULL);
  CHECK(moeperm_row_map_tokens_per_expert(NULL) == NULL);
  CHECK(moeperm_row_map_expert_offsets(NULL) == NULL);
}

static void CheckSpec(const moeperm_tensor_spec* got, const moeperm_tensor* want, int line) {
  CheckTrue(got->dtype == want->dtype, "dtype", __FILE__, line);
  CheckTrue(got->rank == want->rank, "rank", __FILE__, line);
  CheckInt64s(got->shape, want->shape, MOEPERM_MAX_RANK, "shape", __FILE__, line);
}
#define CHECK_SPEC(name) CheckSpec(&specs.name, &c.name, __LINE__)

void TestInfer(void) {
  Case c;
  SetUp(&c, &kF1);
  {
    moeperm_permute_with_routing_map_specs specs = MOEPERM_PERMUTE_WITH_ROUTING_MAP_SPECS_INIT;
    CHECK_CODE(moeperm_infer_permute_with_routing_map(&c.args, &specs), MOEPERM_OK);
    CHECK_SPEC(permuted_tokens);
    CHECK_SPEC(permuted_probs);
    CHECK_SPEC(sorted_indices);
    CHECK_SPEC(tokens_per_expert);
    CHECK_SPEC(expert_offsets);

    /* Outputs are not looked at; without probs there are no permuted probs. */
    c.args.permuted_tokens = NULL;
    c.args.sorted_indices = NULL;
    c.args.probs = NULL;
    CHECK_CODE(moeperm_infer_permute_with_routing_map(&c.args, &specs), MOEPERM_OK);
    CHECK(specs.permuted_probs.dtype == MOEPERM_DTYPE_INVALID && specs.permuted_probs.rank == 0);
    CHECK_SPEC(permuted_tokens);

    c.args.top_k = -1;
    specs.permuted_tokens.rank = 77;
    CHECK_FAILS(moeperm_infer_permute_with_routing_map(&c.args, &specs), MOEPERM_INVALID_ARGUMENT,
                "top_k = -1");
    CHECK(specs.permuted_tokens.rank == 77); /* unchanged after an error */
    CHECK_FAILS(moeperm_infer_permute_with_routing_map(NULL, &specs), MOEPERM_INVALID_ARGUMENT,
                "args");
    CHECK_FAILS(moeperm_infer_permute_with_routing_map(&c.args, NULL), MOEPERM_INVALID_ARGUMENT,
                "specs");
    c.args.tokens = NULL;
    CHECK_FAILS(moeperm_infer_permute_with_routing_map(&c.args, &specs), MOEPERM_INVALID_ARGUMENT,
                "tokens");
  }
  {
    moeperm_permute_with_routing_map_grad_specs specs =
        MOEPERM_PERMUTE_WITH_ROUTING_MAP_GRAD_SPECS_INIT;
    CHECK_CODE(moeperm_infer_permute_with_routing_map_grad(&c.grad_args, &specs), MOEPERM_OK);
    CHECK_SPEC(tokens_grad);
    CHECK_SPEC(probs_grad);
    c.grad_args.permuted_probs_grad = NULL;
    CHECK_CODE(moeperm_infer_permute_with_routing_map_grad(&c.grad_args, &specs), MOEPERM_OK);
    CHECK(specs.probs_grad.dtype == MOEPERM_DTYPE_INVALID);
    CHECK_FAILS(moeperm_infer_permute_with_routing_map_grad(NULL, &specs), MOEPERM_INVALID_ARGUMENT,
                "args");
    CHECK_FAILS(moeperm_infer_permute_with_routing_map_grad(&c.grad_args, NULL),
                MOEPERM_INVALID_ARGUMENT, "specs");
  }
}
