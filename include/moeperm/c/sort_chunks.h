/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of rows in another order, and the gradient; a part of moeperm/moeperm.h, whose words on
 * structs, tensors and errors hold here too.
 *
 * Symbols in shapes: R rows, H hidden, C chunks. */
#ifndef MOEPERM_C_SORT_CHUNKS_H_
#define MOEPERM_C_SORT_CHUNKS_H_

#include "moeperm/moeperm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Chunk c is the split_sizes[c] rows after those of the chunks before it; the sizes, none negative,
 * add up to R. sorted_rows is the chunks order[0], order[1], ..., one after another; order is a
 * permutation of the chunks: a number that is none of them is MOEPERM_INDEX_OUT_OF_RANGE, one that
 * comes twice MOEPERM_INVALID_ARGUMENT. The probs move with their rows. The values are copied:
 * exact for every bit pattern. */
typedef struct moeperm_sort_chunks_args {
  size_t struct_size;
  const moeperm_tensor* rows;         /* [R, H] float */
  const moeperm_tensor* probs;        /* optional: [R] float */
  const moeperm_tensor* split_sizes;  /* [C] int32 or int64 */
  const moeperm_tensor* order;        /* [C] int32 or int64 */
  const moeperm_tensor* sorted_rows;  /* output: [R, H], dtype of rows */
  const moeperm_tensor* sorted_probs; /* output: [R], dtype of probs; if and only if probs */
} moeperm_sort_chunks_args;
#define MOEPERM_SORT_CHUNKS_ARGS_INIT \
  { sizeof(moeperm_sort_chunks_args), NULL, NULL, NULL, NULL, NULL, NULL }

MOEPERM_EXPORT moeperm_code moeperm_sort_chunks(const moeperm_sort_chunks_args* args,
                                                const moeperm_context* context);

/* The rows of sorted_rows_grad where they came from; the probs likewise. Sizes and order are those
 * of the forward. */
typedef struct moeperm_sort_chunks_grad_args {
  size_t struct_size;
  const moeperm_tensor* sorted_rows_grad;  /* [R, H] float */
  const moeperm_tensor* sorted_probs_grad; /* optional: [R] float */
  const moeperm_tensor* split_sizes;       /* [C] int32 or int64 */
  const moeperm_tensor* order;             /* [C] int32 or int64 */
  const moeperm_tensor* rows_grad;         /* output: [R, H], dtype of sorted_rows_grad */
  const moeperm_tensor* probs_grad;        /* output: [R]; if and only if sorted_probs_grad */
} moeperm_sort_chunks_grad_args;
#define MOEPERM_SORT_CHUNKS_GRAD_ARGS_INIT \
  { sizeof(moeperm_sort_chunks_grad_args), NULL, NULL, NULL, NULL, NULL, NULL }

MOEPERM_EXPORT moeperm_code moeperm_sort_chunks_grad(const moeperm_sort_chunks_grad_args* args,
                                                     const moeperm_context* context);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MOEPERM_C_SORT_CHUNKS_H_ */
