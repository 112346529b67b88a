// SPDX-License-Identifier: Apache-2.0
#include "cann/runtime/error.hpp"

#include <atomic>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include "acl/acl.h"
#include "cann/runtime/enum_value.hpp"
#include "cann/runtime/messages.hpp"

namespace moeperm::cann {
namespace {

// Texts that nobody fetches do not grow without bound: the oldest go.
constexpr std::size_t kMaxTexts = 32;

class Texts {
 public:
  void Add(std::string text) {
    const std::lock_guard lock(mutex_);
    texts_.push_front(std::move(text));
    if (texts_.size() > kMaxTexts) texts_.pop_back();
  }
  std::string Take() {
    const std::lock_guard lock(mutex_);
    std::string all;
    for (const std::string& text : texts_) all.append(all.empty() ? "" : "\n").append(text);
    texts_.clear();
    return all;
  }

 private:
  std::mutex mutex_;
  std::deque<std::string> texts_;
};

struct ThreadErrors {
  Texts texts;
  std::string returned;  // what aclGetRecentErrMsg handed out last
};

// A plain pointer, so that calls from static destructors, when the main thread's own objects are
// gone, still find something whole: they make it anew.
thread_local ThreadErrors* thread_errors = nullptr;
thread_local int last_error = 0;

struct Cleaner {
  ~Cleaner() { delete std::exchange(thread_errors, nullptr); }
};

ThreadErrors& Mine() {
  if (thread_errors == nullptr) {
    thread_errors = new ThreadErrors;
    static thread_local Cleaner cleaner;
  }
  return *thread_errors;
}

std::atomic<bool> shared_mode = false;

Texts& Shared() {
  static Texts* const texts = new Texts;  // never destroyed, see above
  return *texts;
}

bool OfAclnn(int code) { return code / 1000 % 100 == 61; }

}  // namespace

int Fail(int code, std::string message) noexcept {
  if (!OfAclnn(code)) last_error = code;
  try {
    Texts& texts = shared_mode ? Shared() : Mine().texts;
    texts.Add(std::to_string(code) + ": " + std::move(message));
  } catch (...) {  // no memory for a text: the code has to do
  }
  return code;
}

int Caught(const char* function) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Fail(ACL_ERROR_BAD_ALLOC, msg::OutOfMemory(function));
  } catch (const std::exception& error) {
    return Fail(ACL_ERROR_INTERNAL_ERROR, msg::Internal(function, error.what()));
  } catch (...) {
    return Fail(ACL_ERROR_INTERNAL_ERROR, msg::Internal(function, "unknown exception"));
  }
}

void ShareErrorTexts(bool shared) noexcept { shared_mode = shared; }

}  // namespace moeperm::cann

using namespace moeperm::cann;

extern "C" {

const char* aclGetRecentErrMsg() try {
  ThreadErrors& mine = Mine();
  mine.returned = shared_mode ? Shared().Take() : mine.texts.Take();
  return mine.returned.empty() ? nullptr : mine.returned.c_str();
} catch (...) {
  return nullptr;
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  if (EnumValue(level) != ACL_RT_THREAD_LEVEL) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                msg::BadValue("aclrtPeekAtLastError", "level", EnumValue(level), "0"));
  }
  return last_error;
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  if (EnumValue(level) != ACL_RT_THREAD_LEVEL) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                msg::BadValue("aclrtGetLastError", "level", EnumValue(level), "0"));
  }
  return std::exchange(last_error, 0);
}

}  // extern "C"
