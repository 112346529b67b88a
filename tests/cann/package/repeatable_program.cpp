// SPDX-License-Identifier: Apache-2.0
// A user's program: one executor for many batches, with new addresses for each.
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "sample.h"

int main() {
  const int64_t tokens = 3;
  const int64_t hidden = 4;
  const int64_t rows = 6;
  const int batches = 5;
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));

  // One buffer for all batches; the tensors first point nowhere near it.
  std::vector<float> grads(batches * rows * hidden);
  for (size_t i = 0; i < grads.size(); ++i) grads[i] = static_cast<float>(i);
  DeviceTensor<float> all({batches * rows, hidden}, ACL_FLOAT, grads);
  DeviceTensor<float> all_out({batches * tokens, hidden}, ACL_FLOAT,
                              std::vector<float>(batches * tokens * hidden, -1));
  DeviceTensor<float> input({rows, hidden}, ACL_FLOAT, std::vector<float>(rows * hidden));
  DeviceTensor<float> output({tokens, hidden}, ACL_FLOAT, std::vector<float>(tokens * hidden));
  const std::vector<int32_t> slots = {0, 3, 1, 4, 2, 5};
  DeviceTensor<int32_t> indices({rows}, ACL_INT32, slots);
  void* from = nullptr;
  void* to = nullptr;
  CHECK(aclGetRawTensorAddr(all.get(), &from));
  CHECK(aclGetRawTensorAddr(all_out.get(), &to));

  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
      input.get(), nullptr, indices.get(), nullptr, 2, tokens, false, output.get(), nullptr, &size,
      &executor));
  CHECK(aclSetAclOpExecutorRepeatable(executor));
  void* workspace = nullptr;
  if (size > 0) CHECK(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
  for (int batch = 0; batch < batches; ++batch) {
    float* const batch_in = static_cast<float*>(from) + batch * rows * hidden;
    float* const batch_out = static_cast<float*>(to) + batch * tokens * hidden;
    CHECK(aclSetInputTensorAddr(executor, 0, input.get(), batch_in));
    CHECK(aclSetOutputTensorAddr(executor, 0, output.get(), batch_out));
    CHECK(aclnnMoeTokenPermuteWithRoutingMapGrad(workspace, size, executor, stream));
  }
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(aclDestroyAclOpExecutor(executor));
  if (workspace != nullptr) CHECK(aclrtFree(workspace));

  std::vector<float> want(batches * tokens * hidden, 0);
  for (int batch = 0; batch < batches; ++batch) {
    for (int64_t slot = 0; slot < rows; ++slot) {
      for (int64_t h = 0; h < hidden; ++h) {
        want[(batch * tokens + slot / 2) * hidden + h] +=
            grads[(batch * rows + slots[slot]) * hidden + h];
      }
    }
  }
  const bool same = Same("all batches", all_out.ToHost(), want);
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return same ? EXIT_SUCCESS : EXIT_FAILURE;
}
