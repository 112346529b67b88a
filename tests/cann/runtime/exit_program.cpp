// SPDX-License-Identifier: Apache-2.0
// A program that ends in the middle of everything: nothing destroyed, work queued and running,
// calls from static destructors, a thread that ends with texts unread. It returns 0.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "acl/acl.h"

namespace {

// Ends after everything that main made.
struct Late {
  ~Late() {
    bool right = aclrtFree(nullptr) == ACL_ERROR_INVALID_PARAM;
    right = right && aclGetRecentErrMsg() != nullptr;
    right = right && aclrtSynchronizeStream(stream) == ACL_SUCCESS;
    if (finalize) right = right && aclFinalize() == ACL_SUCCESS;
    if (!right) {
      std::fputs("a call from a static destructor went wrong\n", stderr);
      std::_Exit(1);
    }
  }
  aclrtStream stream = nullptr;
  bool finalize = false;
};
Late late;

void Sleep(void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  late.finalize = how == "finalize";
  if (aclInit(nullptr) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  for (int i = 0; i < 8; ++i) {
    aclrtEvent event = nullptr;
    void* memory = nullptr;
    if (aclrtCreateStream(&late.stream) != ACL_SUCCESS) return 1;
    if (aclrtCreateEvent(&event) != ACL_SUCCESS) return 1;
    if (aclrtMalloc(&memory, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return 1;
    if (aclrtLaunchHostFunc(late.stream, Sleep, nullptr) != ACL_SUCCESS) return 1;
    if (aclrtMemsetAsync(memory, 1 << 20, 1, 1 << 20, late.stream) != ACL_SUCCESS) return 1;
    if (aclrtRecordEvent(event, late.stream) != ACL_SUCCESS) return 1;
  }
  std::thread([] { (void)aclrtFree(nullptr); }).join();
  (void)aclrtFree(nullptr);
  return 0;
}
