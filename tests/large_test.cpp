// SPDX-License-Identifier: Apache-2.0
// Inputs of gigabytes that take little memory: what is only read are zero pages.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/mapping.hpp"

namespace moeperm::test {
namespace {

constexpr std::int64_t kTokens = 16777217;
constexpr std::int64_t kExperts = 128;

#if defined(MOEPERM_UNDER_SANITIZER)
#define MOEPERM_SKIP_UNDER_SANITIZER \
  GTEST_SKIP() << "the shadow of gigabytes would need gigabytes of memory"
#else
#define MOEPERM_SKIP_UNDER_SANITIZER static_cast<void>(0)
#endif

// token * experts passes 2^31: the one route is the last element of the map.
TEST(Probes, P005_MapPast31Bits) {
  MOEPERM_SKIP_UNDER_SANITIZER;
  Mapping map(kTokens * kExperts);
  map.AdviseHugePages();  // of zeros: still no memory
  map.as<std::int8_t>()[map.bytes() - 1] = 1;
  const Mapping probs(kTokens * kExperts * 2);
  probs.as<std::uint16_t>()[kTokens * kExperts - 1] = 0x3C01;
  const Mapping tokens(kTokens * 4);
  tokens.as<float>()[kTokens - 1] = 5;
  const Mapping indices(kTokens * 4);
  float permuted_token = -1;
  std::uint16_t permuted_prob = 0xFFFF;
  std::int64_t counts[kExperts];

  PermuteWithRoutingMapArgs args;
  args.tokens = ConstTensorView(tokens.as<const float>(), {kTokens, 1});
  args.routing_map = ConstTensorView(map.as<const std::int8_t>(), {kTokens, kExperts});
  args.probs = ConstTensorView(probs.as<const Float16>(), {kTokens, kExperts});
  args.num_out_tokens = 1;
  args.top_k = 1;
  args.permuted_tokens = TensorView(&permuted_token, {1, 1});
  args.permuted_probs = TensorView(&permuted_prob, DType::kFloat16, std::vector<std::int64_t>{1});
  args.sorted_indices = TensorView(indices.as<std::int32_t>(), {kTokens});
  args.tokens_per_expert = TensorView(counts, {kExperts});
  const Status status = PermuteWithRoutingMap(args);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(permuted_token, 5);
  EXPECT_EQ(permuted_prob, 0x3C01);
  EXPECT_EQ(std::count(counts, counts + kExperts - 1, 0), kExperts - 1);
  EXPECT_EQ(counts[kExperts - 1], 1);
  const auto* slots = indices.as<const std::int32_t>();
  EXPECT_EQ(std::count(slots, slots + kTokens - 1, -1), kTokens - 1);
  EXPECT_EQ(slots[kTokens - 1], 0);
}

// The widest row there is: one token of 2^30 + 8 elements, read by a gradient whose output is a
// column slice would still be written whole; so only the row map and the shapes are asked here,
// and the values in the nightly tests.
TEST(Probes, P004_InferOfRowsPast31Bits) {
  constexpr std::int64_t kHidden = 1073741832;
  const Float16 nothing{};
  const std::int8_t map[] = {1, 1, 1};
  PermuteWithRoutingMapArgs args;
  args.tokens = ConstTensorView(&nothing, {1, kHidden}, {0, 0});
  args.routing_map = ConstTensorView(map, {1, 3});
  args.num_out_tokens = 3;
  args.top_k = 3;
  PermuteWithRoutingMapSpecs specs;
  const Status status = InferPermuteWithRoutingMap(args, &specs);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(specs.permuted_tokens, (TensorSpec{DType::kFloat16, {3, kHidden}}));
}

}  // namespace
}  // namespace moeperm::test
