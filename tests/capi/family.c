/* SPDX-License-Identifier: Apache-2.0 */
#include "family.h"

#include <string.h>

const int32_t kIndices[] = {2, 0, 1, 1, -1, 2};
const float kTokens[] = {1, 10, 2, 20, 3, 30};
const float kProbs[] = {.5F, .25F, 2, 0, 4, 8};
const int32_t kRows[] = {3, 0, 1, 2, -1, 4}; /* sorted_indices */
const float kPermuted[] = {1, -1, 2, -2, 4, -4, 8, -8, 16, -16};
const float kPermutedProbs[] = {1, 2, 3, 4, 5};
const float kTokensGrad[] = {1, 2, 3, 4, 5, 6};

moeperm_tensor Floats(const float* data, int64_t rows, int64_t columns) {
  const int64_t shape[] = {rows, columns};
  return moeperm_tensor_contiguous(data, MOEPERM_FLOAT32, columns == 0 ? 1 : 2, shape);
}
moeperm_tensor Int32s(const int32_t* data, int64_t rows, int64_t columns) {
  const int64_t shape[] = {rows, columns};
  return moeperm_tensor_contiguous(data, MOEPERM_INT32, columns == 0 ? 1 : 2, shape);
}

void SetUpIndex(Index* x, int64_t first, int64_t count) {
  const int64_t experts = kE;
  memset(x, 0xFF, sizeof(*x));
  x->tokens = Floats(kTokens, kT, kH);
  x->indices = Int32s(kIndices, kT, kK);
  x->probs = Floats(kProbs, kT, kK);
  x->rows = Floats(kPermuted + first * kH, count, kH);
  x->row_probs = Floats(kPermutedProbs + first, count, 0);
  x->sorted_indices = Int32s(kRows, kT * kK, 0);
  x->tokens_grad = Floats(kTokensGrad, kT, kH);
  x->to_rows = Floats(x->out_rows, count, kH);
  x->to_row_probs = Floats(x->out_row_probs, count, 0);
  x->to_indices = Int32s(x->out_indices, kT * kK, 0);
  x->to_counts = moeperm_tensor_contiguous(x->out_counts, MOEPERM_INT64, 1, &experts);
  x->to_tokens = Floats(x->out_tokens, kT, kH);
  x->to_probs = Floats(x->out_probs, kT, kK);

  const moeperm_permute_args permute = MOEPERM_PERMUTE_ARGS_INIT;
  x->permute = permute;
  x->permute.tokens = &x->tokens;
  x->permute.indices = &x->indices;
  x->permute.probs = &x->probs;
  x->permute.num_experts = kE;
  x->permute.num_out_tokens = count;
  x->permute.first_row = first;
  x->permute.permuted_tokens = &x->to_rows;
  x->permute.permuted_probs = &x->to_row_probs;
  x->permute.sorted_indices = &x->to_indices;
  x->permute.tokens_per_expert = &x->to_counts;

  const moeperm_permute_grad_args permute_grad = MOEPERM_PERMUTE_GRAD_ARGS_INIT;
  x->permute_grad = permute_grad;
  x->permute_grad.permuted_tokens_grad = &x->rows;
  x->permute_grad.permuted_probs_grad = &x->row_probs;
  x->permute_grad.sorted_indices = &x->sorted_indices;
  x->permute_grad.num_tokens = kT;
  x->permute_grad.first_row = first;
  x->permute_grad.tokens_grad = &x->to_tokens;
  x->permute_grad.probs_grad = &x->to_probs;

  const moeperm_unpermute_args unpermute = MOEPERM_UNPERMUTE_ARGS_INIT;
  x->unpermute = unpermute;
  x->unpermute.permuted_tokens = &x->rows;
  x->unpermute.sorted_indices = &x->sorted_indices;
  x->unpermute.probs = &x->probs;
  x->unpermute.first_row = first;
  x->unpermute.tokens = &x->to_tokens;

  const moeperm_unpermute_grad_args unpermute_grad = MOEPERM_UNPERMUTE_GRAD_ARGS_INIT;
  x->unpermute_grad = unpermute_grad;
  x->unpermute_grad.tokens_grad = &x->tokens_grad;
  x->unpermute_grad.permuted_tokens = &x->rows;
  x->unpermute_grad.sorted_indices = &x->sorted_indices;
  x->unpermute_grad.probs = &x->probs;
  x->unpermute_grad.first_row = first;
  x->unpermute_grad.permuted_tokens_grad = &x->to_rows;
  x->unpermute_grad.probs_grad = &x->to_probs;
}

void SetUpBack(Back* b, const Fixture* f, const float* tokens_grad) {
  memset(b, 0xFF, sizeof(*b));
  SetUp(&b->c, f);
  b->sorted_indices = Int32s(f->sorted_indices, f->num_rows, 0);
  b->tokens_grad = Floats(tokens_grad, f->num_tokens, f->hidden);
  b->to_tokens = Floats(b->tokens, f->num_tokens, f->hidden);
  b->to_gathered = Floats(b->gathered, f->num_rows, 0);
  b->to_rows_grad = Floats(b->rows_grad, f->num_rows, f->hidden);
  b->to_probs_grad = Floats(b->probs_grad, f->num_tokens, f->num_experts);

  const moeperm_unpermute_with_routing_map_args forward =
      MOEPERM_UNPERMUTE_WITH_ROUTING_MAP_ARGS_INIT;
  b->forward = forward;
  b->forward.permuted_tokens = &b->c.permuted_tokens_grad;
  b->forward.sorted_indices = &b->sorted_indices;
  b->forward.routing_map = f->drop_and_pad ? NULL : &b->c.routing_map;
  b->forward.probs = &b->c.probs;
  b->forward.drop_and_pad = f->drop_and_pad;
  b->forward.tokens = &b->to_tokens;
  b->forward.gathered_probs = &b->to_gathered;

  const moeperm_unpermute_with_routing_map_grad_args backward =
      MOEPERM_UNPERMUTE_WITH_ROUTING_MAP_GRAD_ARGS_INIT;
  b->backward = backward;
  b->backward.tokens_grad = &b->tokens_grad;
  b->backward.permuted_tokens = &b->c.permuted_tokens_grad;
  b->backward.sorted_indices = &b->sorted_indices;
  b->backward.routing_map = b->forward.routing_map;
  b->backward.probs = &b->c.probs;
  b->backward.drop_and_pad = f->drop_and_pad;
  b->backward.permuted_tokens_grad = &b->to_rows_grad;
  b->backward.probs_grad = &b->to_probs_grad;
}
