// SPDX-License-Identifier: Apache-2.0
// The numbers of a tiling mean that every token, expert, row and hidden element is somebody's,
// once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "problems.hpp"

namespace moeperm::cann::host_test {
namespace {

using host::DType;
using host::Platform;
using host::Tiling;

struct Case {
  Sizes sizes;
  Platform platform;
};

Case DrawCase(std::mt19937& engine) {
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine);
  };
  Case drawn;
  drawn.sizes.tokens = between(0, 3) == 0 ? between(1, 50) : between(1, 20000);
  drawn.sizes.experts = between(1, 300);
  drawn.sizes.hidden = between(0, 3) == 0 ? between(1, 64) : between(1, 100000);
  const std::int64_t top_k = between(1, std::min<std::int64_t>(drawn.sizes.experts, 16));
  drawn.sizes.num_out_tokens = drawn.sizes.tokens * top_k;
  constexpr DType kTypes[] = {DType::kBFloat16, DType::kFloat16, DType::kFloat32};
  drawn.sizes.dtype = kTypes[between(0, 2)];
  drawn.sizes.probs = between(0, 1) == 1;
  drawn.platform.vector_cores = between(1, 64);
  drawn.platform.ub_bytes = between(40, 260) * 1024 - 256;
  return drawn;
}

constexpr int kCases = 3000;

TEST(Splits, GradTokensAndHidden) {
  std::mt19937 engine(1);
  for (int i = 0; i < kCases; ++i) {
    const Case drawn = DrawCase(engine);
    const Tiling t = TilingOf(kGrad, GradProblem(drawn.sizes), drawn.platform);
    ASSERT_EQ(t["hidden_splited_num"] * t["hidden_splited_length"] + t["hidden_splited_remain"],
              drawn.sizes.hidden);
    ASSERT_LT(t["hidden_splited_remain"], t["hidden_splited_length"]);
    ASSERT_EQ(t.block_dim, std::min(drawn.sizes.tokens, drawn.platform.vector_cores));
    ASSERT_EQ(t["tokens_core_length"] * t.block_dim + t["tokens_core_remain"], drawn.sizes.tokens);
    ASSERT_LT(t["tokens_core_remain"], t.block_dim);
    ASSERT_EQ(t["tokens_splited_num"] * t["tokens_splited_length"] + t["tokens_splited_remain"],
              t["tokens_core_length"]);
    // What one step holds fits the buffer.
    const std::int64_t bytes = drawn.sizes.dtype == DType::kFloat32 ? 4 : 2;
    const std::int64_t row = (t["hidden_splited_length"] + 511) / 512 * 512;
    const std::int64_t casts = bytes == 4 ? 0 : 2 * 4;
    const std::int64_t used = row * (bytes * (t["buffer_num"] + 1) + casts) +
                              t["tokens_splited_length"] * t["top_k"] * 4 + 256;
    ASSERT_LE(used, drawn.platform.ub_bytes);
    ASSERT_GE(t["buffer_num"], 2);
    ASSERT_LE(t["buffer_num"], 4);
  }
}

TEST(Splits, GradPaddedElements) {
  std::mt19937 engine(2);
  for (int i = 0; i < kCases; ++i) {
    Case drawn = DrawCase(engine);
    drawn.sizes.drop_and_pad = true;
    const Tiling t = TilingOf(kGrad, GradProblem(drawn.sizes), drawn.platform);
    const std::int64_t elements = t["capacity"] * t["expertNum"];
    ASSERT_EQ(t["capacity"], drawn.sizes.num_out_tokens / drawn.sizes.experts);
    ASSERT_EQ(t["singleCoreLen"] * (t.block_dim - 1) + t["lastCoreLen"], elements);
    ASSERT_EQ(t.block_dim,
              elements > drawn.platform.vector_cores ? drawn.platform.vector_cores : 1);
    ASSERT_GE(t["lastCoreLen"], t["singleCoreLen"]);
    ASSERT_EQ(t["hidden_size"] + t["top_k"] + t["num_out_tokens"] + t["buffer_num"], 0);
  }
}

