/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs and the right outputs of a case, and memory for the outputs of a call. */
#ifndef MOEPERM_TESTS_CAPI_FIXTURES_H_
#define MOEPERM_TESTS_CAPI_FIXTURES_H_

#include "check.h"

enum { kMaxTokens = 4, kMaxExperts = 3, kMaxHidden = 2, kMaxRows = 6 };

typedef struct {
  int64_t num_tokens, num_experts, hidden, num_rows, top_k;
  int32_t drop_and_pad;
  int8_t routing_map[kMaxTokens * kMaxExperts];
  float tokens[kMaxTokens * kMaxHidden];
  float probs[kMaxTokens * kMaxExperts];
  float permuted_tokens_grad[kMaxRows * kMaxHidden];
  float permuted_probs_grad[kMaxRows];

  float permuted_tokens[kMaxRows * kMaxHidden];
  float permuted_probs[kMaxRows];
  int32_t sorted_indices[kMaxRows];
  int64_t tokens_per_expert[kMaxExperts];
  int64_t expert_offsets[kMaxExperts + 1];
  float tokens_grad[kMaxTokens * kMaxHidden];
  float probs_grad[kMaxTokens * kMaxExperts];
} Fixture;

extern const Fixture kF1; /* three tokens, three experts, two routes each */
extern const Fixture kF4; /* drop and pad: one token dropped, one pad row */

/* Outputs of a call, each with guards around it. */
enum { kGuard = 4 };
#define GUARDED(type, name, size) type name[kGuard + (size) + kGuard]
typedef struct {
  GUARDED(float, permuted_tokens, kMaxRows* kMaxHidden);
  GUARDED(float, permuted_probs, kMaxRows);
  GUARDED(int32_t, sorted_indices, kMaxRows);
  GUARDED(int64_t, tokens_per_expert, kMaxExperts);
  GUARDED(int64_t, expert_offsets, kMaxExperts + 1);
  GUARDED(float, tokens_grad, kMaxTokens* kMaxHidden);
  GUARDED(float, probs_grad, kMaxTokens* kMaxExperts);
} Outputs;

/* Views of a fixture's inputs and of outputs, and args that point to them. Must not be moved. */
typedef struct {
  const Fixture* fixture;
  Outputs outputs;
  moeperm_tensor tokens, routing_map, probs, permuted_tokens_grad, permuted_probs_grad;
  moeperm_tensor permuted_tokens, permuted_probs, sorted_indices, tokens_per_expert, expert_offsets;
  moeperm_tensor tokens_grad, probs_grad;
  moeperm_permute_with_routing_map_args args;
  moeperm_permute_with_routing_map_grad_args grad_args; /* indices: the outputs' */
} Case;

/* Outputs filled with 0xFF bytes. */
void SetUp(Case* c, const Fixture* fixture);

/* The outputs are the fixture's, and the guards as they were. */
void CheckForward(const Case* c);
void CheckGrad(const Case* c);

#endif /* MOEPERM_TESTS_CAPI_FIXTURES_H_ */
