/* SPDX-License-Identifier: Apache-2.0 */
#include "fixtures.h"

#include <string.h>

const Fixture kF1 = {
    3,
    3,
    2,
    6,
    2,                                               /* T, E, H, R, K */
    0,                                               /* drop_and_pad */
    {1, 0, 1, 1, 1, 0, 0, 1, 1},                     /* routing_map */
    {1, 10, 2, 20, 3, 30},                           /* tokens */
    {.5F, 0, .25F, .75F, .125F, 0, 0, .375F, .625F}, /* probs */
    {1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32},  /* permuted_tokens_grad */
    {1, 2, 3, 4, 5, 6},                              /* permuted_probs_grad */
    {1, 10, 2, 20, 2, 20, 3, 30, 1, 10, 3, 30},      /* permuted_tokens */
    {.5F, .75F, .125F, .375F, .25F, .625F},          /* permuted_probs */
    {0, 4, 1, 2, 3, 5},                              /* sorted_indices */
    {2, 2, 2},                                       /* tokens_per_expert */
    {0, 2, 4, 6},                                    /* expert_offsets */
    {17, -17, 6, -6, 40, -40},                       /* tokens_grad */
    {1, 0, 5, 2, 3, 0, 0, 4, 6},                     /* probs_grad */
};

const Fixture kF4 = {
    4,
    2,
    1,
    4,
    0,                                /* T, E, H, R, K */
    1,                                /* drop_and_pad */
    {1, 0, 1, 1, 1, 0, 0, 0},         /* routing_map */
    {1, 2, 3, 4},                     /* tokens */
    {.5F, 0, .25F, .75F, 1, 0, 0, 0}, /* probs */
    {1, 2, 4, 8},                     /* permuted_tokens_grad */
    {1, 2, 3, 4},                     /* permuted_probs_grad */
    {1, 2, 2, 1},                     /* permuted_tokens */
    {.5F, .25F, .75F, 0},             /* permuted_probs */
    {0, 1, 1, 0},                     /* sorted_indices */
    {3, 1},                           /* tokens_per_expert */
    {0, 2, 4},                        /* expert_offsets */
    {9, 6, 0, 0},                     /* tokens_grad */
    {1, 4, 2, 3, 0, 0, 0, 0},         /* probs_grad */
};

static moeperm_tensor View1(const void* data, moeperm_dtype dtype, int64_t size) {
  return moeperm_tensor_contiguous(data, dtype, 1, &size);
}

static moeperm_tensor View2(const void* data, moeperm_dtype dtype, int64_t rows, int64_t columns) {
  const int64_t shape[] = {rows, columns};
  return moeperm_tensor_contiguous(data, dtype, 2, shape);
}

void SetUp(Case* c, const Fixture* f) {
  Outputs* const o = &c->outputs;
  c->fixture = f;
  memset(o, 0xFF, sizeof(*o));
  c->tokens = View2(f->tokens, MOEPERM_FLOAT32, f->num_tokens, f->hidden);
  c->routing_map = View2(f->routing_map, MOEPERM_INT8, f->num_tokens, f->num_experts);
  c->probs = View2(f->probs, MOEPERM_FLOAT32, f->num_tokens, f->num_experts);
  c->permuted_tokens_grad = View2(f->permuted_tokens_grad, MOEPERM_FLOAT32, f->num_rows, f->hidden);
  c->permuted_probs_grad = View1(f->permuted_probs_grad, MOEPERM_FLOAT32, f->num_rows);
  c->permuted_tokens = View2(o->permuted_tokens + kGuard, MOEPERM_FLOAT32, f->num_rows, f->hidden);
  c->permuted_probs = View1(o->permuted_probs + kGuard, MOEPERM_FLOAT32, f->num_rows);
  c->sorted_indices = View1(o->sorted_indices + kGuard, MOEPERM_INT32, f->num_rows);
  c->tokens_per_expert = View1(o->tokens_per_expert + kGuard, MOEPERM_INT64, f->num_experts);
  c->expert_offsets = View1(o->expert_offsets + kGuard, MOEPERM_INT64, f->num_experts + 1);
  c->tokens_grad = View2(o->tokens_grad + kGuard, MOEPERM_FLOAT32, f->num_tokens, f->hidden);
  c->probs_grad = View2(o->probs_grad + kGuard, MOEPERM_FLOAT32, f->num_tokens, f->num_experts);

  const moeperm_permute_with_routing_map_args args = MOEPERM_PERMUTE_WITH_ROUTING_MAP_ARGS_INIT;
  c->args = args;
  c->args.tokens = &c->tokens;
  c->args.routing_map = &c->routing_map;
  c->args.probs = &c->probs;
  c->args.num_out_tokens = f->num_rows;
  c->args.top_k = f->top_k;
  c->args.drop_and_pad = f->drop_and_pad;
  c->args.permuted_tokens = &c->permuted_tokens;
  c->args.permuted_probs = &c->permuted_probs;
  c->args.sorted_indices = &c->sorted_indices;
  c->args.tokens_per_expert = &c->tokens_per_expert;
  c->args.expert_offsets = &c->expert_offsets;

  const moeperm_permute_with_routing_map_grad_args grad_args =
      MOEPERM_PERMUTE_WITH_ROUTING_MAP_GRAD_ARGS_INIT;
  c->grad_args = grad_args;
  c->grad_args.permuted_tokens_grad = &c->permuted_tokens_grad;
  c->grad_args.permuted_probs_grad = &c->permuted_probs_grad;
  c->grad_args.sorted_indices = &c->sorted_indices;
  c->grad_args.routing_map = f->drop_and_pad ? NULL : &c->routing_map;
  c->grad_args.num_tokens = f->num_tokens;
  c->grad_args.num_experts = f->num_experts;
  c->grad_args.drop_and_pad = f->drop_and_pad;
  c->grad_args.tokens_grad = &c->tokens_grad;
  c->grad_args.probs_grad = &c->probs_grad;
}

/* All 0xFF bytes but for `used` bytes after the first guard. */
static int GuardsIntact(const void* buffer, size_t buffer_bytes, size_t element, int64_t used) {
  const unsigned char* const bytes = (const unsigned char*)buffer;
  const size_t begin = kGuard * element;
  const size_t end = begin + (size_t)used * element;
  for (size_t i = 0; i < buffer_bytes; ++i) {
    if ((i < begin || i >= end) && bytes[i] != 0xFF) return 0;
  }
  return 1;
}
#define GUARDS_INTACT(array, used) \
  CHECK(GuardsIntact((array), sizeof(array), sizeof(*(array)), (used)))

#define SAME(Check, name, used)                                                          \
  do {                                                                                   \
    Check(c->outputs.name + kGuard, f->name, (size_t)(used), #name, __FILE__, __LINE__); \
    GUARDS_INTACT(c->outputs.name, used);                                                \
  } while (0)

void CheckForward(const Case* c) {
  const Fixture* const f = c->fixture;
  SAME(CheckFloats, permuted_tokens, f->num_rows * f->hidden);
  SAME(CheckFloats, permuted_probs, f->num_rows);
  SAME(CheckInt32s, sorted_indices, f->num_rows);
  SAME(CheckInt64s, tokens_per_expert, f->num_experts);
  SAME(CheckInt64s, expert_offsets, f->num_experts + 1);
}

void CheckGrad(const Case* c) {
  const Fixture* const f = c->fixture;
  SAME(CheckFloats, tokens_grad, f->num_tokens * f->hidden);
  SAME(CheckFloats, probs_grad, f->num_tokens * f->num_experts);
}
