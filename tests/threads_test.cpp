// SPDX-License-Identifier: Apache-2.0
// Sizes at which work is cut into threads and results are streamed past the caches: the same bytes
// from every instruction set and thread count.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/random.hpp"

namespace moeperm::test {
namespace {

struct Size {
  std::int64_t tokens;
  std::int64_t hidden;
  std::int64_t experts;
  std::int64_t most_routes;
};

// Values are cheap bits (filling tens of MiB element by element takes longer than the tests).
Tensor LargeTensor(DType dtype, std::vector<std::int64_t> shape, Layout layout) {
  Tensor tensor(dtype, std::move(shape), layout);
  Random random(7);
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    std::uint64_t state = random.Bits();
    for (std::int64_t col = 0; col < tensor.cols(); ++col) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      tensor.SetBits(row, col, state >> 32);
    }
  }
  tensor.Freeze();
  return tensor;
}

void CheckEverywhere(const Size& size, DType dtype, bool drop_and_pad, Layout input,
                     Layout output) {
  Random random(8);
  ForwardInputs forward{
      LargeTensor(dtype, {size.tokens, size.hidden}, input),
      MapTensor(DType::kInt8, size.tokens, size.experts,
                RandomRouting(random, size.tokens, size.experts, size.most_routes)),
      Tensor(DType::kFloat32, {size.tokens, size.experts})};
  FillRandom(random, *forward.probs);
  const RoutingMap map = forward.routing_map.ToRoutingMap();
  if (drop_and_pad) {
    forward.drop_and_pad = true;
    forward.num_out_tokens =
        size.experts * (size.tokens * (size.most_routes + 1) / 2 / size.experts);
  } else {
    forward.top_k = MostRoutes(map);
    forward.num_out_tokens = static_cast<std::int64_t>(map.bytes.size()) -
                             std::count(map.bytes.begin(), map.bytes.end(), 0);
  }
  const Permuted expected = Reference(forward);

  GradInputs grad{.sorted_indices = Tensor::OfInts(
                      DType::kInt32, {static_cast<std::int64_t>(expected.sorted_indices.size())},
                      expected.sorted_indices)};
  grad.permuted_tokens_grad = LargeTensor(dtype, {forward.rows(), size.hidden}, input);
  grad.permuted_probs_grad.emplace(DType::kBFloat16, std::vector{forward.rows()});
  FillRandom(random, *grad.permuted_probs_grad);
  if (!drop_and_pad) {
    grad.routing_map = Copy(forward.routing_map);
  }
  grad.num_tokens = size.tokens;
  grad.num_experts = size.experts;
  grad.drop_and_pad = drop_and_pad;
  const ReferenceGrads expected_grads = Reference(grad);

  for (const Context& context : EveryContext()) {
    ASSERT_TRUE(CheckForward(forward, {.permuted_tokens = output}, expected, context));
    ASSERT_TRUE(CheckGrad(grad, {.tokens_grad = output}, expected_grads, context));
  }
}

class Threads : public testing::TestWithParam<std::tuple<DType, bool>> {
 protected:
  static void Check(const Size& size, Layout input, Layout output) {
    CheckEverywhere(size, std::get<0>(GetParam()), std::get<1>(GetParam()), input, output);
  }
};

TEST_P(Threads, ManyShortRows) { Check({3000, 64, 16, 7}, Layout::kDense, Layout::kDense); }

TEST_P(Threads, ManyTokensOfHiddenOne) { Check({20011, 1, 33, 5}, Layout::kDense, Layout::kDense); }

// Outputs of several MiB, rows that are no multiple of a vector.
TEST_P(Threads, LongRows) { Check({300, 7169, 8, 4}, Layout::kDense, Layout::kDense); }

TEST_P(Threads, LongRowsMisaligned) {
  Check({300, 7169, 8, 4}, Layout::kShifted, Layout::kShifted);
}

TEST_P(Threads, LongRowsWithGaps) {
  Check({300, 7168, 8, 4}, Layout::kRowGaps, Layout::kShiftedRowGaps);
}

TEST_P(Threads, StridedBothWays) {
  Check({700, 257, 8, 4}, Layout::kReversedWithGaps, Layout::kTransposed);
}

INSTANTIATE_TEST_SUITE_P(DTypes, Threads,
                         testing::Combine(testing::Values(DType::kFloat32, DType::kFloat16,
                                                          DType::kBFloat16),
                                          testing::Bool()),
                         [](const auto& test) {
                           return std::string(Name(std::get<0>(test.param))) +
                                  (std::get<1>(test.param) ? "_drop_and_pad" : "_not_padded");
                         });

// The map alone is large: the index is built by several threads.
TEST(RowMapThreads, LargeMapGivesOneIndex) {
  Random random(9);
  const auto routing = RandomRouting(random, 30011, 131, 9);
  const Tensor map = MapTensor(DType::kBool, 30011, 131, routing);
  const Tensor transposed = Copy(map, Layout::kTransposed);
  const Matrix tokens(Type::kFloat32, 30011, 0);
  const Permuted expected = moeperm_reference::Permute(
      tokens, map.ToRoutingMap(), nullptr,
      static_cast<std::int64_t>(routing.size()) - std::count(routing.begin(), routing.end(), 0), 9,
      false);
  for (const Context& context : EveryContext()) {
    for (const Tensor* one : {&map, &transposed}) {
      RowMap row_map;
      ASSERT_TRUE(RowMap::FromRoutingMap(one->in(), {}, &row_map, context).ok());
      EXPECT_TRUE(std::equal(row_map.row_tokens().begin(), row_map.row_tokens().end(),
                             expected.row_tokens.begin(), expected.row_tokens.end()))
          << Describe(context);
      EXPECT_TRUE(std::equal(row_map.expert_offsets().begin(), row_map.expert_offsets().end(),
                             expected.expert_offsets.begin(), expected.expert_offsets.end()))
          << Describe(context);
    }
  }
}

// Several host threads in one context at once.
TEST(HostThreads, ShareAContext) {
  Random random(10);
  ForwardInputs forward{LargeTensor(DType::kBFloat16, {512, 512}, Layout::kDense),
                        MapTensor(DType::kInt8, 512, 16, RandomTopK(random, 512, 16, 4)),
                        std::nullopt, 2048, 4};
  const Permuted expected = Reference(forward);
  const Context& context = ContextOf(AvailableIsas().front(), 3);
  std::vector<testing::AssertionResult> results(4, testing::AssertionFailure() << "not run");
  {
    std::vector<std::jthread> threads;
    for (testing::AssertionResult& result : results) {
      threads.emplace_back([&] {
        result = testing::AssertionSuccess();
        for (int run = 0; run < 10 && result; ++run) {
          result = CheckForward(forward, {}, expected, context);
        }
      });
    }
  }
  for (const testing::AssertionResult& result : results) {
    EXPECT_TRUE(result);
  }
}

}  // namespace
}  // namespace moeperm::test
