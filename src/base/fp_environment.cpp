// SPDX-License-Identifier: Apache-2.0
#include "base/fp_environment.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace moeperm {

#if defined(__x86_64__)
// Only MXCSR: no x87 instruction is used, and fesetenv would touch that state too, at ten times
// the cost. 0x1F80: every exception masked, round to nearest, subnormals kept.
DefaultFpEnvironment::DefaultFpEnvironment() : saved_(_mm_getcsr()) { _mm_setcsr(0x1F80); }
DefaultFpEnvironment::~DefaultFpEnvironment() { _mm_setcsr(saved_); }
#else
DefaultFpEnvironment::DefaultFpEnvironment() : saved_() {
  std::fegetenv(&saved_);
  std::fesetenv(FE_DFL_ENV);
}
DefaultFpEnvironment::~DefaultFpEnvironment() { std::fesetenv(&saved_); }
#endif

}  // namespace moeperm
