// SPDX-License-Identifier: Apache-2.0
// Contexts: options, environment variables, and what a bad one does to a call.
#include "moeperm/context.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>

#include "support/fixtures.hpp"
#include "support/random.hpp"
#include "support/refusal.hpp"

namespace moeperm::test {
namespace {

// A variable set (or, without a value, unset) for one test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name); old != nullptr) {
      old_ = old;
    }
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~Environment() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class Contexts : public testing::Test {
 private:
  Environment threads_{"MOEPERM_NUM_THREADS", nullptr};
  Environment isa_{"MOEPERM_ISA", nullptr};
};

void ExpectBad(const Context& context, const std::vector<std::string>& says) {
  ExpectRefused(context.status(), Code::kInvalidArgument, says);
  EXPECT_EQ(context.num_threads(), 0);
  EXPECT_EQ(context.isa(), "");

  // Every call with it returns its status and touches nothing.
  const Context good({.num_threads = 1, .isa = AvailableIsas().front()});
  const ForwardInputs inputs = NotPadded(F1());
  ForwardOutputs outputs = MakeOutputs(inputs);
  const PermuteWithRoutingMapArgs args = ArgsOf(inputs, outputs);
  ExpectRefused(PermuteWithRoutingMap(args, context), Code::kInvalidArgument, says);
  RowMap row_map;
  ExpectRefused(RowMap::FromRoutingMap(args.routing_map, {}, &row_map, context),
                Code::kInvalidArgument, says);
  ASSERT_TRUE(RowMap::FromRoutingMap(args.routing_map, {}, &row_map, good).ok());
  ExpectRefused(
      PermuteByRowMap(row_map, {args.tokens, args.probs, args.permuted_tokens, args.permuted_probs},
                      context),
      Code::kInvalidArgument, says);
  EXPECT_EQ(outputs.permuted_tokens.Bits(0, 0), 0xFFFFFFFFU) << "written";
  const GradInputs grad = GradOf(inputs, RunForward(inputs, good), kF1TokensGrad, kF1ProbsGrad);
  GradOutputs grads = MakeOutputs(grad);
  const PermuteWithRoutingMapGradArgs grad_args = ArgsOf(grad, grads);
  ExpectRefused(PermuteWithRoutingMapGrad(grad_args, context), Code::kInvalidArgument, says);
  ExpectRefused(PermuteByRowMapGrad(row_map,
                                    {grad_args.permuted_tokens_grad, grad_args.permuted_probs_grad,
                                     grad_args.tokens_grad, grad_args.probs_grad},
                                    context),
                Code::kInvalidArgument, says);
  EXPECT_EQ(grads.tokens_grad->Bits(0, 0), 0xFFFFFFFFU) << "written";
}

TEST_F(Contexts, DefaultIsTheBestHere) {
  const Context context;
  ASSERT_TRUE(context.status().ok()) << context.status().message();
  ASSERT_FALSE(AvailableIsas().empty());
  EXPECT_EQ(context.isa(), AvailableIsas().front());
  EXPECT_GE(context.num_threads(), 1);
  EXPECT_TRUE(Context::Default().status().ok());
  EXPECT_EQ(&Context::Default(), &Context::Default());
}

TEST_F(Contexts, EveryIsaByName) {
  for (const std::string& isa : AvailableIsas()) {
    std::string lower = isa;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const std::string& name : {isa, lower}) {
      const Context context({.num_threads = 1, .isa = name});
      ASSERT_TRUE(context.status().ok()) << context.status().message();
      EXPECT_EQ(context.isa(), isa);
    }
    const Environment environment("MOEPERM_ISA", lower.c_str());
    EXPECT_EQ(Context().isa(), isa);
  }
}

#if defined(__x86_64__) && !defined(MOEPERM_UNDER_SANITIZER)
TEST_F(Contexts, SeveralIsasAreTested) {
  EXPECT_GE(AvailableIsas().size(), 2U) << "tests over every instruction set cover only one";
}
#endif

