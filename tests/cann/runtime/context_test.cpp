// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "cann/runtime/support.hpp"

namespace moeperm::cann::testing {
namespace {

using Contexts = Runtime;

TEST_F(Contexts, CreateMakesItCurrent) {
  aclrtContext primary = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  aclrtContext made = nullptr;
  ASSERT_OK(aclrtCreateContext(&made, 0));
  EXPECT_NE(made, primary);
  aclrtContext current = nullptr;
  EXPECT_OK(aclrtGetCurrentContext(&current));
  EXPECT_EQ(current, made);
  EXPECT_OK(aclrtSetCurrentContext(primary));
  EXPECT_OK(aclrtGetCurrentContext(&current));
  EXPECT_EQ(current, primary);
  EXPECT_OK(aclrtDestroyContext(made));
  EXPECT_OK(aclrtGetCurrentContext(&current));
}

TEST_F(Contexts, EachThreadHasItsOwn) {
  aclrtContext made = nullptr;
  ASSERT_OK(aclrtCreateContext(&made, 0));
  std::thread([&] {
    aclrtContext current = nullptr;
    EXPECT_CODE(aclrtGetCurrentContext(&current), ACL_ERROR_RT_CONTEXT_NULL, "no current context");
    EXPECT_OK(aclrtSetCurrentContext(made));
    std::int32_t device = -1;
    EXPECT_OK(aclrtGetDevice(&device));
    EXPECT_EQ(device, 0);
    EXPECT_OK(aclrtDestroyContext(made));
    EXPECT_EQ(aclrtGetCurrentContext(&current), ACL_ERROR_RT_CONTEXT_NULL);
  }).join();
  aclrtContext current = nullptr;
  EXPECT_EQ(aclrtGetCurrentContext(&current), ACL_ERROR_RT_CONTEXT_NULL);
}

TEST_F(Contexts, NullsAndStaleAndForeignOnes) {
  EXPECT_CODE(aclrtCreateContext(nullptr, 0), ACL_ERROR_INVALID_PARAM, "context");
  EXPECT_CODE(aclrtDestroyContext(nullptr), ACL_ERROR_INVALID_PARAM, "context");
  EXPECT_CODE(aclrtSetCurrentContext(nullptr), ACL_ERROR_INVALID_PARAM, "context");
  EXPECT_CODE(aclrtGetCurrentContext(nullptr), ACL_ERROR_INVALID_PARAM, "context");
  aclrtContext primary = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  EXPECT_CODE(aclrtDestroyContext(primary), ACL_ERROR_RT_PARAM_INVALID, "aclrtResetDevice");
  aclrtStream stream = nullptr;
  ASSERT_OK(aclrtCreateStream(&stream));
  aclrtContext made = nullptr;
  ASSERT_OK(aclrtCreateContext(&made, 0));
  ASSERT_OK(aclrtDestroyContext(made));
  int local = 0;
  for (void* const handle : {kForeign, static_cast<void*>(&local), stream, made}) {
    EXPECT_CODE(aclrtSetCurrentContext(handle), ACL_ERROR_RT_INVALID_HANDLE, "no live context");
    EXPECT_CODE(aclrtDestroyContext(handle), ACL_ERROR_RT_INVALID_HANDLE, "no live context");
  }
}

TEST_F(Contexts, DestroyRunsWhatIsQueuedAndEndsTheStreams) {
  aclrtContext made = nullptr;
  ASSERT_OK(aclrtCreateContext(&made, 0));
  aclrtStream stream = nullptr;
  ASSERT_OK(aclrtCreateStream(&stream));
  std::atomic<int> count = 0;
  for (int i = 0; i < 100; ++i) ASSERT_OK(aclrtLaunchHostFunc(stream, Add, &count));
  ASSERT_OK(aclrtLaunchHostFunc(nullptr, Add, &count));
  EXPECT_OK(aclrtDestroyContext(made));
  EXPECT_EQ(count, 101);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(Contexts, StreamsOfAnotherContextAreRefused) {
  aclrtStream stream = nullptr;
  ASSERT_OK(aclrtCreateStream(&stream));
  aclrtContext made = nullptr;
  ASSERT_OK(aclrtCreateContext(&made, 0));
  EXPECT_CODE(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_CONTEXT, "another context");
  EXPECT_CODE(aclrtMemsetAsync(&made, 1, 0, 1, stream), ACL_ERROR_RT_STREAM_CONTEXT, "stream");
  std::thread([&] { EXPECT_OK(aclrtSynchronizeStream(stream)); }).join();  // it has none
  EXPECT_OK(aclrtDestroyStream(stream));
}

TEST_F(Contexts, OptionsOfTheContext) {
  std::int64_t value = 5;
  EXPECT_CODE(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value),
              ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, "option 0");
  EXPECT_OK(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 77));
  EXPECT_OK(aclrtCtxSetSysParamOpt(ACL_OPT_ENABLE_DEBUG_KERNEL, -1));
  EXPECT_OK(aclrtCtxSetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, INT64_MIN));
  EXPECT_OK(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  EXPECT_EQ(value, 77);
  EXPECT_OK(aclrtCtxGetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, &value));
  EXPECT_EQ(value, INT64_MIN);
  for (const int option : {-1, 3, 4, 100}) {
    const auto opt = static_cast<aclSysParamOpt>(option);
    EXPECT_CODE(aclrtCtxSetSysParamOpt(opt, 0), ACL_ERROR_INVALID_PARAM, "opt");
    EXPECT_CODE(aclrtCtxGetSysParamOpt(opt, &value), ACL_ERROR_INVALID_PARAM, "opt");
  }
  EXPECT_CODE(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr), ACL_ERROR_INVALID_PARAM,
              "value");
  aclrtContext made = nullptr;
  ASSERT_OK(aclrtCreateContext(&made, 0));
  EXPECT_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value),
            ACL_ERROR_RT_SYSPARAMOPT_NOT_SET);
  std::thread([&] {
    EXPECT_CODE(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 0), ACL_ERROR_RT_CONTEXT_NULL,
                "context");
    EXPECT_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_ERROR_RT_CONTEXT_NULL);
  }).join();
}

