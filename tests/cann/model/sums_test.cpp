// SPDX-License-Identifier: Apache-2.0
// Key 0: random problems on random devices. Every element of the output is written once, the bits
// are those of the library, no unified buffer is exceeded, the traffic is what the problem needs.
#include <fmt/format.h>

#include <algorithm>

#include "support.hpp"

namespace moeperm::test {
namespace {

struct Case {
  GradShape shape;
  std::int64_t top_k = 1;
  DType dtype = DType::kFloat32;
  host::Platform platform;
};

Case RandomCase(Random& random) {
  Case result;
  result.platform = RandomPlatform(random);
  result.dtype = random.OneOf({DType::kFloat32, DType::kFloat16, DType::kBFloat16});
  result.top_k = 1 + random.Below(random.Chance(10) ? 512 : 9);
  result.shape.tokens = 1 + random.Below(random.Chance(30) ? 150 : 20);
  // Now and then a row that no unified buffer holds in one piece.
  result.shape.hidden = 1 + random.Below(random.Chance(20) ? 9000 : 600);
  if (result.top_k > 32) result.shape.hidden = 1 + random.Below(40);
  if (random.Chance(15)) {  // indices of a core that do not fit at once
    result.platform.vector_cores = 1 + random.Below(3);
    result.platform.ub_bytes = 1024 * (12 + random.Below(8)) - 256;
    result.top_k = 30 + random.Below(70);
    result.shape.tokens = 100 + random.Below(100);
    result.shape.hidden = 1 + random.Below(30);
  }
  result.shape.rows = result.shape.tokens * result.top_k;
  return result;
}

// Rows, unused slots, and rows past the end, which a forward that cut its rows leaves behind.
Tensor RandomIndices(Random& random, const Case& c) {
  std::vector<std::int64_t> indices;
  for (std::int64_t slot = 0; slot < c.shape.rows; ++slot) {
    std::int64_t index = random.Below(c.shape.rows);
    if (random.Chance(15)) index = random.OneOf<std::int64_t>({-1, -1, -1, -7, INT32_MIN});
    if (random.Chance(5)) index = random.OneOf<std::int64_t>({c.shape.rows, INT32_MAX});
    indices.push_back(index);
  }
  return Tensor::OfInts(DType::kInt32, {c.shape.rows}, indices);
}

struct Traffic {
  std::int64_t copies_in = 0;
  std::int64_t bytes_in = 0;
  std::int64_t copies_out = 0;
  std::int64_t bytes_out = 0;
};

// What a problem needs, by its shape, and how often the tiles cut it.
Traffic Needed(const Case& c, const host::Tiling& tiling, const Tensor& indices) {
  std::int64_t routed = 0;
  for (const std::int64_t index : indices.Ints()) {
    routed += index >= 0 && index < c.shape.rows ? 1 : 0;
  }
  const auto element = static_cast<std::int64_t>(SizeOf(c.dtype));
  const std::int64_t tile = tiling["hidden_splited_length"];
  const std::int64_t pieces = (c.shape.hidden + tile - 1) / tile;
  std::int64_t index_copies = 0;
  const std::int64_t cores = tiling.block_dim;
  for (std::int64_t core = 0; core < cores; ++core) {
    const bool longer = core < c.shape.tokens % cores;
    const std::int64_t rest = tiling["tokens_splited_remain"] + (longer ? 1 : 0);
    index_copies += tiling["tokens_splited_num"] + (rest > 0 ? 1 : 0);
  }
  return {.copies_in = routed * pieces + index_copies,
          .bytes_in = c.shape.rows * 4 + routed * c.shape.hidden * element,
          .copies_out = c.shape.tokens * pieces,
          .bytes_out = c.shape.tokens * c.shape.hidden * element};
}

struct Seen {
  int split_rows = 0;
  int split_tokens = 0;
  int ran = 0;
  int idle = 0;
};

void CheckCase(Random& random, const Case& c, Seen* seen) {
  const host::Tiling tiling = GradTiling(c.shape, c.dtype, c.platform);
  SCOPED_TRACE(Describe(tiling, c.platform));
  Tensor rows(c.dtype, {c.shape.rows, c.shape.hidden});
  FillRandom(random, rows);
  const Tensor indices = RandomIndices(random, c);

  const Memory row_memory = Memory::Of(rows);
  const Memory index_memory = Memory::Of(indices);
  Memory grads(static_cast<std::size_t>(c.shape.tokens * c.shape.hidden) * SizeOf(c.dtype), 0xFF);
  model::PermuteGradBuffers buffers;
  buffers.rows = row_memory.in();
  buffers.sorted_indices = index_memory.in();
  buffers.tokens_grad = grads.out();
  model::Report report;
  const Status status =
      RunPermuteGrad(tiling, HostType(c.dtype), c.platform.ub_bytes, buffers, &report);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(grads.GuardsIntact());
  EXPECT_EQ(report.ub_budget, c.platform.ub_bytes);
  EXPECT_EQ(static_cast<std::int64_t>(report.cores.size()), tiling.block_dim);

  if (tiling["hidden_splited_length"] <= 0) {
    ++seen->idle;
    EXPECT_FALSE(report.idle.empty());
    EXPECT_TRUE(grads.AllWritten(0));
    return;
  }
  ++seen->ran;
  seen->split_rows += tiling["hidden_splited_length"] < c.shape.hidden ? 1 : 0;
  seen->split_tokens += tiling["tokens_splited_num"] > 1 ? 1 : 0;
  EXPECT_EQ(report.idle, "");
  EXPECT_TRUE(grads.AllWritten(1));

  GradInputs inputs{.sorted_indices = Copy(indices)};
  inputs.permuted_tokens_grad = Copy(rows);
  inputs.num_tokens = c.shape.tokens;
  inputs.skip_rows_out_of_range = true;
  const GradOutputs expected = RunGrad(inputs);
  EXPECT_TRUE(expected.tokens_grad->RowBytesEqual(grads.bytes()));

  const model::CoreReport total = report.Total();
  const Traffic needed = Needed(c, tiling, indices);
  EXPECT_EQ(total.units, c.shape.tokens);
  EXPECT_EQ(total.copies_in, needed.copies_in);
  EXPECT_EQ(total.bytes_in, needed.bytes_in);
  EXPECT_EQ(total.copies_out, needed.copies_out);
  EXPECT_EQ(total.bytes_out, needed.bytes_out);
  for (const model::CoreReport& core : report.cores) {
    EXPECT_LE(core.ub_peak, c.platform.ub_bytes);
    EXPECT_GT(core.ub_peak, 0);
    // Tokens are spread as evenly as can be.
    EXPECT_GE(core.units, c.shape.tokens / tiling.block_dim);
    EXPECT_LE(core.units, (c.shape.tokens + tiling.block_dim - 1) / tiling.block_dim);
  }
}

TEST(ModelSums, RandomProblemsOnRandomDevices) {
  Seen seen;
#ifdef MOEPERM_UNDER_SANITIZER
  constexpr int kCases = 150;
#else
  constexpr int kCases = 500;
#endif
  for (int i = 0; i < kCases && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("case {}", i));
    Random random(static_cast<std::uint64_t>(i));
    const Case c = RandomCase(random);
    CheckCase(random, c, &seen);
  }
  // The cases are worth something only where tiles of all kinds occur.
  EXPECT_GT(seen.split_rows, kCases / 50);
  EXPECT_GT(seen.split_tokens, kCases / 50);
  EXPECT_GT(seen.ran, kCases / 2);
  EXPECT_GT(seen.idle, 0);
}

TEST(ModelSums, AFixtureOnEveryNumberOfCores) {
  const ForwardInputs forward = NotPadded(F1());
  const GradInputs grad = GradOf(forward, RunForward(forward), kF1TokensGrad);
  const Memory rows = Memory::Of(*grad.permuted_tokens_grad);
  const Memory indices = Memory::Of(grad.sorted_indices);
  const Tensor expected = Tensor::OfFloats(DType::kFloat32, {3, 2}, {17, -17, 6, -6, 40, -40});
  for (std::int64_t cores = 1; cores <= 4; ++cores) {
    host::Platform platform;
    platform.vector_cores = cores;
    const host::Tiling tiling =
        GradTiling({.rows = 6, .hidden = 2, .experts = 3, .tokens = 3}, DType::kFloat32, platform);
    Memory sums(24, 0xFF);
    model::PermuteGradBuffers buffers;
    buffers.rows = rows.in();
    buffers.sorted_indices = indices.in();
    buffers.tokens_grad = sums.out();
    model::Report report;
    const Status status =
        RunPermuteGrad(tiling, host::DType::kFloat32, platform.ub_bytes, buffers, &report);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(expected.RowBytesEqual(sums.bytes())) << cores;
    EXPECT_TRUE(sums.AllWritten(1));
    EXPECT_EQ(report.cores.size(), static_cast<std::size_t>(std::min<std::int64_t>(cores, 3)));
    // 3 tokens: the busiest of 2 cores has 2 of them.
    EXPECT_DOUBLE_EQ(report.Imbalance(), cores == 2 ? 2 * 2.0 / 3 : 1.0);
  }
}

TEST(ModelSums, FewerRowsThanTokensStartNoCore) {
  const host::Platform platform;
  const host::Tiling tiling =
      GradTiling({.rows = 2, .hidden = 8, .tokens = 5}, DType::kFloat32, platform);
  model::PermuteGradBuffers buffers;
  model::Report report;
  const Status status =
      RunPermuteGrad(tiling, host::DType::kFloat32, platform.ub_bytes, buffers, &report);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(report.cores.empty());
}

}  // namespace
}  // namespace moeperm::test
