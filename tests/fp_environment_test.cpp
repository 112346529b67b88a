// SPDX-License-Identifier: Apache-2.0
// The floating-point settings of the caller change no result, and are the caller's again after it.
#include <gtest/gtest.h>

#include <cfenv>
#include <functional>

#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/random.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace moeperm::test {
namespace {

// Sums that come out otherwise when they are rounded otherwise or subnormals are flushed; large
// enough for several threads.
GradInputs Sensitive(DType dtype) {
  Random random(11);
  GradInputs inputs{.sorted_indices = Tensor(DType::kInt32, {600 * 4})};
  for (std::int64_t slot = 0; slot < 600 * 4; ++slot) {
    inputs.sorted_indices.SetBits(0, slot, static_cast<std::uint64_t>(slot));
  }
  inputs.sorted_indices.Freeze();
  inputs.permuted_tokens_grad.emplace(dtype, std::vector<std::int64_t>{600 * 4, 300});
  FillRandom(random, *inputs.permuted_tokens_grad);
  inputs.num_tokens = 600;
  return inputs;
}

// Calls under the settings `set` makes; they must stand after the call as before it.
void CheckUnder(const std::function<void()>& set) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const GradInputs inputs = Sensitive(dtype);
    const ReferenceGrads expected = Reference(inputs);
    for (const Context& context : EveryContext({1, 7})) {
      GradOutputs outputs = MakeOutputs(inputs);
      const PermuteWithRoutingMapGradArgs args = ArgsOf(inputs, outputs);
      std::fenv_t old;
      std::fegetenv(&old);
      set();
#if defined(__x86_64__)
      constexpr unsigned kControl = ~0x3FU;  // not the flags of what happened
      const unsigned before = _mm_getcsr() & kControl;
#endif
      const int rounding_before = std::fegetround();
      const Status status = PermuteWithRoutingMapGrad(args, context);
      const int rounding_after = std::fegetround();
#if defined(__x86_64__)
      const unsigned after = _mm_getcsr() & kControl;
#endif
      std::fesetenv(&old);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(rounding_before, rounding_after);
#if defined(__x86_64__)
      EXPECT_EQ(before, after);
#endif
      EXPECT_TRUE(Matches(inputs, outputs, expected)) << Describe(context);
    }
  }
}

TEST(FpEnvironment, RoundingMode) {
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    CheckUnder([mode] { ASSERT_EQ(std::fesetround(mode), 0); });
  }
}

#if defined(__x86_64__)
TEST(FpEnvironment, FlushToZeroAndDenormalsAreZero) {
  CheckUnder([] { _mm_setcsr(_mm_getcsr() | 0x8040); });
}

// An invalid operation (a signaling NaN, inf - inf) must not trap in a host that unmasked it.
TEST(FpEnvironment, UnmaskedExceptions) {
  CheckUnder([] { _mm_setcsr((_mm_getcsr() & ~0x3FU) & ~0x0080U); });
}
#endif

// The inputs above can tell: under another rounding mode the plain sum has other bits.
TEST(FpEnvironment, TheInputsCanTell) {
  const GradInputs inputs = Sensitive(DType::kFloat32);
  const Matrix expected = *Reference(inputs).tokens;
  std::fenv_t old;
  std::fegetenv(&old);
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const Matrix upward = *Reference(inputs).tokens;
  std::fesetenv(&old);
  EXPECT_NE(expected.bytes, upward.bytes);
}

}  // namespace
}  // namespace moeperm::test
