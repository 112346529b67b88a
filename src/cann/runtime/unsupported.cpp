// SPDX-License-Identifier: Apache-2.0
// What is declared and not offered: threads that ask for reports, and data buffers, which only the
// calls for models and for operators by name take.
#include "acl/acl.h"
#include "cann/runtime/error.hpp"
#include "cann/runtime/messages.hpp"

using namespace moeperm::cann;

namespace {

aclError NotOffered(const char* function) {
  return Fail(ACL_ERROR_API_NOT_SUPPORT, msg::Unsupported(function));
}

}  // namespace

extern "C" {

aclError aclrtSubscribeReport(uint64_t, aclrtStream) { return NotOffered("aclrtSubscribeReport"); }
aclError aclrtProcessReport(int32_t) { return NotOffered("aclrtProcessReport"); }
aclError aclrtUnSubscribeReport(uint64_t, aclrtStream) {
  return NotOffered("aclrtUnSubscribeReport");
}

aclDataBuffer* aclCreateDataBuffer(void*, size_t) {
  NotOffered("aclCreateDataBuffer");
  return nullptr;
}
aclError aclDestroyDataBuffer(const aclDataBuffer*) { return NotOffered("aclDestroyDataBuffer"); }
aclError aclUpdateDataBuffer(aclDataBuffer*, void*, size_t) {
  return NotOffered("aclUpdateDataBuffer");
}
void* aclGetDataBufferAddr(const aclDataBuffer*) {
  NotOffered("aclGetDataBufferAddr");
  return nullptr;
}
uint32_t aclGetDataBufferSize(const aclDataBuffer*) {
  NotOffered("aclGetDataBufferSize");
  return 0;
}
size_t aclGetDataBufferSizeV2(const aclDataBuffer*) {
  NotOffered("aclGetDataBufferSizeV2");
  return 0;
}

}  // extern "C"
