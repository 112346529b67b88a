// SPDX-License-Identifier: Apache-2.0
// Drop-and-pad: key 1000 for the probs, the sorted addition for the tokens.
#include <fmt/format.h>

#include "support.hpp"

namespace moeperm::test {
namespace {

struct Case {
  GradShape shape;
  DType dtype = DType::kFloat32;
  DType probs_dtype = DType::kFloat32;
  host::Platform platform;
};

Case RandomCase(Random& random) {
  Case result;
  result.platform = RandomPlatform(random);
  result.dtype = random.OneOf({DType::kFloat32, DType::kFloat16, DType::kBFloat16});
  result.probs_dtype = random.OneOf({DType::kFloat32, DType::kFloat16, DType::kBFloat16});
  result.shape.padded = true;
  result.shape.tokens = 1 + random.Below(60);
  result.shape.experts = 1 + random.Below(20);
  result.shape.hidden = 1 + random.Below(random.Chance(30) ? 9000 : 300);
  result.shape.rows = result.shape.experts * (1 + random.Below(result.shape.tokens));
  if (result.shape.hidden > 300) result.shape.rows = result.shape.experts;
  return result;
}

// Tokens of an expert's rows are distinct, as the forward gives them, unless `repeat`.
std::vector<std::int32_t> RandomTokens(Random& random, const GradShape& shape, bool repeat) {
  const std::int64_t capacity = shape.rows / shape.experts;
  std::vector<std::int32_t> result;
  for (std::int64_t expert = 0; expert < shape.experts; ++expert) {
    std::int64_t left = capacity;
    for (std::int64_t token = 0; token < shape.tokens && !repeat; ++token) {
      if (random.Below(shape.tokens - token) >= left) continue;
      --left;
      result.push_back(static_cast<std::int32_t>(token));
    }
    for (std::int64_t i = 0; i < capacity && repeat; ++i) {
      result.push_back(static_cast<std::int32_t>(random.Below(shape.tokens)));
    }
  }
  return result;
}

void CheckProbs(const Case& c, const Memory& probs, const Memory& indices, bool repeat,
                const Tensor& expected) {
  const host::Tiling tiling = GradTiling(c.shape, c.dtype, c.platform);
  SCOPED_TRACE(Describe(tiling, c.platform));
  ASSERT_EQ(tiling.key, 1000);
  const std::size_t element = SizeOf(c.probs_dtype);
  Memory grads(static_cast<std::size_t>(c.shape.tokens * c.shape.experts) * element, 0);
  model::PermuteGradBuffers buffers;
  buffers.probs = probs.in();
  buffers.sorted_indices = indices.in();
  buffers.probs_grad = grads.out();
  model::Report report;
  const Status status =
      RunPermuteGrad(tiling, HostType(c.probs_dtype), c.platform.ub_bytes, buffers, &report);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(grads.GuardsIntact());
  EXPECT_TRUE(expected.RowBytesEqual(grads.bytes()));
  std::int64_t written = 0;
  for (const std::uint8_t count : grads.write_counts()) {
    EXPECT_LE(count, repeat ? 255 : 1);
    written += count;
  }
  const auto bytes = static_cast<std::int64_t>(element);
  const model::CoreReport total = report.Total();
  EXPECT_EQ(written, c.shape.rows * bytes);
  EXPECT_EQ(total.units, c.shape.rows);
  EXPECT_EQ(total.bytes_in, c.shape.rows * (4 + bytes));
  EXPECT_EQ(total.bytes_out, c.shape.rows * bytes);
  EXPECT_LE(total.ub_peak, c.platform.ub_bytes);
}

void CheckTokens(const Case& c, const Memory& rows, const std::vector<std::int32_t>& tokens,
                 const Tensor& expected, int* split) {
  host::Tiling tiling;
  const Status made = model::IndexAddTiling({c.shape.tokens, c.shape.rows, c.shape.hidden},
                                            HostType(c.dtype), c.platform, &tiling);
  ASSERT_TRUE(made.ok()) << made.message();
  SCOPED_TRACE(Describe(tiling, c.platform));
  ASSERT_EQ(tiling.fields.size(), 22U);
  const model::SortedIndices sorted = model::SortIndices(tokens);
  const Memory values = Memory::Of(sorted.values);
  const Memory positions = Memory::Of(sorted.positions);
  const std::size_t row_bytes = static_cast<std::size_t>(c.shape.hidden) * SizeOf(c.dtype);
  Memory grads(static_cast<std::size_t>(c.shape.tokens) * row_bytes, 0);
  model::IndexAddBuffers buffers;
  buffers.value = rows.in();
  buffers.sorted_indices = values.in();
  buffers.positions = positions.in();
  buffers.var = grads.out();
  model::Report report;
  const Status status =
      RunIndexAdd(tiling, HostType(c.dtype), c.platform.ub_bytes, buffers, &report);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(grads.GuardsIntact());
  if (tiling["maxSize"] == 0) {
    EXPECT_FALSE(report.idle.empty());
    EXPECT_TRUE(grads.AllWritten(0));
    return;
  }
  *split += tiling["eachLoop"] > 1 ? 1 : 0;
  EXPECT_TRUE(expected.RowBytesEqual(grads.bytes()));
  const model::CoreReport total = report.Total();
  EXPECT_EQ(total.units, c.shape.rows);
  EXPECT_LE(total.ub_peak, c.platform.ub_bytes);
  // A row that some index names is written once, the others never.
  std::vector<bool> named(static_cast<std::size_t>(c.shape.tokens));
  std::int64_t distinct = 0;
  for (const std::int32_t token : tokens) {
    if (!named[static_cast<std::size_t>(token)]) ++distinct;
    named[static_cast<std::size_t>(token)] = true;
  }
  for (std::size_t i = 0; i < grads.write_counts().size(); ++i) {
    ASSERT_EQ(grads.write_counts()[i], named[i / row_bytes] ? 1 : 0) << i;
  }
  EXPECT_EQ(total.bytes_out, distinct * static_cast<std::int64_t>(row_bytes));
}

TEST(ModelDropPad, RandomProblemsOnRandomDevices) {
#ifdef MOEPERM_UNDER_SANITIZER
  constexpr int kCases = 100;
#else
  constexpr int kCases = 600;
#endif
  int split = 0;
  for (int i = 0; i < kCases && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("case {}", i));
    Random random(static_cast<std::uint64_t>(i));
    const Case c = RandomCase(random);
    Tensor rows(c.dtype, {c.shape.rows, c.shape.hidden});
    Tensor probs(c.probs_dtype, {c.shape.rows});
    FillRandom(random, rows);
    FillRandom(random, probs);
    const bool repeat = random.Chance(30);
    const std::vector<std::int32_t> tokens = RandomTokens(random, c.shape, repeat);

    GradInputs inputs{.sorted_indices = Tensor::OfInts(DType::kInt32, {c.shape.rows},
                                                       {tokens.begin(), tokens.end()})};
    inputs.permuted_tokens_grad = Copy(rows);
    inputs.permuted_probs_grad = Copy(probs);
    inputs.num_tokens = c.shape.tokens;
    inputs.num_experts = c.shape.experts;
    inputs.drop_and_pad = true;
    const GradOutputs expected = RunGrad(inputs);
    CheckProbs(c, Memory::Of(probs), Memory::Of(tokens), repeat, *expected.probs_grad);
    CheckTokens(c, Memory::Of(rows), tokens, *expected.tokens_grad, &split);
  }
  EXPECT_GT(split, 0);
}

TEST(ModelDropPad, TheFixture) {
  const std::vector<std::int32_t> tokens = {0, 1, 1, 0};
  const Memory indices = Memory::Of(tokens);
  const Memory rows = Memory::Of(Tensor::OfFloats(DType::kFloat32, {4, 1}, {1, 2, 4, 8}));
  const Memory probs = Memory::Of(Tensor::OfFloats(DType::kFloat32, {4}, {1, 2, 3, 4}));
  const GradShape shape{.rows = 4, .hidden = 1, .experts = 2, .tokens = 4, .padded = true};
  const Tensor probs_grad = Tensor::OfFloats(DType::kFloat32, {4, 2}, {1, 4, 2, 3, 0, 0, 0, 0});
  const Tensor tokens_grad = Tensor::OfFloats(DType::kFloat32, {4, 1}, {9, 6, 0, 0});
  int split = 0;
  for (std::int64_t cores = 1; cores <= 5; ++cores) {
    Case c{.shape = shape, .platform = {}};
    c.platform.vector_cores = cores;
    CheckProbs(c, probs, indices, false, probs_grad);
    CheckTokens(c, rows, tokens, tokens_grad, &split);
  }
}

TEST(ModelDropPad, ManyIndicesAreStagedInRounds) {
  // One token has more rows than are staged at once; its sum crosses every core.
  Case c{.shape = {.rows = 5000, .hidden = 3, .experts = 1, .tokens = 3, .padded = true},
         .platform = {}};
  c.platform.vector_cores = 3;
  c.dtype = DType::kBFloat16;
  std::vector<std::int32_t> tokens(5000, 1);
  tokens[4] = 0;
  tokens[4990] = 2;
  Tensor rows(c.dtype, {5000, 3});
  Random random(5);
  FillSmallIntegers(random, rows);
  GradInputs inputs{.sorted_indices =
                        Tensor::OfInts(DType::kInt32, {5000}, {tokens.begin(), tokens.end()})};
  inputs.permuted_tokens_grad = Copy(rows);
  inputs.num_tokens = 3;
  inputs.drop_and_pad = true;
  const GradOutputs expected = RunGrad(inputs);
  int split = 0;
  CheckTokens(c, Memory::Of(rows), tokens, *expected.tokens_grad, &split);
}

TEST(ModelDropPad, ALoneNegativeZeroBecomesZero) {
  Case c{.shape = {.rows = 1, .hidden = 1, .experts = 1, .tokens = 1, .padded = true},
         .platform = {}};
  int split = 0;
  CheckTokens(c, Memory::Of(Tensor::OfFloats(DType::kFloat32, {1, 1}, {-0.0F})), {0},
              Tensor::OfFloats(DType::kFloat32, {1, 1}, {0.0F}), &split);
}

}  // namespace
}  // namespace moeperm::test
