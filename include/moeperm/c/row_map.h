/* SPDX-License-Identifier: Apache-2.0 */
/* Row maps and the operators over them; a part of moeperm/moeperm.h, whose words on structs,
 * tensors and errors hold here too. The probs may have another floating-point dtype than the
 * tokens.
 *
 * Symbols in shapes: T tokens, H hidden, E experts, R rows, all of them of the row map. */
#ifndef MOEPERM_C_ROW_MAP_H_
#define MOEPERM_C_ROW_MAP_H_

#include "moeperm/moeperm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Row map: the index of a routing, built once ------------------------------------------ */

/* Which routes of an expert keep a row where it has more than its capacity. */
typedef int32_t moeperm_keep_policy;
enum {
  MOEPERM_KEEP_FIRST = 0,       /* those of the lowest tokens */
  MOEPERM_KEEP_HIGHEST_PROB = 1 /* of equal probs, and of NaN, the lowest tokens */
};

typedef struct moeperm_row_map_options {
  size_t struct_size;
  /* no: one row a route. yes: `capacity` rows an expert; routed tokens first, ascending, as many as
   * fit; then, where an expert has fewer, unrouted tokens, ascending, as pad rows. */
  int32_t drop_and_pad;
  /* Not padded. no: one row a route. yes: num_rows rows; where that is fewer than there are routes
   * the last rows are dropped, and where it is more the rows past the routes hold no token. */
  int32_t has_num_rows;
  /* Drop-and-pad: rows of an expert, 0 <= capacity <= num_tokens. Not padded: the most rows an
   * expert keeps; 0: all. */
  int64_t capacity;
  int64_t num_rows;
  /* Beyond the original: */
  moeperm_keep_policy keep;
  int32_t mask_pads; /* flag, drop-and-pad: pad rows are zero rows and give no gradient */
  /* Not padded: each expert's rows are filled up with zero rows to a multiple of this; 0 as 1. */
  int64_t align;
  const moeperm_tensor* probs; /* [num_tokens, num_experts] float; for MOEPERM_KEEP_HIGHEST_PROB */
  int64_t pad_empty_experts;   /* flag, with align: an expert without rows gets a multiple of one */
} moeperm_row_map_options;
#define MOEPERM_ROW_MAP_OPTIONS_INIT \
  { sizeof(moeperm_row_map_options), 0, 0, 0, 0, MOEPERM_KEEP_FIRST, 0, 0, NULL, 0 }

/* Immutable; may be used by many host threads at once. */
typedef struct moeperm_row_map moeperm_row_map;

/* Builds the index of routing_map [num_tokens, num_experts], int8 or bool; a byte that is not 0 is
 * a route. Any routing: a token may have any number of routes. num_tokens, num_experts and the
 * number of rows must be below 2^31. options may be NULL. Errors: MOEPERM_INVALID_ARGUMENT,
 * MOEPERM_OUT_OF_MEMORY; *row_map is then NULL. */
MOEPERM_EXPORT moeperm_code moeperm_row_map_create(const moeperm_tensor* routing_map,
                                                   const moeperm_row_map_options* options,
                                                   const moeperm_context* context,
                                                   moeperm_row_map** row_map);
/* Not while a call uses it. NULL: does nothing. */
MOEPERM_EXPORT void moeperm_row_map_destroy(moeperm_row_map* row_map);

/* Getters; 0 or NULL where row_map is NULL. What they point to lives as long as the row map. */
MOEPERM_EXPORT int32_t moeperm_row_map_drop_and_pad(const moeperm_row_map* row_map);
MOEPERM_EXPORT int64_t moeperm_row_map_num_tokens(const moeperm_row_map* row_map);
MOEPERM_EXPORT int64_t moeperm_row_map_num_experts(const moeperm_row_map* row_map);
MOEPERM_EXPORT int64_t moeperm_row_map_num_rows(const moeperm_row_map* row_map);
MOEPERM_EXPORT int64_t moeperm_row_map_num_slots(const moeperm_row_map* row_map);
/* [num_tokens + 1]: token t has the slots token_offsets[t] .. token_offsets[t + 1] - 1. */
MOEPERM_EXPORT const int32_t* moeperm_row_map_token_offsets(const moeperm_row_map* row_map);
/* [num_slots]: the row of a slot; -1 where it was dropped. Ascending inside a token. */
MOEPERM_EXPORT const int32_t* moeperm_row_map_slot_rows(const moeperm_row_map* row_map);
/* [num_slots]: the expert of a slot. */
MOEPERM_EXPORT const int32_t* moeperm_row_map_slot_experts(const moeperm_row_map* row_map);
/* [num_rows]: the token of a row; -1 where the row holds none (a zero row). */
MOEPERM_EXPORT const int32_t* moeperm_row_map_row_tokens(const moeperm_row_map* row_map);
/* Routes in the map, and those of them that got no row. */
MOEPERM_EXPORT int64_t moeperm_row_map_num_routes(const moeperm_row_map* row_map);
MOEPERM_EXPORT int64_t moeperm_row_map_num_dropped(const moeperm_row_map* row_map);
/* [num_experts]: routes in the map, dropped ones included, pad rows not. */
MOEPERM_EXPORT const int64_t* moeperm_row_map_tokens_per_expert(const moeperm_row_map* row_map);
/* [num_experts]: rows that hold a routed token. They are an expert's first rows. */
MOEPERM_EXPORT const int64_t* moeperm_row_map_kept_per_expert(const moeperm_row_map* row_map);
/* [num_experts + 1]: expert e has the rows expert_offsets[e] .. expert_offsets[e + 1] - 1. */
MOEPERM_EXPORT const int64_t* moeperm_row_map_expert_offsets(const moeperm_row_map* row_map);

