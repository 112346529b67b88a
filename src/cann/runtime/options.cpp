// SPDX-License-Identifier: Apache-2.0
// System options. Results are the same whatever they say; they are kept and given back.
#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "acl/acl.h"
#include "cann/runtime/enum_value.hpp"
#include "cann/runtime/error.hpp"
#include "cann/runtime/messages.hpp"
#include "cann/runtime/state.hpp"

namespace moeperm::cann {
namespace {

constexpr int kOfContext = 3;  // options 0 to 2
constexpr int kOfProcess = 4;  // options 0 to 3

std::array<std::atomic<std::int64_t>, kOfProcess> process_options;

int BadOption(const char* function, std::int64_t option, int count) {
  if (option >= 0 && option < count) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM,
              msg::BadValue(function, "opt", option, count == kOfContext ? "0 to 2" : "0 to 3"));
}

}  // namespace
}  // namespace moeperm::cann

using namespace moeperm::cann;

extern "C" {

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) try {
  constexpr const char* kFunction = "aclrtCtxSetSysParamOpt";
  const std::int64_t option = EnumValue(opt);
  if (const int code = BadOption(kFunction, option, kOfContext); code != ACL_SUCCESS) return code;
  const std::shared_ptr<Context> context = CurrentContext();
  if (context == nullptr) return Fail(ACL_ERROR_RT_CONTEXT_NULL, msg::NoContext(kFunction));
  const std::lock_guard lock(context->mutex);
  context->options[static_cast<std::size_t>(option)] = value;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtCtxSetSysParamOpt");
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) try {
  constexpr const char* kFunction = "aclrtCtxGetSysParamOpt";
  const std::int64_t option = EnumValue(opt);
  if (value == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "value"));
  if (const int code = BadOption(kFunction, option, kOfContext); code != ACL_SUCCESS) return code;
  const std::shared_ptr<Context> context = CurrentContext();
  if (context == nullptr) return Fail(ACL_ERROR_RT_CONTEXT_NULL, msg::NoContext(kFunction));
  const std::lock_guard lock(context->mutex);
  const auto& stored = context->options[static_cast<std::size_t>(option)];
  if (!stored) return Fail(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, msg::NotSet(kFunction, option));
  *value = *stored;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtCtxGetSysParamOpt");
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) try {
  constexpr const char* kFunction = "aclrtSetSysParamOpt";
  const std::int64_t option = EnumValue(opt);
  if (const int code = BadOption(kFunction, option, kOfProcess); code != ACL_SUCCESS) return code;
  const bool deterministic = option == ACL_OPT_DETERMINISTIC;
  if (value < 0 || value > (deterministic ? 3 : 1)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                msg::BadValue(kFunction, "value", value, deterministic ? "0 to 3" : "0 or 1"));
  }
  process_options[static_cast<std::size_t>(option)] = value;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtSetSysParamOpt");
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) try {
  constexpr const char* kFunction = "aclrtGetSysParamOpt";
  const std::int64_t option = EnumValue(opt);
  if (value == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "value"));
  if (const int code = BadOption(kFunction, option, kOfProcess); code != ACL_SUCCESS) return code;
  *value = process_options[static_cast<std::size_t>(option)];
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtGetSysParamOpt");
}

}  // extern "C"
