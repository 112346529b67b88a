/* SPDX-License-Identifier: Apache-2.0 */
/* MoeTokenPermute and its gradient; a part of moeperm/moeperm.h, whose words on structs, tensors
 * and errors hold here too.
 *
 * Symbols in shapes: T tokens, H hidden, K slots a token (top_k), E experts, R rows. */
#ifndef MOEPERM_C_PERMUTE_H_
#define MOEPERM_C_PERMUTE_H_

#include "moeperm/moeperm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Routes given as a table of expert numbers. Slot s = t * K + k is token t's k-th entry in
 * `indices`. All slots with an expert, ordered by expert, slots ascending inside an expert, are the
 * rows of the full layout (so a token may go to one expert twice). Rows first_row .. first_row +
 * R - 1 of it are made, which makes this MoeTokenPermuteWithEp too, for a process that holds some
 * of the rows:
 *
 *   permuted_tokens[row - first_row] = tokens[token of row], permuted_probs likewise
 *
 * Rows past the last route are zero. sorted_indices[slot] = row of the full layout, made or not; -1
 * for a slot without an expert. The values are copied: exact for every bit pattern. Errors as
 * there, and MOEPERM_INDEX_OUT_OF_RANGE for an expert >= num_experts in indices. */
typedef struct moeperm_permute_args {
  size_t struct_size;
  const moeperm_tensor* tokens;          /* [T, H] float */
  const moeperm_tensor* indices;         /* [T, K] or [T], int32 or int64: expert; negative: none */
  const moeperm_tensor* probs;           /* optional: float, shape of indices */
  int64_t num_experts;                   /* E; 0: one more than the largest in indices */
  int64_t num_out_tokens;                /* R */
  int64_t first_row;                     /* of the full layout */
  const moeperm_tensor* permuted_tokens; /* output: [R, H], dtype of tokens */
  const moeperm_tensor* permuted_probs;  /* optional output: [R], dtype of probs; with probs only */
  const moeperm_tensor* sorted_indices;  /* output: [T * K] int32 or int64 */
  const moeperm_tensor*
      tokens_per_expert; /* optional output: [E] int32 or int64, with num_experts */
} moeperm_permute_args;
#define MOEPERM_PERMUTE_ARGS_INIT \
  { sizeof(moeperm_permute_args), NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL }

MOEPERM_EXPORT moeperm_code moeperm_permute(const moeperm_permute_args* args,
                                            const moeperm_context* context);

typedef struct moeperm_permute_specs {
  size_t struct_size; /* the caller's; all below is written by the library */
  moeperm_tensor_spec permuted_tokens;
  moeperm_tensor_spec permuted_probs; /* where probs are given */
  moeperm_tensor_spec sorted_indices; /* int32 */
} moeperm_permute_specs;
#define MOEPERM_PERMUTE_SPECS_INIT                                                     \
  {                                                                                    \
    sizeof(moeperm_permute_specs), MOEPERM_TENSOR_SPEC_INIT, MOEPERM_TENSOR_SPEC_INIT, \
        MOEPERM_TENSOR_SPEC_INIT                                                       \
  }

/* Shapes and dtypes of the outputs, from the inputs and attributes alone (outputs are not looked
 * at, no data is read). After an error *specs is unchanged. */
MOEPERM_EXPORT moeperm_code moeperm_infer_permute(const moeperm_permute_args* args,
                                                  moeperm_permute_specs* specs);

/* tokens_grad[t] = sum over t's slots, ascending, of the gradient of the slot's row, in float32,
 * rounded once; it starts as the row of slot t * K where that one takes part, else from +0.
 * probs_grad[t][k] = permuted_probs_grad of the slot's row, else +0. A slot takes part where its
 * row is in [first_row, first_row + R); no row number is an error. Either gradient may be asked for
 * alone: an output that is absent is not computed, and what only it needs may be absent too. */
typedef struct moeperm_permute_grad_args {
  size_t struct_size;
  const moeperm_tensor* permuted_tokens_grad; /* [R, H] float; with tokens_grad */
  const moeperm_tensor* permuted_probs_grad;  /* [R] float; with probs_grad */
  const moeperm_tensor* sorted_indices;       /* [T * K] int32 or int64 */
  int64_t num_tokens;                         /* T */
  int64_t first_row;
  const moeperm_tensor* tokens_grad; /* optional output: [T, H], dtype of permuted_tokens_grad */
  const moeperm_tensor* probs_grad;  /* optional output: [T, K], dtype of permuted_probs_grad */
} moeperm_permute_grad_args;
#define MOEPERM_PERMUTE_GRAD_ARGS_INIT \
  { sizeof(moeperm_permute_grad_args), NULL, NULL, NULL, 0, 0, NULL, NULL }

MOEPERM_EXPORT moeperm_code moeperm_permute_grad(const moeperm_permute_grad_args* args,
                                                 const moeperm_context* context);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MOEPERM_C_PERMUTE_H_ */