TEST(Splits, ForwardSort) {
  std::mt19937 engine(3);
  int multi_core = 0;
  for (int i = 0; i < kCases; ++i) {
    const Case drawn = DrawCase(engine);
    const Tiling t = TilingOf(kForward, ForwardProblem(drawn.sizes), drawn.platform);
    const std::int64_t cores = t["sortNeedCoreNum"];
    multi_core += cores > 1 ? 1 : 0;
    ASSERT_GE(cores, 1);
    ASSERT_LE(cores, drawn.platform.vector_cores);
    ASSERT_EQ((cores - 1) * t["perCoreElements"] + t["lastCoreElements"],
              drawn.sizes.num_out_tokens);
    ASSERT_GT(t["lastCoreElements"], 0);
    if (cores == 1) continue;
    ASSERT_EQ(t["perCoreElements"] % 32, 0);
    ASSERT_EQ((t["perCoreLoops"] - 1) * t["perCoreLoopElements"] + t["perCoreLastLoopElements"],
              t["perCoreElements"]);
    ASSERT_EQ((t["lastCoreLoops"] - 1) * t["lastCoreLoopElements"] + t["lastCoreLastLoopElements"],
              t["lastCoreElements"]);
    ASSERT_LE(t["perCoreLoopElements"], t["oneLoopMaxElements"]);
  }
  EXPECT_GT(multi_core, kCases / 10);
}

TEST(Splits, ForwardRowCopy) {
  std::mt19937 engine(4);
  int split_rows = 0;
  for (int i = 0; i < kCases; ++i) {
    const Case drawn = DrawCase(engine);
    const Tiling t = TilingOf(kForward, ForwardProblem(drawn.sizes), drawn.platform);
    ASSERT_EQ(t["frontCores"] * t["frontCoreTokens"] + t["tailCores"] * t["tailCoreTokens"],
              drawn.sizes.tokens);
    ASSERT_EQ(t["frontCores"] + t["tailCores"], t["copyNeedCoreNum"]);
    ASSERT_LE(t["copyNeedCoreNum"], drawn.platform.vector_cores);
    ASSERT_EQ((t["frontLoops"] - 1) * t["tokensPerLoad"] + t["frontLastTokens"],
              t["frontCoreTokens"]);
    ASSERT_EQ((t["frontLastCopies"] - 1) * t["rowsPerCopy"] + t["frontLastRows"],
              t["frontLastTokens"]);
    ASSERT_EQ((t["tailLoops"] - 1) * t["tokensPerLoad"] + t["tailLastTokens"], t["tailCoreTokens"]);
    if (t.key >= 3) {
      ++split_rows;
      ASSERT_EQ((t["moveTimes"] - 1) * t["moveElements"] + t["lastMoveElements"],
                drawn.sizes.hidden);
      ASSERT_GT(t["lastMoveElements"], 0);
      ASSERT_LE(t["lastMoveElements"], t["moveElements"]);
    }
    ASSERT_LE(2 * t["tokenUB"] + t["indicesUB"], drawn.platform.ub_bytes);
    ASSERT_GE(t.block_dim, t["copyNeedCoreNum"]);
  }
  EXPECT_GT(split_rows, kCases / 10);
}

TEST(Splits, ForwardMaskedSelect) {
  std::mt19937 engine(5);
  for (int i = 0; i < kCases; ++i) {
    const Case drawn = DrawCase(engine);
    const Tiling t = TilingOf(kForward, ForwardProblem(drawn.sizes), drawn.platform);
    ASSERT_EQ(t["formerNum"] * t["formerLength"] + t["tailNum"] * t["tailLength"],
              drawn.sizes.tokens * drawn.sizes.experts);
    ASSERT_EQ(t["formerNum"] + t["tailNum"], t["needCoreNum"]);
    // Whole experts.
    ASSERT_EQ(t["formerLength"] % drawn.sizes.tokens, 0);
    ASSERT_EQ(t["tailLength"] % drawn.sizes.tokens, 0);
    ASSERT_EQ((t["formertileNum"] - 1) * t["formertileLength"] + t["formerlasttileLength"],
              t["formerLength"]);
    if (t["tailNum"] > 0) {
      ASSERT_EQ((t["tailtileNum"] - 1) * t["tailtileLength"] + t["taillasttileLength"],
                t["tailLength"]);
    }
  }
}