TEST_F(Contexts, UnknownIsa) {
  ExpectBad(Context({.isa = "AVX7"}), {"isa", "AVX7", AvailableIsas().front()});
  const Environment environment("MOEPERM_ISA", "quick");
  ExpectBad(Context(), {"MOEPERM_ISA", "quick", AvailableIsas().back()});
}

TEST_F(Contexts, BadThreadCounts) {
  for (const int bad : {-1, -2147483647 - 1, 2147483647}) {
    ExpectBad(Context({.num_threads = bad}), {"num_threads", std::to_string(bad)});
  }
  for (const char* bad : {"0", "-1", "two", "3x", " 3", "99999999999", "2147483647", "1.5"}) {
    const Environment environment("MOEPERM_NUM_THREADS", bad);
    ExpectBad(Context(), {"MOEPERM_NUM_THREADS", bad});
  }
}

TEST_F(Contexts, EnvironmentGivesTheThreads) {
  const Environment environment("MOEPERM_NUM_THREADS", "5");
  EXPECT_EQ(Context().num_threads(), 5);
  EXPECT_EQ(Context({.num_threads = 3}).num_threads(), 3);  // an option is stronger
}

TEST_F(Contexts, OptionsAreStrongerThanABadEnvironment) {
  const Environment threads("MOEPERM_NUM_THREADS", "many");
  const Environment isa("MOEPERM_ISA", "quick");
  const Context context({.num_threads = 2, .isa = AvailableIsas().back()});
  ASSERT_TRUE(context.status().ok()) << context.status().message();
  EXPECT_EQ(context.num_threads(), 2);
  EXPECT_EQ(context.isa(), AvailableIsas().back());
}

// Contexts of several sizes side by side, more threads than processors among them: no library
// below may tell the user about it.
TEST_F(Contexts, NothingIsPrinted) {
  Random random(13);
  const ForwardInputs inputs{
      Tensor::OfFloats(DType::kFloat32, {4096, 256}, std::vector<float>(4096 * 256, 1)),
      MapTensor(DType::kInt8, 4096, 8, RandomTopK(random, 4096, 8, 2)), std::nullopt, 4096 * 2, 2};
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  const Context three({.num_threads = 3});
  const Context seven({.num_threads = 7});
  const Context two({.num_threads = 2});
  for (const Context* context : {&seven, &three, &two, &seven}) {
    RunForward(inputs, *context);
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Contexts, CopiesAreTheSameContext) {
  const Context context({.num_threads = 3});
  const Context copy = context;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(copy.impl(), context.impl());
  EXPECT_EQ(copy.num_threads(), 3);
}

TEST(Status, NamesAndDefaults) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().message(), "");
  EXPECT_FALSE(Status(Code::kInternal, "x").ok());
  EXPECT_EQ(Name(Code::kOk), "OK");
  EXPECT_EQ(Name(Code::kInvalidArgument), "INVALID_ARGUMENT");
  EXPECT_EQ(Name(Code::kIndexOutOfRange), "INDEX_OUT_OF_RANGE");
  EXPECT_EQ(Name(Code::kOutOfMemory), "OUT_OF_MEMORY");
  EXPECT_EQ(Name(Code::kInternal), "INTERNAL");
}

TEST(DTypes, SizesAndNames) {
  const struct {
    DType dtype;
    std::size_t size;
    std::string_view name;
  } cases[] = {{DType::kInvalid, 0, "invalid"},
               {DType::kFloat32, 4, "float32"},
               {DType::kFloat16, 2, "float16"},
               {DType::kBFloat16, 2, "bfloat16"},
               {DType::kInt8, 1, "int8"},
               {DType::kBool, 1, "bool"},
               {DType::kInt32, 4, "int32"},
               {DType::kInt64, 8, "int64"},
               {static_cast<DType>(8), 0, "invalid"},
               {static_cast<DType>(-1), 0, "invalid"}};
  for (const auto& one : cases) {
    EXPECT_EQ(SizeOf(one.dtype), one.size);
    EXPECT_EQ(Name(one.dtype), one.name);
  }
}

}  // namespace
}  // namespace moeperm::test
