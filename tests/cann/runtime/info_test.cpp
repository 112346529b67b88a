// SPDX-License-Identifier: Apache-2.0
// Versions, attributes, error texts, the log, and what is not offered.
#include <cstdlib>
#include <cstring>
#include <thread>

#include "cann/runtime/support.hpp"

namespace moeperm::cann::testing {
namespace {

TEST(Info, Versions) {
  std::int32_t major = 0;
  std::int32_t minor = 0;
  std::int32_t patch = -1;
  EXPECT_OK(aclrtGetVersion(&major, &minor, &patch));
  EXPECT_EQ(major, ACL_MAJOR_VERSION);
  EXPECT_EQ(minor, ACL_MINOR_VERSION);
  EXPECT_EQ(patch, ACL_PATCH_VERSION);
  EXPECT_CODE(aclrtGetVersion(nullptr, &minor, &patch), ACL_ERROR_INVALID_PARAM, "null");
  EXPECT_CODE(aclrtGetVersion(&major, nullptr, &patch), ACL_ERROR_INVALID_PARAM, "null");
  EXPECT_CODE(aclrtGetVersion(&major, &minor, nullptr), ACL_ERROR_INVALID_PARAM, "null");
  aclCANNPackageVersion version;
  EXPECT_OK(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &version));
  EXPECT_EQ(std::string(version.version), std::string(version.majorVersion) + "." +
                                              version.minorVersion + "." + version.releaseVersion);
  EXPECT_CODE(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, nullptr), ACL_ERROR_INVALID_PARAM, "version");
  EXPECT_CODE(aclsysGetCANNVersion(static_cast<aclCANNPackageName>(8), &version),
              ACL_ERROR_INVALID_PARAM, "name is 8");
  char text[ACL_PKG_VERSION_MAX_SIZE];
  char package[] = "runtime";
  char unknown[] = "moe";
  EXPECT_OK(aclsysGetVersionStr(package, text));
  EXPECT_STREQ(text, version.version);
  EXPECT_CODE(aclsysGetVersionStr(nullptr, text), ACL_ERROR_INVALID_PARAM, "pkgName");
  EXPECT_CODE(aclsysGetVersionStr(package, nullptr), ACL_ERROR_INVALID_PARAM, "versionStr");
  EXPECT_CODE(aclsysGetVersionStr(unknown, text), ACL_ERROR_INVALID_PARAM, "\"moe\"");
}

TEST(Info, Attributes) {
  const aclCannAttr* list = nullptr;
  std::size_t count = 0;
  EXPECT_OK(aclGetCannAttributeList(&list, &count));
  ASSERT_EQ(count, 2U);
  for (std::size_t i = 0; i < count; ++i) {
    std::int32_t value = 0;
    EXPECT_OK(aclGetCannAttribute(list[i], &value));
    EXPECT_EQ(value, 1);
  }
  std::int32_t value = -1;
  EXPECT_OK(aclGetCannAttribute(ACL_CANN_ATTR_JIT_COMPILE, &value));
  EXPECT_EQ(value, 0);
  EXPECT_CODE(aclGetCannAttributeList(nullptr, &count), ACL_ERROR_INVALID_PARAM, "cannAttrList");
  EXPECT_CODE(aclGetCannAttributeList(&list, nullptr), ACL_ERROR_INVALID_PARAM, "num");
  EXPECT_CODE(aclGetCannAttribute(ACL_CANN_ATTR_BF16, nullptr), ACL_ERROR_INVALID_PARAM, "value");
  for (const int attribute : {-1, 3}) {
    EXPECT_CODE(aclGetCannAttribute(static_cast<aclCannAttr>(attribute), &value),
                ACL_ERROR_INVALID_PARAM, "cannAttr");
  }
}

TEST(Errors, TextsAreTheThreadsNewestFirst) {
  TakeText();
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  EXPECT_NE(aclrtFree(nullptr), ACL_SUCCESS);
  EXPECT_NE(aclrtDestroyStream(nullptr), ACL_SUCCESS);
  std::thread([] { EXPECT_EQ(aclGetRecentErrMsg(), nullptr); }).join();
  EXPECT_STREQ(aclGetRecentErrMsg(),
               "100000: aclrtDestroyStream: stream is null\n100000: aclrtFree: devPtr is null");
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
}

TEST(Errors, UnreadTextsDoNotPileUp) {
  for (int i = 0; i < 100000; ++i) EXPECT_NE(aclrtFree(nullptr), ACL_SUCCESS);
  EXPECT_LT(TakeText().size(), 10000U);
}

TEST(Errors, LastOneOfTheThread) {
  (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  EXPECT_NE(aclrtFree(nullptr), ACL_SUCCESS);
  std::uint32_t count = 0;
  EXPECT_OK(aclrtGetDeviceCount(&count));  // success leaves it
  std::thread([] { EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS); }).join();
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetLastError(static_cast<aclrtLastErrLevel>(1)), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtPeekAtLastError(static_cast<aclrtLastErrLevel>(1)), ACL_ERROR_INVALID_PARAM);
}

TEST(Log, PrintsWhereAsked) {
  const auto printed = [](aclLogLevel level) {
    ::testing::internal::CaptureStderr();
    ACL_APP_LOG(level, "value %d", 42);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(printed(ACL_ERROR), "");
  setenv("ASCEND_SLOG_PRINT_TO_STDOUT", "1", 1);
  EXPECT_THAT(printed(ACL_ERROR), HasSubstr("[ERROR]"));
  EXPECT_THAT(printed(ACL_ERROR), HasSubstr("value 42"));
  EXPECT_EQ(printed(ACL_WARNING), "");
  setenv("ASCEND_GLOBAL_LOG_LEVEL", "1", 1);
  EXPECT_THAT(printed(ACL_INFO), HasSubstr("info_test.cpp"));
  EXPECT_EQ(printed(ACL_DEBUG), "");
  EXPECT_EQ(printed(static_cast<aclLogLevel>(4)), "");
  ::testing::internal::CaptureStderr();
  aclAppLog(ACL_ERROR, nullptr, nullptr, 1, nullptr);
  aclAppLog(ACL_ERROR, nullptr, nullptr, 1, "%s", std::string(5000, 'x').c_str());
  EXPECT_LT(::testing::internal::GetCapturedStderr().size(), 2000U);
}

TEST(NotOffered, SaysSo) {
  const auto code = ACL_ERROR_API_NOT_SUPPORT;
  EXPECT_CODE(aclrtSubscribeReport(1, nullptr), code, "aclrtSubscribeReport is not offered");
  EXPECT_CODE(aclrtProcessReport(1), code, "aclrtProcessReport");
  EXPECT_CODE(aclrtUnSubscribeReport(1, nullptr), code, "aclrtUnSubscribeReport");
  EXPECT_CODE(aclDestroyDataBuffer(nullptr), code, "aclDestroyDataBuffer");
  EXPECT_CODE(aclUpdateDataBuffer(nullptr, nullptr, 0), code, "aclUpdateDataBuffer");
  TakeText();
  EXPECT_EQ(aclCreateDataBuffer(kForeign, 1), nullptr);
  EXPECT_EQ(aclGetDataBufferAddr(nullptr), nullptr);
  EXPECT_EQ(aclGetDataBufferSize(nullptr), 0U);
  EXPECT_EQ(aclGetDataBufferSizeV2(nullptr), 0U);
  EXPECT_THAT(TakeText(), HasSubstr("aclCreateDataBuffer is not offered"));
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), code);
}

}  // namespace
}  // namespace moeperm::cann::testing
