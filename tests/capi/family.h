/* SPDX-License-Identifier: Apache-2.0 */
/* The operands of the index form and of the ways back, and args that point to them. */
#ifndef MOEPERM_TESTS_CAPI_FAMILY_H_
#define MOEPERM_TESTS_CAPI_FAMILY_H_

#include "fixtures.h"

enum { kT = 3, kK = 2, kE = 3, kH = 2, kR = 5 };

/* Token 1 goes to expert 1 twice; token 2's first slot has no expert. */
extern const int32_t kIndices[kT * kK];
extern const float kTokens[kT * kH];
extern const float kProbs[kT * kK];
extern const int32_t kRows[kT * kK]; /* sorted_indices */
extern const float kPermuted[kR * kH];
extern const float kPermutedProbs[kR];
extern const float kTokensGrad[kT * kH];

/* A matrix, or with 0 columns a vector. */
moeperm_tensor Floats(const float* data, int64_t rows, int64_t columns);
moeperm_tensor Int32s(const int32_t* data, int64_t rows, int64_t columns);

/* Every tensor of the index form, outputs filled with 0xFF bytes, and args over them. */
typedef struct {
  float out_rows[kR * kH], out_row_probs[kR], out_tokens[kT * kH], out_probs[kT * kK];
  int32_t out_indices[kT * kK];
  int64_t out_counts[kE];
  moeperm_tensor tokens, indices, probs, rows, row_probs, sorted_indices, tokens_grad;
  moeperm_tensor to_rows, to_row_probs, to_indices, to_counts, to_tokens, to_probs;
  moeperm_permute_args permute;
  moeperm_permute_grad_args permute_grad;
  moeperm_unpermute_args unpermute;
  moeperm_unpermute_grad_args unpermute_grad;
} Index;

/* Rows first .. first + count - 1 of the kR. */
void SetUpIndex(Index* x, int64_t first, int64_t count);

/* A fixture's rows (its permuted_tokens_grad) on their way back, and the gradients of that. */
typedef struct {
  Case c; /* rows and probs, by SetUp */
  float tokens[kMaxTokens * kMaxHidden], rows_grad[kMaxRows * kMaxHidden];
  float gathered[kMaxRows], probs_grad[kMaxTokens * kMaxExperts];
  moeperm_tensor sorted_indices, tokens_grad;
  moeperm_tensor to_tokens, to_gathered, to_rows_grad, to_probs_grad;
  moeperm_unpermute_with_routing_map_args forward;
  moeperm_unpermute_with_routing_map_grad_args backward;
} Back;

void SetUpBack(Back* b, const Fixture* f, const float* tokens_grad);

#endif /* MOEPERM_TESTS_CAPI_FAMILY_H_ */
