// SPDX-License-Identifier: Apache-2.0
// A user's program that gets things wrong: codes, texts that name what is wrong, and calls that
// work afterwards.
#include <string>

#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "sample.h"

namespace {

int wrong = 0;

// The code, and a text that has `word`.
void Expect(const char* what, int64_t got, int64_t code, const char* word) {
  const char* const text = aclGetRecentErrMsg();
  std::printf("%s: %lld\n  %s\n", what, static_cast<long long>(got),
              text == nullptr ? "(no text)" : text);
  if (got != code) {
    std::printf("WRONG: the code is not %lld\n", static_cast<long long>(code));
    ++wrong;
  }
  if (text == nullptr || std::string(text).find(word) == std::string::npos) {
    std::printf("WRONG: the text has no '%s'\n", word);
    ++wrong;
  }
  if (aclGetRecentErrMsg() != nullptr) {
    std::printf("WRONG: the text is given twice\n");
    ++wrong;
  }
}

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  if (aclGetRecentErrMsg() != nullptr) ++wrong;

  Expect("a second aclInit", aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE, "aclInit");
  Expect("device 99", aclrtSetDevice(99), ACL_ERROR_RT_INVALID_DEVICEID, "99");
  void* nothing = nullptr;
  Expect("no bytes", aclrtMalloc(&nothing, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM,
         "size");
  Expect("freeing nothing", aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM, "devPtr");
  int on_stack = 0;
  Expect("freeing what is not allocated", aclrtFree(&on_stack), ACL_ERROR_RT_PARAM_INVALID,
         "devPtr");
  char from[8] = {0};
  char to[4];
  Expect("a copy that does not fit", aclrtMemcpy(to, 4, from, 8, ACL_MEMCPY_HOST_TO_HOST),
         ACL_ERROR_RT_PARAM_INVALID, "8");

  DeviceTensor<float> grad({4, 2}, ACL_FLOAT, std::vector<float>(8, 1));
  DeviceTensor<uint16_t> half_grad({4, 2}, ACL_FLOAT16, std::vector<uint16_t>(8, 0));
  DeviceTensor<float> flat_grad({8}, ACL_FLOAT, std::vector<float>(8, 1));
  DeviceTensor<int32_t> indices({4}, ACL_INT32, std::vector<int32_t>{0, 1, 2, 3});
  DeviceTensor<int32_t> wild({4}, ACL_INT32, std::vector<int32_t>{0, 1, 1, 99});
  DeviceTensor<float> out({2, 2}, ACL_FLOAT, std::vector<float>(4, -1));
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  struct Phase1 {
    uint64_t* size;
    aclOpExecutor** executor;
    aclnnStatus operator()(const aclTensor* in, const aclTensor* index, aclTensor* to_out,
                           int64_t tokens, bool drop) const {
      return aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
          in, nullptr, index, nullptr, 2, tokens, drop, to_out, nullptr, size, executor);
    }
  } phase1 = {&size, &executor};

  Expect("no input", phase1(nullptr, indices.get(), out.get(), 2, false), ACLNN_ERR_PARAM_NULLPTR,
         "permutedTokenOutputGrad");
  Expect("no tokens", phase1(grad.get(), indices.get(), out.get(), 0, false),
         ACLNN_ERR_PARAM_INVALID, "tokensNum");
  Expect("two dtypes", phase1(half_grad.get(), indices.get(), out.get(), 2, false),
         ACLNN_ERR_PARAM_INVALID, "tokensGradOut");
  Expect("one dimension", phase1(flat_grad.get(), indices.get(), out.get(), 2, false),
         ACLNN_ERR_PARAM_INVALID, "permutedTokenOutputGrad");
  Expect("float indices", phase1(grad.get(), flat_grad.get(), out.get(), 2, false),
         ACLNN_ERR_PARAM_INVALID, "sortedIndices");

  Expect("no executor", aclnnMoeTokenPermuteWithRoutingMapGrad(nullptr, 0, nullptr, stream),
         ACLNN_ERR_PARAM_NULLPTR, "executor");

  // Drop-and-pad with a token that there is not: seen when the stream is synchronised, once.
  CHECK(phase1(grad.get(), wild.get(), out.get(), 2, true));
  void* workspace = nullptr;
  CHECK(aclrtMalloc(&workspace, size + 32, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnMoeTokenPermuteWithRoutingMapGrad(workspace, size, executor, stream));
  Expect("an index out of range", aclrtSynchronizeStream(stream),
         ACL_ERROR_RT_VECTOR_CORE_EXCEPTION, "99");
  CHECK(aclrtSynchronizeStream(stream));
  Expect("the executor again",
         aclnnMoeTokenPermuteWithRoutingMapGrad(workspace, size, executor, stream), ACLNN_ERR_INNER,
         "executor");

  // And the stream is as good as before.
  CHECK(phase1(grad.get(), indices.get(), out.get(), 2, false));
  CHECK(aclnnMoeTokenPermuteWithRoutingMapGrad(workspace, size, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));
  if (!Same("after the errors", out.ToHost(), std::vector<float>(4, 2))) ++wrong;

  CHECK(aclrtFree(workspace));
  CHECK(aclrtDestroyStream(stream));
  Expect("a destroyed stream", aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE,
         "stream");
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  Expect("a second aclFinalize", aclFinalize(), ACL_ERROR_REPEAT_FINALIZE, "aclFinalize");
  std::printf("%d wrong\n", wrong);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