/* ---- MoeTokenPermuteWithRoutingMap over a row map: any routing, no slots to count ----------- */
typedef struct moeperm_permute_by_row_map_args {
  size_t struct_size;
  const moeperm_tensor* tokens;          /* [T, H] float */
  const moeperm_tensor* probs;           /* optional: [T, E] float */
  const moeperm_tensor* permuted_tokens; /* output: [R, H], dtype of tokens */
  const moeperm_tensor* permuted_probs;  /* output: [R], dtype of probs; if and only if probs */
} moeperm_permute_by_row_map_args;
#define MOEPERM_PERMUTE_BY_ROW_MAP_ARGS_INIT \
  { sizeof(moeperm_permute_by_row_map_args), NULL, NULL, NULL, NULL }

MOEPERM_EXPORT moeperm_code moeperm_permute_by_row_map(const moeperm_row_map* row_map,
                                                       const moeperm_permute_by_row_map_args* args,
                                                       const moeperm_context* context);

typedef struct moeperm_permute_by_row_map_grad_args {
  size_t struct_size;
  const moeperm_tensor* permuted_tokens_grad; /* [R, H] float; with tokens_grad */
  const moeperm_tensor* permuted_probs_grad;  /* [R] float; with probs_grad */
  const moeperm_tensor* tokens_grad;          /* optional output: [T, H] */
  const moeperm_tensor* probs_grad;           /* optional output: [T, E] */
} moeperm_permute_by_row_map_grad_args;
#define MOEPERM_PERMUTE_BY_ROW_MAP_GRAD_ARGS_INIT \
  { sizeof(moeperm_permute_by_row_map_grad_args), NULL, NULL, NULL, NULL }

MOEPERM_EXPORT moeperm_code moeperm_permute_by_row_map_grad(
    const moeperm_row_map* row_map, const moeperm_permute_by_row_map_grad_args* args,
    const moeperm_context* context);

/* ---- The way back, with probs for every pair of token and expert ---------------------------- */

/*   tokens[t] = sum over t's slots, ascending, of probs[t][expert of slot] * permuted_tokens[row]
 *
 * Rows without a token and routes without a row take no part. Sums are kept in float32, each
 * product rounded before it is added, the sum rounded once; without probs rows are added as they
 * are. Not padded: a slot whose weight is 0 takes no part; the sum starts as the first slot's
 * product where that takes part, else from +0. Drop-and-pad: the sum starts from +0, a weight of 0
 * multiplies, and pad rows that are not masked weigh the prob of their token and expert. */
typedef struct moeperm_unpermute_by_row_map_args {
  size_t struct_size;
  const moeperm_tensor* permuted_tokens; /* [R, H] float */
  const moeperm_tensor* probs;           /* optional: [T, E] float */
  const moeperm_tensor* tokens;          /* output: [T, H], dtype of permuted_tokens */
  int64_t round_products; /* flag: products are rounded to the dtype of the rows, too */
} moeperm_unpermute_by_row_map_args;
#define MOEPERM_UNPERMUTE_BY_ROW_MAP_ARGS_INIT \
  { sizeof(moeperm_unpermute_by_row_map_args), NULL, NULL, NULL, 0 }

MOEPERM_EXPORT moeperm_code moeperm_unpermute_by_row_map(
    const moeperm_row_map* row_map, const moeperm_unpermute_by_row_map_args* args,
    const moeperm_context* context);

/* permuted_tokens_grad[row] = probs[token of row][expert of row] * tokens_grad[token of row],
 * rounded once (a copy without probs); +0 for rows without a token.
 * probs_grad[t][e] = <permuted_tokens[row], tokens_grad[t]> for the row of token t and expert e, in
 * the order of addition of moeperm_unpermute_grad; +0 where there is none. Either gradient may be
 * asked for alone. */
typedef struct moeperm_unpermute_by_row_map_grad_args {
  size_t struct_size;
  const moeperm_tensor* tokens_grad;          /* [T, H] float */
  const moeperm_tensor* permuted_tokens;      /* [R, H], dtype of tokens_grad; with probs_grad */
  const moeperm_tensor* probs;                /* optional: [T, E] float; with probs_grad */
  const moeperm_tensor* permuted_tokens_grad; /* optional output: [R, H], dtype of tokens_grad */
  const moeperm_tensor* probs_grad;           /* optional output: [T, E], dtype of probs */
} moeperm_unpermute_by_row_map_grad_args;
#define MOEPERM_UNPERMUTE_BY_ROW_MAP_GRAD_ARGS_INIT \
  { sizeof(moeperm_unpermute_by_row_map_grad_args), NULL, NULL, NULL, NULL, NULL }

MOEPERM_EXPORT moeperm_code moeperm_unpermute_by_row_map_grad(
    const moeperm_row_map* row_map, const moeperm_unpermute_by_row_map_grad_args* args,
    const moeperm_context* context);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MOEPERM_C_ROW_MAP_H_ */
