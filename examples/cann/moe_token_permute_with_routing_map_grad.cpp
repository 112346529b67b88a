// SPDX-License-Identifier: Apache-2.0
// Gradients of experts' rows come back to their tokens: three small cases, and one of full size
// with 4096 tokens, 256 experts and 16 rows each.
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "sample.h"

namespace {

struct Case {
  int64_t tokens;
  int64_t experts;
  int64_t hidden;
  int64_t rows;  // not padded: tokens * top_k; drop-and-pad: experts * capacity
  bool drop_and_pad;
  bool with_probs;
};

// Which tokens go to expert `e`. Not padded, every token has the same number of experts.
bool Routed(const Case& c, int64_t t, int64_t e) {
  const int64_t top_k = c.rows / c.tokens;
  return c.drop_and_pad ? (t + e) % 2 == 0 : (e + c.experts - t % c.experts) % c.experts < top_k;
}

// The token of each row of drop-and-pad, and of each slot its row otherwise.
std::vector<int32_t> SortedIndices(const Case& c) {
  std::vector<int32_t> indices(c.rows);
  if (c.drop_and_pad) {
    const int64_t capacity = c.rows / c.experts;
    for (int64_t i = 0; i < c.rows; ++i) {
      // The tokens of an expert differ.
      const int64_t e = i / capacity;
      indices[i] = static_cast<int32_t>((e * 7 + i % capacity * 3) % c.tokens);
    }
    return indices;
  }
  const int64_t top_k = c.rows / c.tokens;
  std::vector<int64_t> used(c.tokens, 0);
  int32_t row = 0;
  for (int64_t e = 0; e < c.experts; ++e) {
    for (int64_t t = 0; t < c.tokens; ++t) {
      if (Routed(c, t, e)) indices[t * top_k + used[t]++] = row++;
    }
  }
  return indices;
}

// The same in plain loops: a token's gradient is the sum of its rows; a route's gradient is that of
// its row.
void Expected(const Case& c, const std::vector<float>& grad, const std::vector<float>& probs_grad,
              const std::vector<int32_t>& indices, std::vector<float>* tokens,
              std::vector<float>* probs) {
  tokens->assign(c.tokens * c.hidden, 0);
  probs->assign(c.tokens * c.experts, 0);
  const int64_t top_k = c.rows / c.tokens;
  for (int64_t i = 0; i < c.rows; ++i) {
    const int64_t t = c.drop_and_pad ? indices[i] : i / top_k;
    const int64_t row = c.drop_and_pad ? i : indices[i];
    for (int64_t h = 0; h < c.hidden; ++h) {
      (*tokens)[t * c.hidden + h] += grad[row * c.hidden + h];
    }
  }
  int64_t row = 0;
  if (c.drop_and_pad) {
    for (; row < c.rows; ++row) {
      (*probs)[indices[row] * c.experts + row / (c.rows / c.experts)] = probs_grad[row];
    }
    return;
  }
  for (int64_t e = 0; e < c.experts; ++e) {
    for (int64_t t = 0; t < c.tokens; ++t) {
      if (Routed(c, t, e)) (*probs)[t * c.experts + e] = probs_grad[row++];
    }
  }
}

bool Run(aclrtStream stream, const Case& c) {
  std::printf("\n%s, %lld tokens, %lld experts, hidden %lld, %lld rows%s\n",
              c.drop_and_pad ? "drop-and-pad" : "not padded", static_cast<long long>(c.tokens),
              static_cast<long long>(c.experts), static_cast<long long>(c.hidden),
              static_cast<long long>(c.rows), c.with_probs ? "" : ", no probs");

  // Multiples of 1/4: sums of them are exact in any order.
  std::vector<float> grad(c.rows * c.hidden);
  for (size_t i = 0; i < grad.size(); ++i) grad[i] = static_cast<float>(i * 37 % 101) / 4 - 12;
  std::vector<float> probs_grad(c.rows);
  for (size_t i = 0; i < probs_grad.size(); ++i) probs_grad[i] = static_cast<float>(i + 1) / 8;
  std::vector<int8_t> map(c.tokens * c.experts);
  for (size_t i = 0; i < map.size(); ++i) map[i] = Routed(c, i / c.experts, i % c.experts) ? 1 : 0;
  const std::vector<int32_t> indices = SortedIndices(c);

  DeviceTensor<float> d_grad({c.rows, c.hidden}, ACL_FLOAT, grad);
  DeviceTensor<float> d_probs_grad({c.rows}, ACL_FLOAT, probs_grad);
  DeviceTensor<int32_t> d_indices({c.rows}, ACL_INT32, indices);
  DeviceTensor<int8_t> d_map({c.tokens, c.experts}, ACL_INT8, map);
  DeviceTensor<float> tokens_out({c.tokens, c.hidden}, ACL_FLOAT,
                                 std::vector<float>(c.tokens * c.hidden));
  DeviceTensor<float> probs_out({c.tokens, c.experts}, ACL_FLOAT,
                                std::vector<float>(c.tokens * c.experts));

  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
      d_grad.get(), c.with_probs ? d_probs_grad.get() : nullptr, d_indices.get(),
      c.with_probs ? d_map.get() : nullptr, c.experts, c.tokens, c.drop_and_pad, tokens_out.get(),
      c.with_probs ? probs_out.get() : nullptr, &workspace_size, &executor));
  RunAndWait(aclnnMoeTokenPermuteWithRoutingMapGrad, workspace_size, executor, stream);

  std::vector<float> want_tokens;
  std::vector<float> want_probs;
  Expected(c, grad, probs_grad, indices, &want_tokens, &want_probs);
  if (c.tokens < 100) {
    Print("gradient of the tokens", tokens_out.ToHost(), c.hidden);
    if (c.with_probs) Print("gradient of the probs", probs_out.ToHost(), c.experts);
  }
  bool same = Same("gradient of the tokens", tokens_out.ToHost(), want_tokens);
  if (c.with_probs) {
    same = Same("gradient of the probs", probs_out.ToHost(), want_probs) && same;
  }
  return same;
}

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));

  const Case cases[] = {
      {4, 3, 5, 8, false, true},
      {4, 3, 5, 8, false, false},
      {4, 3, 5, 6, true, true},
      {4096, 256, 7168, 4096, true, true},
  };
  bool same = true;
  for (const Case& c : cases) same = Run(stream, c) && same;

  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return same ? EXIT_SUCCESS : EXIT_FAILURE;
}
