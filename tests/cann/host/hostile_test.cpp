// SPDX-License-Identifier: Apache-2.0
// Shapes, attributes and platforms that nobody sane has: a status, never undefined behaviour. Worth
// most under the undefined-behaviour sanitizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "cann/host/layout.hpp"
#include "problems.hpp"

namespace moeperm::cann::host_test {
namespace {

using host::DType;
using host::TensorDesc;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kNumbers[] = {kLeast,
                                     kLeast + 1,
                                     -(std::int64_t{1} << 62),
                                     -(std::int64_t{1} << 32),
                                     -513,
                                     -2,
                                     -1,
                                     0,
                                     1,
                                     2,
                                     3,
                                     31,
                                     32,
                                     33,
                                     40,
                                     512,
                                     513,
                                     7168,
                                     16777214,
                                     16777215,
                                     (1LL << 31) - 1,
                                     1LL << 31,
                                     1LL << 32,
                                     1LL << 40,
                                     1LL << 62,
                                     kMost - 1,
                                     kMost};
constexpr DType kTypes[] = {DType::kFloat32, DType::kBFloat16, DType::kInt8, DType::kFloat64,
                            DType::kUndefined};

class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}
  std::int64_t Number() { return Of(kNumbers); }
  DType Type() { return Of(kTypes); }
  bool Chance(int in) { return engine_() % static_cast<unsigned>(in) == 0; }
  host::Shape AnyShape() {
    host::Shape shape(engine_() % 5);
    for (std::int64_t& dim : shape) dim = Number();
    return shape;
  }
  host::Platform AnyPlatform() {
    host::Platform platform;
    platform.soc = Chance(2) ? "ascend950" : "ascend910b";
    if (Chance(2)) platform.vector_cores = Number();
    if (Chance(2)) platform.ub_bytes = Chance(2) ? Number() : (engine_() % 300000);
    if (Chance(2)) platform.compiled_cores = Number();
    return platform;
  }

 private:
  template <class T, std::size_t n>
  T Of(const T (&choices)[n]) {
    return choices[engine_() % n];
  }
  std::mt19937 engine_;
};

void Disturb(Draw& draw, host::Problem* problem) {
  for (auto* const tensors : {&problem->inputs, &problem->outputs}) {
    for (std::optional<TensorDesc>& tensor : *tensors) {
      if (draw.Chance(8)) tensor.reset();
      if (tensor && draw.Chance(4)) tensor->shape = draw.AnyShape();
      if (tensor && draw.Chance(2)) {
        for (std::int64_t& dim : tensor->shape) {
          if (draw.Chance(2)) dim = draw.Number();
        }
      }
      if (tensor && draw.Chance(3)) tensor->dtype = draw.Type();
    }
    if (draw.Chance(20)) tensors->pop_back();
  }
  for (std::optional<host::Attr>& attr : problem->attrs) {
    if (draw.Chance(20)) attr.reset();
    if (attr && std::holds_alternative<std::int64_t>(*attr) && draw.Chance(2)) attr = draw.Number();
    if (attr && draw.Chance(30)) attr = std::vector<std::int64_t>{draw.Number()};
  }
  if (draw.Chance(20)) problem->attrs.pop_back();
}

// Calls everything an operator has; returns whether the tiling was accepted.
bool CallAll(const host::OpDef& op, const host::Problem& problem, const host::Platform& platform) {
  std::vector<host::Shape> shapes;
  std::vector<DType> dtypes;
  if (op.infer_shape != nullptr) (void)op.infer_shape(problem, &shapes);
  if (op.infer_dtype != nullptr) (void)op.infer_dtype(problem, &dtypes);
  host::Tiling tiling;
  const Status status = op.compute_tiling(problem, platform, &tiling);
  EXPECT_EQ(status.ok(), status.message().empty());
  EXPECT_EQ(status.ok(), !tiling.fields.empty());
  EXPECT_GE(tiling.block_dim, 0);
  EXPECT_GE(tiling.workspace_bytes, 0);
  if (status.ok()) {
    host::Layout layout;
    op.describe(problem, platform, tiling, &layout);
  }
  return status.ok();
}

TEST(Hostile, RandomProblems) {
  constexpr int kRounds = 10000;
  for (const host::OpDef& op : host::Ops()) {
    SCOPED_TRACE(op.type);
    Draw draw(20260101);
    int accepted = 0;
    for (int i = 0; i < kRounds; ++i) {
      host::CallSizes sizes;
      sizes.drop_and_pad = draw.Chance(2);
      if (draw.Chance(2)) sizes.probs = sizes.dtype;
      host::Problem problem = op.problem_of(sizes);
      Disturb(draw, &problem);
      accepted += CallAll(op, problem, draw.AnyPlatform()) ? 1 : 0;
    }
    // Not all end at the first check.
    EXPECT_GT(accepted, kRounds / 200);
  }
}

// Sizes that agree with each other, so that they get to the arithmetic.
TEST(Hostile, ConsistentGiants) {
  for (const std::int64_t tokens : kNumbers) {
    for (const std::int64_t hidden : kNumbers) {
      for (const std::int64_t experts : kNumbers) {
        host::CallSizes sizes;
        sizes.tokens = tokens;
        sizes.hidden = hidden;
        sizes.experts = experts;
        sizes.top_k = 1;
        sizes.slots = tokens;
        sizes.rows = tokens;
        for (const host::OpDef& op : host::Ops()) {
          for (const bool drop_and_pad : {false, true}) {
            sizes.drop_and_pad = drop_and_pad;
            sizes.probs.reset();
            (void)CallAll(op, op.problem_of(sizes), {});
            sizes.probs = sizes.dtype;
            (void)CallAll(op, op.problem_of(sizes), {});
          }
        }
      }
    }
  }
}

// What does not fit is said by name.
TEST(Hostile, NamesWhatOverflows) {
  Sizes sizes;
  sizes.hidden = std::int64_t{1} << 62;
  EXPECT_THAT(TilingError(kForward, ForwardProblem(sizes)), testing::HasSubstr("rowBytes"));
  sizes.hidden = 1;
  sizes.experts = kMost;
  EXPECT_THAT(TilingError(kForward, ForwardProblem(sizes)), testing::HasSubstr("formerLength"));
  host::Problem problem = ForwardProblem({});
  problem.inputs[0]->shape = {512, 1LL << 32, 1LL << 32};
  EXPECT_THAT(TilingError(kForward, problem), testing::HasSubstr("does not fit 64 bits"));
}

}  // namespace
}  // namespace moeperm::cann::host_test
