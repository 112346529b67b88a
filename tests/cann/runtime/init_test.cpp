// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "aclnn/aclnn_base.h"
#include "aclnn/opdev/op_errno.h"
#include "cann/runtime/support.hpp"

namespace moeperm::cann::testing {
namespace {

// A file that lives as long as the object.
class File {
 public:
  explicit File(const std::string& text)
      : path_(::testing::TempDir() + "acl_config_" + std::to_string(getpid()) + ".json") {
    std::ofstream(path_) << text;
  }
  ~File() { std::remove(path_.c_str()); }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

TEST(Init, OnceAndAgainAfterTheEnd) {
  EXPECT_OK(aclInit(nullptr));
  EXPECT_OK(aclFinalize());
  EXPECT_OK(aclInit(nullptr));
  EXPECT_OK(aclFinalize());
}

TEST(Init, RepeatedCountsAndFinalizeEndsAll) {
  EXPECT_OK(aclInit(nullptr));
  EXPECT_CODE(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE, "already initialised");
  EXPECT_EQ(aclInit("/no/such/file"), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_OK(aclFinalize());
  EXPECT_CODE(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE, "already finalised");
}

TEST(Init, FinalizeWithoutInitSucceedsOnce) {
  EXPECT_OK(aclFinalize());
  EXPECT_CODE(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE, "aclFinalize");
  EXPECT_OK(aclInit(nullptr));
  EXPECT_OK(aclFinalize());
}

TEST(Init, FinalizeReferenceCountsDown) {
  std::uint64_t count = 9;
  EXPECT_EQ(aclFinalizeReference(&count), ACL_ERROR_REPEAT_FINALIZE);
  EXPECT_EQ(count, 0U);
  ASSERT_OK(aclInit(nullptr));
  ASSERT_EQ(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_OK(aclFinalizeReference(&count));
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_OK(aclFinalizeReference(nullptr));
  EXPECT_OK(aclFinalizeReference(&count));
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
}

TEST(Init, ConfigurationFiles) {
  EXPECT_CODE(aclInit("/no/such/file"), ACL_ERROR_INVALID_FILE, "/no/such/file");
  EXPECT_CODE(aclInit(""), ACL_ERROR_INVALID_FILE, "opened");
  EXPECT_NE(aclInit("/"), ACL_SUCCESS);
  for (const char* const text : {"", "{", "[]", "1", "{} {}", "{\"a\":}"}) {
    const File file(text);
    EXPECT_CODE(aclInit(file.path()), ACL_ERROR_PARSE_FILE, file.path());
  }
  {
    const File file(R"({"err_msg_mode": 2})");
    EXPECT_CODE(aclInit(file.path()), ACL_ERROR_INVALID_PARAM, "err_msg_mode");
  }
  {
    const File file(std::string((10 << 20) + 1, ' '));
    EXPECT_CODE(aclInit(file.path()), ACL_ERROR_INVALID_FILE_SIZE, "10 MiB");
  }
}

// In a process of its own.
TEST(Init, AnotherConfigurationThanTheFirst) {
  const File file(R"({"dump": {"dump_list": []}, "err_msg_mode": "0"})");
  ASSERT_OK(aclInit(file.path()));
  ASSERT_OK(aclFinalize());
  EXPECT_CODE(aclInit(nullptr), ACL_ERROR_INVALID_PARAM, "differs");
  EXPECT_OK(aclInit(file.path()));
  EXPECT_OK(aclFinalize());
}

// In a process of its own.
TEST(Init, ErrorTextsOfTheProcess) {
  const File file(R"({"err_msg_mode": "1"})");
  ASSERT_OK(aclInit(file.path()));
  std::thread([] { (void)aclrtFree(nullptr); }).join();
  EXPECT_THAT(TakeText(), HasSubstr("aclrtFree"));
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  EXPECT_OK(aclFinalize());
}

// In a process of its own, as are the next ones.
TEST(Init, UnknownSoc) {
  setenv("MOEPERM_SOC", "Ascend1", 1);
  EXPECT_CODE(aclInit(nullptr), ACL_ERROR_FAILURE, "\"Ascend1\"");
  EXPECT_EQ(aclrtGetSocName(), nullptr);
  std::int64_t value = 0;
  EXPECT_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &value), ACL_ERROR_FAILURE);
  EXPECT_EQ(aclnnInit(nullptr), ACLNN_ERR_RUNTIME_ERROR);
}

TEST(Init, BadDeviceCount) {
  setenv("MOEPERM_DEVICES", "two", 1);
  EXPECT_CODE(aclInit(nullptr), ACL_ERROR_FAILURE, "MOEPERM_DEVICES is \"two\"");
}

TEST(Init, LeaksAreNoError) {
  ASSERT_OK(aclInit(nullptr));
  ASSERT_OK(aclrtSetDevice(0));
  aclrtContext context = nullptr;
  ASSERT_OK(aclrtCreateContext(&context, 0));
  Gate gate;
  std::atomic<int> count = 0;
  for (int i = 0; i < 20; ++i) {
    aclrtStream stream = nullptr;
    aclrtEvent event = nullptr;
    void* memory = nullptr;
    ASSERT_OK(aclrtCreateStream(&stream));
    ASSERT_OK(aclrtCreateEvent(&event));
    ASSERT_OK(aclrtMalloc(&memory, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
    ASSERT_OK(aclrtMallocHost(&memory, 100));
    ASSERT_OK(aclrtLaunchHostFunc(stream, Add, &count));
    ASSERT_OK(aclrtRecordEvent(event, stream));
  }
  EXPECT_OK(aclFinalize());
  ASSERT_OK(aclInit(nullptr));
  ASSERT_OK(aclrtSetDevice(0));
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
  EXPECT_EQ(free, total);
  EXPECT_EQ(aclrtSetCurrentContext(context), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_OK(aclFinalize());
}

TEST(Init, AclnnAlone) {
  EXPECT_EQ(aclnnInit(nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclnnInit(nullptr), ACLNN_SUCCESS);
  EXPECT_OK(aclInit(nullptr));
  EXPECT_EQ(aclnnInit("/no/such/file"), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclnnFinalize(), ACLNN_SUCCESS);
  EXPECT_OK(aclFinalize());
  EXPECT_EQ(aclnnFinalize(), ACLNN_SUCCESS);
}

}  // namespace
}  // namespace moeperm::cann::testing
