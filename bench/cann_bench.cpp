// SPDX-License-Identifier: Apache-2.0
// What the acl and aclnn interface adds to a call: both phases and the synchronisation beside the
// same call of the C++ interface, on a problem so small that nothing else is seen. Both operators,
// not padded, 8 tokens, 4 experts, 2 routes a token, hidden 64, float32, with probs.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "moeperm/moeperm.hpp"

namespace moeperm::bench {
namespace {

constexpr std::int64_t kTokens = 8;
constexpr std::int64_t kExperts = 4;
constexpr std::int64_t kTopK = 2;
constexpr std::int64_t kRows = kTokens * kTopK;
constexpr std::int64_t kHidden = 64;

aclTensor* Make(const std::vector<std::int64_t>& dims, aclDataType dtype, void* data) {
  return aclCreateTensor(dims.data(), dims.size(), dtype, nullptr, 0, ACL_FORMAT_ND, dims.data(),
                         dims.size(), data);
}

// The tensors of both operators: the gradient's inputs are the forward's outputs.
struct Problem {
  std::vector<float> tokens = std::vector<float>(kTokens * kHidden, 1);
  std::vector<float> probs = std::vector<float>(kTokens * kExperts, 1);
  std::vector<std::int8_t> map = std::vector<std::int8_t>(kTokens * kExperts, 0);
  std::vector<float> rows = std::vector<float>(kRows * kHidden);
  std::vector<float> row_probs = std::vector<float>(kRows);
  std::vector<std::int32_t> indices = std::vector<std::int32_t>(kRows);

  Problem() {
    for (std::int64_t token = 0; token < kTokens; ++token) {
      for (std::int64_t k = 0; k < kTopK; ++k) map[token * kExperts + (token + k) % kExperts] = 1;
    }
  }

  PermuteWithRoutingMapArgs Forward() {
    PermuteWithRoutingMapArgs args;
    args.tokens = ConstTensorView(tokens.data(), {kTokens, kHidden});
    args.routing_map = ConstTensorView(map.data(), {kTokens, kExperts});
    args.probs = ConstTensorView(probs.data(), {kTokens, kExperts});
    args.num_out_tokens = kRows;
    args.top_k = kTopK;
    args.permuted_tokens = TensorView(rows.data(), {kRows, kHidden});
    args.permuted_probs = TensorView(row_probs.data(), {kRows});
    args.sorted_indices = TensorView(indices.data(), {kRows});
    return args;
  }
  PermuteWithRoutingMapGradArgs Grad() {
    PermuteWithRoutingMapGradArgs args;
    args.permuted_tokens_grad = ConstTensorView(rows.data(), {kRows, kHidden});
    args.permuted_probs_grad = ConstTensorView(row_probs.data(), {kRows});
    args.sorted_indices = ConstTensorView(indices.data(), {kRows});
    args.routing_map = ConstTensorView(map.data(), {kTokens, kExperts});
    args.num_tokens = kTokens;
    args.num_experts = kExperts;
    args.tokens_grad = TensorView(tokens.data(), {kTokens, kHidden});
    args.probs_grad = TensorView(probs.data(), {kTokens, kExperts});
    return args;
  }
};

// The handles are kept, or made anew for every call as PyTorch does.
struct Handles {
  explicit Handles(Problem& problem)
      : tokens(Make({kTokens, kHidden}, ACL_FLOAT, problem.tokens.data())),
        probs(Make({kTokens, kExperts}, ACL_FLOAT, problem.probs.data())),
        map(Make({kTokens, kExperts}, ACL_INT8, problem.map.data())),
        rows(Make({kRows, kHidden}, ACL_FLOAT, problem.rows.data())),
        row_probs(Make({kRows}, ACL_FLOAT, problem.row_probs.data())),
        indices(Make({kRows}, ACL_INT32, problem.indices.data())) {}
  ~Handles() {
    for (const aclTensor* tensor : {tokens, probs, map, rows, row_probs, indices}) {
      aclDestroyTensor(tensor);
    }
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  int Forward(aclrtStream stream) const {
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    int code = aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
        tokens, map, probs, kRows, false, rows, row_probs, indices, &size, &executor);
    if (code == 0) code = aclnnMoeTokenPermuteWithRoutingMap(nullptr, size, executor, stream);
    return code == 0 ? aclrtSynchronizeStream(stream) : code;
  }
  int Grad(aclrtStream stream) const {
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    int code = aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
        rows, row_probs, indices, map, kExperts, kTokens, false, tokens, probs, &size, &executor);
    if (code == 0) code = aclnnMoeTokenPermuteWithRoutingMapGrad(nullptr, size, executor, stream);
    return code == 0 ? aclrtSynchronizeStream(stream) : code;
  }

  aclTensor* tokens;
  aclTensor* probs;
  aclTensor* map;
  aclTensor* rows;
  aclTensor* row_probs;
  aclTensor* indices;
};

void Library(benchmark::State& state, bool grad) {
  Problem problem;
  if (!PermuteWithRoutingMap(problem.Forward()).ok()) state.SkipWithError("forward failed");
  for (auto _ : state) {
    const Status status =
        grad ? PermuteWithRoutingMapGrad(problem.Grad()) : PermuteWithRoutingMap(problem.Forward());
    if (!status.ok()) {
      state.SkipWithError(status.message().c_str());
      return;
    }
  }
}

void Door(benchmark::State& state, bool grad, bool new_tensors) {
  Problem problem;
  aclrtStream stream = nullptr;
  if (aclrtCreateStream(&stream) != 0) {
    state.SkipWithError("no stream");
    return;
  }
  const Handles kept(problem);
  int code = kept.Forward(stream);
  for (auto _ : state) {
    if (new_tensors) {
      const Handles handles(problem);
      code = grad ? handles.Grad(stream) : handles.Forward(stream);
    } else {
      code = grad ? kept.Grad(stream) : kept.Forward(stream);
    }
    if (code != 0) {
      state.SkipWithError(aclGetRecentErrMsg());
      break;
    }
  }
  aclrtDestroyStream(stream);
}

BENCHMARK_CAPTURE(Library, forward, false)->UseRealTime();
BENCHMARK_CAPTURE(Door, forward, false, false)->UseRealTime();
BENCHMARK_CAPTURE(Door, forward_new_tensors, false, true)->UseRealTime();
BENCHMARK_CAPTURE(Library, grad, true)->UseRealTime();
BENCHMARK_CAPTURE(Door, grad, true, false)->UseRealTime();
BENCHMARK_CAPTURE(Door, grad_new_tensors, true, true)->UseRealTime();

}  // namespace
}  // namespace moeperm::bench

int main(int argc, char** argv) {
  if (aclInit(nullptr) != 0 || aclrtSetDevice(0) != 0) {
    std::fputs("the runtime does not start\n", stderr);
    return 1;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return aclFinalize();
}
