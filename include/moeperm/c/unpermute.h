/* SPDX-License-Identifier: Apache-2.0 */
/* MoeTokenUnpermute, MoeTokenUnpermuteWithRoutingMap and their gradients; a part of
 * moeperm/moeperm.h, whose words on structs, tensors and errors hold here too. The probs may have
 * another floating-point dtype than the tokens.
 *
 * Symbols in shapes: T tokens, H hidden, E experts, K slots a token (top_k), R rows, C capacity. */
#ifndef MOEPERM_C_UNPERMUTE_H_
#define MOEPERM_C_UNPERMUTE_H_

#include "moeperm/moeperm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- After moeperm_permute: probs slot by slot -------------------------------------------- */

/* Brings the experts' rows back to token order, weighted:
 *
 *   tokens[t] = sum over t's slots, ascending, of probs[t][k] * permuted_tokens[row - first_row]
 *
 * in float32: each product is rounded, then added; the sum is rounded to the dtype once. A slot
 * takes part where its row, sorted_indices[t * K + k], is in [first_row, first_row + R) and its
 * prob is not 0: NaN and infinity of such a row do not spread. The sum starts as the first slot's
 * product where that takes part, else from +0. Without probs rows are added as they are, and a
 * token of one row is an exact copy. No row number is an error. With first_row this is
 * MoeTokenUnpermuteWithEp too. */
typedef struct moeperm_unpermute_args {
  size_t struct_size;
  const moeperm_tensor* permuted_tokens; /* [R, H] float */
  const moeperm_tensor* sorted_indices;  /* [T * K] int32 or int64; T from tokens */
  const moeperm_tensor* probs;           /* optional: [T, K] float */
  int64_t first_row;
  const moeperm_tensor* tokens; /* output: [T, H], dtype of permuted_tokens */
} moeperm_unpermute_args;
#define MOEPERM_UNPERMUTE_ARGS_INIT \
  { sizeof(moeperm_unpermute_args), NULL, NULL, NULL, 0, NULL }

MOEPERM_EXPORT moeperm_code moeperm_unpermute(const moeperm_unpermute_args* args,
                                              const moeperm_context* context);

/* permuted_tokens_grad[row - first_row] = probs[t][k] * tokens_grad[t], rounded once (a copy
 * without probs); +0 for rows of no slot; of several slots of one row the last one is taken.
 * probs_grad[t][k] = <permuted_tokens[row - first_row], tokens_grad[t]>: float32 products, element
 * h added into lane h mod 16 from +0, the lanes halved pairwise (8, 4, 2, 1), rounded once; +0 for
 * a slot that takes no part. A slot takes part where its row is in [first_row, first_row + R); a
 * prob of 0 does not matter here. Either gradient may be asked for alone. */
typedef struct moeperm_unpermute_grad_args {
  size_t struct_size;
  const moeperm_tensor* tokens_grad;     /* [T, H] float */
  const moeperm_tensor* permuted_tokens; /* [R, H], dtype of tokens_grad; with probs_grad */
  const moeperm_tensor* sorted_indices;  /* [T * K] int32 or int64 */
  const moeperm_tensor* probs;           /* optional: [T, K] float; with probs_grad */
  int64_t first_row;
  const moeperm_tensor* permuted_tokens_grad; /* optional output: [R, H], dtype of tokens_grad */
  const moeperm_tensor* probs_grad;           /* optional output: [T, K], dtype of probs */
} moeperm_unpermute_grad_args;
#define MOEPERM_UNPERMUTE_GRAD_ARGS_INIT \
  { sizeof(moeperm_unpermute_grad_args), NULL, NULL, NULL, NULL, 0, NULL, NULL }

MOEPERM_EXPORT moeperm_code moeperm_unpermute_grad(const moeperm_unpermute_grad_args* args,
                                                   const moeperm_context* context);

/* ---- After moeperm_permute_with_routing_map: probs for every pair of token and expert ------- */

