// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfenv>

namespace moeperm {

// The numeric contract holds whatever rounding mode or flush-to-zero setting the host program (or
// a library it loads) left in this thread: the default environment while this object lives, the
// caller's after it.
class DefaultFpEnvironment {
 public:
  DefaultFpEnvironment();
  ~DefaultFpEnvironment();
  DefaultFpEnvironment(const DefaultFpEnvironment&) = delete;
  DefaultFpEnvironment& operator=(const DefaultFpEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  unsigned int saved_;
#else
  std::fenv_t saved_;
#endif
};

}  // namespace moeperm