TEST(Splits, ForwardPaddedExperts) {
  std::mt19937 engine(6);
  for (int i = 0; i < kCases; ++i) {
    Case drawn = DrawCase(engine);
    drawn.sizes.drop_and_pad = true;
    const Tiling t = TilingOf(kForward, ForwardProblem(drawn.sizes), drawn.platform);
    ASSERT_EQ(t["frontCoreNum"] * t["frontcoreTask"] + t["tailCoreNum"] * t["tailcoreTask"],
              drawn.sizes.experts);
    ASSERT_EQ(t.block_dim, t["frontCoreNum"] + t["tailCoreNum"]);
    ASSERT_EQ(t["sortNeedCoreNum"], t.block_dim);
    ASSERT_EQ((t["perCoreLoops"] - 1) * t["perCoreLoopElements"] + t["perCoreLastLoopElements"],
              drawn.sizes.tokens);
  }
}

// Fewer rows than tokens: no slots, no cores, success.
TEST(Splits, GradWithoutSlots) {
  Sizes sizes;
  sizes.num_out_tokens = sizes.tokens - 1;
  const Tiling t = TilingOf(kGrad, GradProblem(sizes));
  EXPECT_EQ(t["top_k"], 0);
  EXPECT_EQ(t.block_dim, 0);
  EXPECT_EQ(t["tokens_core_length"], 0);
}

// Exactly as many elements as cores still go to one.
TEST(Splits, GradPaddedNeedsMoreElementsThanCores) {
  Sizes sizes;
  sizes.experts = 8;
  sizes.num_out_tokens = 40;
  sizes.drop_and_pad = true;
  EXPECT_EQ(TilingOf(kGrad, GradProblem(sizes)).block_dim, 1);
  sizes.num_out_tokens = 48;
  EXPECT_EQ(TilingOf(kGrad, GradProblem(sizes)).block_dim, 40);
  sizes.experts = 0;
  EXPECT_EQ(TilingOf(kGrad, GradProblem(sizes)).block_dim, 1);
}

// Not tokens_num but what the rows divide into.
TEST(Splits, GradRowsThatTokensDoNotDivide) {
  Sizes sizes;
  sizes.tokens = 4;
  sizes.num_out_tokens = 10;
  EXPECT_EQ(TilingOf(kGrad, GradProblem(sizes)).block_dim, 5);
}

TEST(Keys, ForwardPaddedOnAscend950) {
  Sizes sizes;
  sizes.drop_and_pad = true;
  sizes.hidden = 620;
  sizes.tokens = 20;
  sizes.num_out_tokens = 20;
  Platform platform;
  const auto key = [&] { return TilingOf(kForward, ForwardProblem(sizes), platform).key; };
  EXPECT_EQ(key(), 9);
  platform.soc = "ascend950";
  EXPECT_EQ(key(), 9);
  sizes.hidden = 619;
  EXPECT_EQ(key(), 19);
  sizes.hidden = 620;
  sizes.num_out_tokens = 19;
  EXPECT_EQ(key(), 19);
}

// The number of compiled cores is the forward's own; the gradient asks the platform.
TEST(Platforms, CompiledCores) {
  Platform platform;
  platform.compiled_cores = 7;
  EXPECT_EQ(TilingOf(kForward, ForwardProblem({}), platform).block_dim, 7);
  EXPECT_EQ(TilingOf(kGrad, GradProblem({}), platform).block_dim, 40);
  platform.compiled_cores = 0;
  EXPECT_EQ(TilingOf(kForward, ForwardProblem({}), platform).block_dim, 40);
}

}  // namespace
}  // namespace moeperm::cann::host_test
