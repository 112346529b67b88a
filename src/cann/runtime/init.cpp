// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <fstream>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "aclnn/opdev/op_errno.h"
#include "cann/runtime/allocations.hpp"
#include "cann/runtime/error.hpp"
#include "cann/runtime/messages.hpp"
#include "cann/runtime/state.hpp"

namespace moeperm::cann {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{10} << 20;

struct Initialisation {
  std::mutex mutex;
  std::uint64_t references = 0;
  bool finalised = false;
  std::optional<std::string> first_config;  // text of the process's first successful one
};
Initialisation& GetInitialisation() {
  static Initialisation* const initialisation = new Initialisation;
  return *initialisation;
}

struct Config {
  std::string text;  // empty for a null path
  bool shared_errors = false;
};

// Of the switches only err_msg_mode means something here: 0 or 1, as a number or as text.
int ReadConfig(const char* function, const char* path, Config* config) {
  if (path == nullptr) return ACL_SUCCESS;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fail(ACL_ERROR_INVALID_FILE, msg::BadFile(function, path, "cannot be opened"));
  char part[4096];
  while (file.read(part, sizeof part), file.gcount() > 0) {
    config->text.append(part, static_cast<std::size_t>(file.gcount()));
    if (config->text.size() > kMaxConfigBytes) {
      return Fail(ACL_ERROR_INVALID_FILE_SIZE, msg::BadFile(function, path, "is above 10 MiB"));
    }
  }
  if (file.bad()) return Fail(ACL_ERROR_INVALID_FILE, msg::BadFile(function, path, "is no file"));
  const nlohmann::json json = nlohmann::json::parse(config->text, nullptr, false);
  if (!json.is_object()) {
    return Fail(ACL_ERROR_PARSE_FILE, msg::BadFile(function, path, "is no JSON object"));
  }
  if (const auto mode = json.find("err_msg_mode"); mode != json.end()) {
    if (*mode != 0 && *mode != 1 && *mode != "0" && *mode != "1") {
      return Fail(ACL_ERROR_INVALID_PARAM,
                  msg::BadFile(function, path, "err_msg_mode is not 0 or 1"));
    }
    config->shared_errors = *mode == 1 || *mode == "1";
  }
  return ACL_SUCCESS;
}

// Without what programs left behind: queued work is thrown away, memory goes back.
void TearDown() {
  CloseAll();
  ReleaseAll();
}

}  // namespace
}  // namespace moeperm::cann

using namespace moeperm::cann;

extern "C" {

aclError aclInit(const char* configPath) try {
  constexpr const char* kFunction = "aclInit";
  Initialisation& its = GetInitialisation();
  const std::lock_guard lock(its.mutex);
  if (its.references > 0) {
    ++its.references;
    return Fail(ACL_ERROR_REPEAT_INITIALIZE, msg::Repeated(kFunction, its.references));
  }
  Config config;
  if (const int code = ReadConfig(kFunction, configPath, &config); code != ACL_SUCCESS) return code;
  if (its.first_config && *its.first_config != config.text) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::ConfigDiffers(kFunction));
  }
  if (!GetEnvironment().problem.empty()) {
    return Fail(ACL_ERROR_FAILURE, GetEnvironment().problem);
  }
  its.first_config = std::move(config.text);
  its.references = 1;
  its.finalised = false;
  ShareErrorTexts(config.shared_errors);
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclInit");
}

aclError aclFinalize() try {
  constexpr const char* kFunction = "aclFinalize";
  if (Queue::InAnyTask()) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, msg::InOwnTask(kFunction));
  }
  Initialisation& its = GetInitialisation();
  {
    const std::lock_guard lock(its.mutex);
    if (its.finalised) return Fail(ACL_ERROR_REPEAT_FINALIZE, msg::NotInitialised(kFunction));
    its.references = 0;
    its.finalised = true;
  }
  TearDown();  // unlocked: a callback that it waits for may still call
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclFinalize");
}

aclError aclFinalizeReference(uint64_t* refCount) try {
  constexpr const char* kFunction = "aclFinalizeReference";
  if (Queue::InAnyTask()) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, msg::InOwnTask(kFunction));
  }
  Initialisation& its = GetInitialisation();
  bool last = false;
  {
    const std::lock_guard lock(its.mutex);
    if (its.references == 0) {
      if (refCount != nullptr) *refCount = 0;
      return Fail(ACL_ERROR_REPEAT_FINALIZE, msg::NotInitialised(kFunction));
    }
    last = --its.references == 0;
    if (last) its.finalised = true;
    if (refCount != nullptr) *refCount = its.references;
  }
  if (last) TearDown();
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclFinalizeReference");
}

// For programs that use only aclnn. There is nothing to prepare and nothing to end, so neither
// minds being repeated, or being used beside aclInit.
aclnnStatus aclnnInit(const char* configPath) try {
  constexpr const char* kFunction = "aclnnInit";
  Config config;
  if (ReadConfig(kFunction, configPath, &config) != ACL_SUCCESS) return ACLNN_ERR_PARAM_INVALID;
  if (!GetEnvironment().problem.empty()) {
    return Fail(ACLNN_ERR_RUNTIME_ERROR, GetEnvironment().problem);
  }
  return ACLNN_SUCCESS;
} catch (...) {
  Caught("aclnnInit");
  return ACLNN_ERR_INNER;
}

aclnnStatus aclnnFinalize() { return ACLNN_SUCCESS; }

}  // extern "C"