/* sorted_indices is what moeperm_permute_with_routing_map made.
 * Not padded: token t's k-th slot belongs to its k-th expert in the map, ascending, and weighs
 * probs[t][that expert]:
 *
 *   tokens[t] = sum over t's slots, ascending, of weight * permuted_tokens[sorted_indices[slot]]
 *
 * A slot takes part where it holds a row and its weight is not 0. Without probs rows are added as
 * they are. The sum starts as the first slot's product where that takes part, else from +0. A token
 * with more routes in the map than slots is an error.
 * Drop-and-pad (C = R / E): tokens[t] = sum over the rows with sorted_indices[row] == t, ascending,
 * of probs[t][row / C] * permuted_tokens[row], from +0; a weight of 0 multiplies.
 *
 * Sums are kept in float32, each product rounded before it is added, the sum rounded once. Errors
 * as there, MOEPERM_INDEX_OUT_OF_RANGE included. */
typedef struct moeperm_unpermute_with_routing_map_args {
  size_t struct_size;
  const moeperm_tensor* permuted_tokens; /* [R, H] float */
  const moeperm_tensor* sorted_indices;  /* [T * K] or [R], int32 or int64 */
  const moeperm_tensor* routing_map;     /* [T, E] int8 or bool; with probs, not padded */
  const moeperm_tensor* probs;           /* optional: [T, E] float */
  int32_t drop_and_pad;                  /* flag */
  int32_t round_products;         /* flag: products are rounded to the dtype of the rows, too */
  int32_t skip_rows_out_of_range; /* flag, not padded: a row number >= R is skipped, no error */
  const moeperm_tensor* tokens;   /* output: [T, H], dtype of permuted_tokens */
  /* Optional output, with probs only, dtype of probs: [T * K] (slot order; +0 for a slot without an
   * expert) or in drop-and-pad mode [R] (row order): the weights, copied. */
  const moeperm_tensor* gathered_probs;
} moeperm_unpermute_with_routing_map_args;
#define MOEPERM_UNPERMUTE_WITH_ROUTING_MAP_ARGS_INIT \
  { sizeof(moeperm_unpermute_with_routing_map_args), NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL }

MOEPERM_EXPORT moeperm_code moeperm_unpermute_with_routing_map(
    const moeperm_unpermute_with_routing_map_args* args, const moeperm_context* context);

/* permuted_tokens_grad[row] = weight of the row's slot * tokens_grad[t], rounded once (a copy
 * without probs); +0 for rows of no slot; of several slots of one row the last one is taken.
 * probs_grad[t][e] = <permuted_tokens[row], tokens_grad[t]> for the row of route (t, e), in the
 * order of addition of moeperm_unpermute_grad; +0 elsewhere, and where the slot holds no row.
 * Drop-and-pad: of two rows with one pair (t, e) the last one is taken. Either gradient may be
 * asked for alone. */
typedef struct moeperm_unpermute_with_routing_map_grad_args {
  size_t struct_size;
  const moeperm_tensor* tokens_grad;          /* [T, H] float */
  const moeperm_tensor* permuted_tokens;      /* [R, H], dtype of tokens_grad; with probs_grad */
  const moeperm_tensor* sorted_indices;       /* [T * K] or [R], int32 or int64 */
  const moeperm_tensor* routing_map;          /* [T, E]; with probs, not padded */
  const moeperm_tensor* probs;                /* optional: [T, E] float; with probs_grad */
  int32_t drop_and_pad;                       /* flag */
  int32_t skip_rows_out_of_range;             /* flag, not padded */
  const moeperm_tensor* permuted_tokens_grad; /* optional output: [R, H], dtype of tokens_grad */
  const moeperm_tensor* probs_grad;           /* optional output: [T, E], dtype of probs */
} moeperm_unpermute_with_routing_map_grad_args;
#define MOEPERM_UNPERMUTE_WITH_ROUTING_MAP_GRAD_ARGS_INIT                                     \
  {                                                                                           \
    sizeof(moeperm_unpermute_with_routing_map_grad_args), NULL, NULL, NULL, NULL, NULL, 0, 0, \
        NULL, NULL                                                                            \
  }

MOEPERM_EXPORT moeperm_code moeperm_unpermute_with_routing_map_grad(
    const moeperm_unpermute_with_routing_map_grad_args* args, const moeperm_context* context);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MOEPERM_C_UNPERMUTE_H_ */
