// SPDX-License-Identifier: Apache-2.0
// What a tiling refuses, and what it says then: the argument and the value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "problems.hpp"

namespace moeperm::cann::host_test {
namespace {

using host::TensorDesc;
using testing::HasSubstr;

TEST(GradTilingRefuses, TopK) {
  Sizes sizes;
  sizes.tokens = 2;
  sizes.num_out_tokens = 1024;
  (void)TilingOf(kGrad, GradProblem(sizes));
  sizes.num_out_tokens = 1026;
  EXPECT_THAT(TilingError(kGrad, GradProblem(sizes)), HasSubstr("top_k = 513 "));
  // Padded, there is no limit.
  sizes.drop_and_pad = true;
  (void)TilingOf(kGrad, GradProblem(sizes));
}

TEST(GradTilingRefuses, WhatIsMissing) {
  for (std::size_t i = 0; i < 3; ++i) {
    host::Problem problem = GradProblem({});
    problem.attrs[i] = std::nullopt;
    const std::string name(host::FindOp(kGrad)->attrs[i].name);
    EXPECT_THAT(TilingError(kGrad, problem), HasSubstr("attribute " + name + " is missing"));
    problem.attrs[i] = std::vector<std::int64_t>{1};
    EXPECT_THAT(TilingError(kGrad, problem), HasSubstr("attribute " + name + " is not a"));
  }
  host::Problem problem = GradProblem({});
  problem.inputs[0] = std::nullopt;
  EXPECT_THAT(TilingError(kGrad, problem), HasSubstr("permuted_token_output_grad is missing"));
  problem.inputs[0] = TensorDesc{host::DType::kFloat16, {5}};
  EXPECT_THAT(TilingError(kGrad, problem), HasSubstr("has shape [5]"));
  EXPECT_THAT(TilingError(kGrad, {}), HasSubstr("padded_mode"));
}

TEST(GradTilingRefuses, NegativeNumbers) {
  host::Problem problem = GradProblem({});
  problem.attrs[0] = std::int64_t{-3};
  EXPECT_THAT(TilingError(kGrad, problem), HasSubstr("num_experts = -3"));
  problem = GradProblem({});
  problem.attrs[1] = std::int64_t{-1};
  EXPECT_THAT(TilingError(kGrad, problem), HasSubstr("tokens_num = -1"));
  problem = GradProblem({});
  problem.inputs[0]->shape = {1024, -7};
  EXPECT_THAT(TilingError(kGrad, problem), HasSubstr("dimension 1 is negative (-7)"));
}

TEST(TilingRefuses, ImpossiblePlatforms) {
  for (const auto& [op, problem] :
       {std::pair{kGrad, GradProblem({})}, std::pair{kForward, ForwardProblem({})}}) {
    host::Platform platform;
    platform.vector_cores = 0;
    EXPECT_THAT(TilingError(op, problem, platform), HasSubstr("0 vector cores"));
    platform = {};
    platform.compiled_cores = -4;
    EXPECT_THAT(TilingError(op, problem, platform), HasSubstr("-4 vector cores"));
    platform = {};
    platform.vector_cores = std::int64_t{1} << 31;
    EXPECT_THAT(TilingError(op, problem, platform), HasSubstr("2147483648 vector cores"));
    platform = {};
    platform.ub_bytes = -1;
    EXPECT_THAT(TilingError(op, problem, platform), HasSubstr("-1 bytes"));
    platform.ub_bytes = std::int64_t{1} << 62;
    EXPECT_THAT(TilingError(op, problem, platform), HasSubstr("4611686018427387904 bytes"));
  }
}

// A call that is fine but for one thing.
TEST(ForwardTilingRefuses, WrongShapes) {
  const Sizes sizes;  // 512 tokens, 64 experts, hidden 1024, 2 slots
  const auto error = [&](auto&& change) {
    host::Problem problem = ForwardProblem(sizes);
    change(problem);
    return TilingError(kForward, problem);
  };
  using P = host::Problem;
  EXPECT_THAT(error([](P& p) { p.inputs[1] = std::nullopt; }), HasSubstr("routing_map is missing"));
  EXPECT_THAT(error([](P& p) { p.inputs[0] = std::nullopt; }), HasSubstr("tokens is missing"));
  EXPECT_THAT(error([](P& p) { p.inputs[1]->shape = {64}; }), HasSubstr("has shape [64]"));
  EXPECT_THAT(error([](P& p) { p.inputs[1]->shape = {-64, 512}; }), HasSubstr("(-64)"));
  EXPECT_THAT(error([](P& p) {
                p.inputs[1]->shape = {64, 511};
              }),
              HasSubstr("dimension 0 is 512 but should be 511"));
  EXPECT_THAT(error([](P& p) { p.inputs[1]->shape = {0, 512}; }), HasSubstr("no experts"));
  EXPECT_THAT(error([](P& p) { p.inputs[0]->shape = {}; }), HasSubstr("tokens has shape []"));
  EXPECT_THAT(error([](P& p) { p.outputs[0] = std::nullopt; }),
              HasSubstr("permute_tokens is missing"));
  EXPECT_THAT(error([](P& p) { p.outputs[1] = std::nullopt; }),
              HasSubstr("permute_probs is missing"));
  EXPECT_THAT(error([](P& p) { p.outputs[0]->shape = {1024}; }), HasSubstr("[1024]"));
  EXPECT_THAT(error([](P& p) { p.outputs[1]->shape = {1024, 1}; }), HasSubstr("[1024, 1]"));
  EXPECT_THAT(error([](P& p) { p.outputs[0]->shape = {1024, 8}; }), HasSubstr("rows of 8 "));
  EXPECT_THAT(error([](P& p) {
                p.outputs[0]->shape = {1023, 1024};
              }),
              HasSubstr("dimension 0 is 1023 but should be 1024"));
  EXPECT_THAT(error([](P& p) { p.attrs[0] = std::int64_t{-8}; }), HasSubstr("= -8"));
  EXPECT_THAT(error([](P& p) { p.attrs[1] = std::nullopt; }), HasSubstr("drop_and_pad"));
  EXPECT_THAT(error([](P& p) { p.attrs[0] = std::int64_t{513 * 512}; }),
              HasSubstr("top_k = 513 (num_out_tokens / tokens)"));
}

TEST(ForwardTilingRefuses, TooManyTokens) {
  Sizes sizes;
  sizes.tokens = 16777214;
  sizes.experts = 1;
  sizes.num_out_tokens = sizes.tokens;
  for (const bool drop_and_pad : {false, true}) {
    sizes.drop_and_pad = drop_and_pad;
    (void)TilingOf(kForward, ForwardProblem(sizes));
    Sizes more = sizes;
    more.num_out_tokens = ++more.tokens;
    EXPECT_THAT(TilingError(kForward, ForwardProblem(more)),
                HasSubstr("= 16777215, but it has to be below 16777215"));
  }
}

// Shapes of the output are not looked at in drop-and-pad mode, nor is an output for probs needed
// that are not there.
TEST(ForwardTilingAccepts, WhatTheOriginalDoes) {
  Sizes sizes;
  sizes.drop_and_pad = true;
  host::Problem problem = ForwardProblem(sizes);
  problem.outputs[0]->shape = {1, 1};
  (void)TilingOf(kForward, problem);
  sizes.drop_and_pad = false;
  sizes.probs = false;
  problem = ForwardProblem(sizes);
  problem.outputs[1] = std::nullopt;
  (void)TilingOf(kForward, problem);
}

}  // namespace
}  // namespace moeperm::cann::host_test