TEST(Options, OfTheProcess) {
  std::int64_t value = 5;
  EXPECT_OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  EXPECT_EQ(value, 0);
  for (std::int64_t set = 0; set <= 3; ++set) {
    EXPECT_OK(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, set));
    EXPECT_OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
    EXPECT_EQ(value, set);
  }
  EXPECT_CODE(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 4), ACL_ERROR_RT_PARAM_INVALID, "0 to 3");
  EXPECT_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, -1), ACL_ERROR_RT_PARAM_INVALID);
  for (const int option : {1, 2, 3}) {
    const auto opt = static_cast<aclSysParamOpt>(option);
    EXPECT_OK(aclrtSetSysParamOpt(opt, 1));
    EXPECT_OK(aclrtGetSysParamOpt(opt, &value));
    EXPECT_EQ(value, 1);
    EXPECT_CODE(aclrtSetSysParamOpt(opt, 2), ACL_ERROR_RT_PARAM_INVALID, "0 or 1");
    EXPECT_OK(aclrtSetSysParamOpt(opt, 0));
  }
  for (const int option : {-1, 4, 100}) {
    const auto opt = static_cast<aclSysParamOpt>(option);
    EXPECT_CODE(aclrtSetSysParamOpt(opt, 0), ACL_ERROR_INVALID_PARAM, "opt");
    EXPECT_CODE(aclrtGetSysParamOpt(opt, &value), ACL_ERROR_INVALID_PARAM, "opt");
  }
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_OK(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 0));
}

}  // namespace
}  // namespace moeperm::cann::testing
