// SPDX-License-Identifier: Apache-2.0
// A user's program: tensors as frameworks hand them over. Views with strides and an offset over a
// storage of one dimension, in bfloat16, and an output that is every second column of a wider one.
#include <cstring>

#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "sample.h"

namespace {

uint16_t ToBFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>(bits >> 16);  // exact for the small integers below
}

aclTensor* View(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                int64_t offset, aclDataType dtype, int64_t storage, void* data) {
  return aclCreateTensor(shape.data(), shape.size(), dtype, strides.data(), offset, ACL_FORMAT_ND,
                         &storage, 1, data);
}

template <class T>
void* Address(const DeviceTensor<T>& tensor) {
  void* address = nullptr;
  CHECK(aclGetRawTensorAddr(tensor.get(), &address));
  return address;
}

}  // namespace

int main() {
  const int64_t tokens = 4;
  const int64_t experts = 3;
  const int64_t hidden = 5;
  const int64_t rows = 8;
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));

  // Columns of a (hidden, rows) matrix behind seven elements of something else: strides (1, rows).
  std::vector<uint16_t> grad_storage(7 + hidden * rows);
  for (size_t i = 0; i < grad_storage.size(); ++i) {
    grad_storage[i] = ToBFloat16(static_cast<float>(i % 11));
  }
  // Each index stands twice; the probs' gradient backwards is not possible, so every third.
  const int32_t slots[rows] = {0, 3, 1, 6, 2, 5, 4, 7};
  std::vector<int32_t> index_storage(2 * rows);
  for (size_t i = 0; i < index_storage.size(); ++i) index_storage[i] = slots[i / 2];
  std::vector<float> probs_storage(3 * rows);
  for (size_t i = 0; i < probs_storage.size(); ++i) probs_storage[i] = static_cast<float>(i);
  const int8_t map[tokens * experts] = {1, 1, 0, 1, 0, 1, 1, 1, 0, 0, 1, 1};
  // The map lies transposed.
  std::vector<int8_t> map_storage(tokens * experts);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t e = 0; e < experts; ++e) map_storage[e * tokens + t] = map[t * experts + e];
  }

  DeviceTensor<uint16_t> grads({static_cast<int64_t>(grad_storage.size())}, ACL_BF16, grad_storage);
  DeviceTensor<int32_t> indices({2 * rows}, ACL_INT32, index_storage);
  DeviceTensor<float> probs({3 * rows}, ACL_FLOAT, probs_storage);
  DeviceTensor<int8_t> maps({tokens * experts}, ACL_INT8, map_storage);
  const uint16_t kept = ToBFloat16(-77);
  DeviceTensor<uint16_t> out({tokens * 2 * hidden}, ACL_BF16,
                             std::vector<uint16_t>(tokens * 2 * hidden, kept));
  DeviceTensor<float> probs_out({tokens, experts}, ACL_FLOAT,
                                std::vector<float>(tokens * experts, -1));

  aclTensor* const grad_view = View({rows, hidden}, {1, rows}, 7, ACL_BF16,
                                    static_cast<int64_t>(grad_storage.size()), Address(grads));
  aclTensor* const index_view = View({rows}, {2}, 1, ACL_INT32, 2 * rows, Address(indices));
  aclTensor* const probs_view = View({rows}, {3}, 2, ACL_FLOAT, 3 * rows, Address(probs));
  aclTensor* const map_view =
      View({tokens, experts}, {1, tokens}, 0, ACL_INT8, tokens * experts, Address(maps));
  aclTensor* const out_view =
      View({tokens, hidden}, {2 * hidden, 2}, 1, ACL_BF16, tokens * 2 * hidden, Address(out));

  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
      grad_view, probs_view, index_view, map_view, experts, tokens, false, out_view,
      probs_out.get(), &size, &executor));
  void* workspace = nullptr;
  if (size > 0) CHECK(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
  // The default stream; and frameworks destroy the tensors as soon as the call returns.
  CHECK(aclnnMoeTokenPermuteWithRoutingMapGrad(workspace, size, executor, nullptr));
  CHECK(aclDestroyTensor(grad_view));
  CHECK(aclDestroyTensor(index_view));
  CHECK(aclDestroyTensor(probs_view));
  CHECK(aclDestroyTensor(map_view));
  CHECK(aclDestroyTensor(out_view));
  CHECK(aclrtSynchronizeStream(nullptr));
  if (workspace != nullptr) CHECK(aclrtFree(workspace));

  std::vector<uint16_t> want(tokens * 2 * hidden, kept);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t h = 0; h < hidden; ++h) {
      float sum = 0;
      for (int64_t j = 0; j < 2; ++j) {
        sum += static_cast<float>((7 + slots[2 * t + j] + h * rows) % 11);
      }
      want[t * 2 * hidden + 1 + 2 * h] = ToBFloat16(sum);
    }
  }
  std::vector<float> want_probs(tokens * experts, 0);
  int64_t row = 0;
  for (int64_t e = 0; e < experts; ++e) {
    for (int64_t t = 0; t < tokens; ++t) {
      if (map[t * experts + e] != 0) {
        want_probs[t * experts + e] = static_cast<float>(2 + 3 * row++);
      }
    }
  }
  const bool tokens_same = Same("gradient of the tokens", out.ToHost(), want);
  const bool probs_same = Same("gradient of the probs", probs_out.ToHost(), want_probs);
  CHECK(aclrtResetDevice(0));
  // The tensors' memory is still there: a leak, which ends here.
  CHECK(aclFinalize());
  return tokens_same && probs_same ? EXIT_SUCCESS : EXIT_FAILURE;
}
