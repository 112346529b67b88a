// SPDX-License-Identifier: Apache-2.0
// Every refusal of the forward: the code, the argument named, the values told, nothing written
// outside the outputs; infer refuses what inputs and attributes alone can tell.
#include "support/fixtures.hpp"
#include "support/refusal.hpp"

namespace moeperm::test {
namespace {

using Args = PermuteWithRoutingMapArgs;
using Shape = std::vector<std::int64_t>;
constexpr std::int64_t kHuge = std::int64_t{1} << 62;

// Five tokens of hidden 7, three experts, six routes, two slots.
ForwardInputs Valid() {
  ForwardInputs inputs = NotPadded({.num_experts = 3,
                                    .map = {1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1},
                                    .hidden = 7,
                                    .tokens = std::vector<float>(35, 1),
                                    .probs = std::vector<float>(15, 1),
                                    .probs_dtype = DType::kFloat16});
  EXPECT_EQ(inputs.num_out_tokens, 6);
  EXPECT_EQ(inputs.top_k, 2);
  return inputs;
}

const Refusal<Args> kRefusals[] = {
    {"TokensOfRank3",
     [](Args& a) {
       a.tokens = Reshaped(a.tokens, {5, 7, 1});
     },
     {"tokens", "3", "2"}},
    {"TokensOfRank5",
     [](Args& a) {
       a.tokens = Reshaped(a.tokens, {5, 7, 1, 1, 1});
     },
     {"tokens"}},
    {"StridesNotOfTheShape",
     [](Args& a) {
       a.tokens = Restrided(a.tokens, {5, 7}, {7});
     },
     {"tokens"}},
    {"TokensOfInts",
     [](Args& a) { a.tokens = Retyped(a.tokens, DType::kInt32); },
     {"tokens has dtype int32 but needs float32, float16 or bfloat16"}},
    {"TokensOfNoDType",
     [](Args& a) { a.tokens = Retyped(a.tokens, static_cast<DType>(99)); },
     {"tokens has an unknown dtype (99)"}},
    {"TokensOfInvalidDType",
     [](Args& a) { a.tokens = Retyped(a.tokens, DType::kInvalid); },
     {"tokens has no dtype"}},
    {"TokensDefaultView", [](Args& a) { a.tokens = {}; }, {"tokens is missing"}},
    {"NegativeTokens",
     [](Args& a) {
       a.tokens = Reshaped(a.tokens, {-5, 7});
     },
     {"tokens", "-5"}},
    {"NegativeHidden",
     [](Args& a) {
       a.tokens = Reshaped(a.tokens, {5, -7});
     },
     {"tokens", "-7"}},
    {"TokensOverflow",
     [](Args& a) {
       a.tokens = Reshaped(a.tokens, {5, kHuge});
     },
     {"tokens", "4611686018427387904"}},
    {"TokensStrideOverflow",
     [](Args& a) {
       a.tokens = Restrided(a.tokens, {5, 7}, {kHuge, 1});
     },
     {"tokens"}},
    {"MapOfRank1",
     [](Args& a) { a.routing_map = Reshaped(a.routing_map, {15}); },
     {"routing_map", "1", "2"}},
    {"MapOfFloats",
     [](Args& a) { a.routing_map = Retyped(a.tokens, DType::kFloat32); },
     {"routing_map", "float32"}},
    {"MapOfOtherTokens",
     [](Args& a) {
       a.routing_map = Reshaped(a.routing_map, {4, 3});
     },
     {"routing_map", "4", "5"}},
    {"MapOfNegativeExperts",
     [](Args& a) {
       a.routing_map = Reshaped(a.routing_map, {5, -3});
     },
     {"routing_map", "-3"}},
    {"ProbsOfInts",
     [](Args& a) { a.probs = Retyped(*a.probs, DType::kInt64); },
     {"probs", "int64"}},
    {"ProbsOfOtherTokens",
     [](Args& a) {
       a.probs = Reshaped(*a.probs, {6, 3});
     },
     {"probs", "6", "5"}},
    {"ProbsOfOtherExperts",
     [](Args& a) {
       a.probs = Reshaped(*a.probs, {5, 2});
     },
     {"probs", "2", "3"}},
    {"NegativeRows",
     [](Args& a) { a.num_out_tokens = -2147483642; },
     {"num_out_tokens", "-2147483642"}},
    {"RowsPast32Bits",
     [](Args& a) { a.num_out_tokens = (std::int64_t{1} << 32) + 6; },
     {"num_out_tokens", "4294967302"}},
    {"NegativeTopK", [](Args& a) { a.top_k = -1; }, {"top_k", "-1"}},
    {"TopKPast63Bits", [](Args& a) { a.top_k = kHuge; }, {"top_k", "4611686018427387904"}},
    {"TopKTooSmall",
     [](Args& a) {
       a.top_k = 1;
       a.sorted_indices = Reshaped(a.sorted_indices, {5});
     },
     {"routing_map[0]", "2 routes", "top_k = 1"},
     Code::kInvalidArgument,
     false},
    {"CapacityAboveTokens",
     [](Args& a) {
       a.drop_and_pad = true;
       a.num_out_tokens = 18;
     },
     {"capacity", "6", "5"}},
    {"NullTokens",
     [](Args& a) { a.tokens = AtAddress(a.tokens, nullptr); },
     {"tokens", "null"},
     Code::kInvalidArgument,
     false},
    {"NullMap",
     [](Args& a) { a.routing_map = AtAddress(a.routing_map, nullptr); },
     {"routing_map", "null"},
     Code::kInvalidArgument,
     false},
    {"NullProbs",
     [](Args& a) { a.probs = AtAddress(*a.probs, nullptr); },
     {"probs", "null"},
     Code::kInvalidArgument,
     false},
    {"TokensBetweenElements",
     [](Args& a) { a.tokens = OneByteOn(a.tokens); },
     {"tokens", "4"},
     Code::kInvalidArgument,
     false},

    {"ProbsAlone",
     [](Args& a) { a.permuted_probs.reset(); },
     {"permuted_probs is missing: it is needed where probs are given"},
     Code::kInvalidArgument,
     false},
    {"PermutedProbsAlone",
     [](Args& a) { a.probs.reset(); },
     {"permuted_probs", "given"},
     Code::kInvalidArgument,
     false},
    {"RowsOfPermutedTokens",
     [](Args& a) {
       a.permuted_tokens = Reshaped(a.permuted_tokens, {5, 7});
     },
     {"permuted_tokens", "5", "6"},
     Code::kInvalidArgument,
     false},
    {"HiddenOfPermutedTokens",
     [](Args& a) {
       a.permuted_tokens = Reshaped(a.permuted_tokens, {6, 6});
     },
     {"permuted_tokens", "6", "7"},
     Code::kInvalidArgument,
     false},
    {"DTypeOfPermutedTokens",
     [](Args& a) { a.permuted_tokens = Retyped(a.permuted_tokens, DType::kFloat16); },
     {"permuted_tokens", "float16", "float32"},
     Code::kInvalidArgument,
     false},
    {"RankOfPermutedTokens",
     [](Args& a) { a.permuted_tokens = Reshaped(a.permuted_tokens, {42}); },
     {"permuted_tokens", "1", "2"},
     Code::kInvalidArgument,
     false},
    {"NullPermutedTokens",
     [](Args& a) { a.permuted_tokens = AtAddress(a.permuted_tokens, nullptr); },
     {"permuted_tokens", "null"},
     Code::kInvalidArgument,
     false},
    {"RowsOfPermutedProbs",
     [](Args& a) { a.permuted_probs = Reshaped(*a.permuted_probs, {5}); },
     {"permuted_probs", "5", "6"},
     Code::kInvalidArgument,
     false},
    {"DTypeOfPermutedProbs",
     [](Args& a) { a.permuted_probs = Retyped(*a.permuted_probs, DType::kBFloat16); },
     {"permuted_probs", "bfloat16", "float16"},
     Code::kInvalidArgument,
     false},
    {"LengthOfSortedIndices",
     [](Args& a) { a.sorted_indices = Reshaped(a.sorted_indices, {9}); },
     {"sorted_indices.shape[0] = 9 but must be 10: 5 tokens of top_k = 2 slots each"},
     Code::kInvalidArgument,
     false},
    {"TopKNotSet",
     [](Args& a) { a.top_k = 0; },
     {"sorted_indices.shape[0] = 10 but must be 0: 5 tokens of top_k = 0 slots each"},
     Code::kInvalidArgument,
     false},
    {"RowsOfDropAndPad",
     [](Args& a) {
       a.drop_and_pad = true;
       a.num_out_tokens = 8;
       a.permuted_tokens = Reshaped(a.permuted_tokens, {8, 7});
     },
     {"permuted_tokens.shape[0] = 8 but must be 6", "down to a multiple of the experts"},
     Code::kInvalidArgument,
     false},
    {"DTypeOfSortedIndices",
     [](Args& a) { a.sorted_indices = Retyped(a.sorted_indices, DType::kFloat32); },
     {"sorted_indices", "float32"},
     Code::kInvalidArgument,
     false},
    {"SortedIndicesMissing",
     [](Args& a) { a.sorted_indices = {}; },
     {"sorted_indices"},
     Code::kInvalidArgument,
     false},
    {"LengthOfCounts",
     [](Args& a) { a.tokens_per_expert = Reshaped(*a.tokens_per_expert, {2}); },
     {"tokens_per_expert", "2", "3"},
     Code::kInvalidArgument,
     false},
    {"DTypeOfCounts",
     [](Args& a) { a.tokens_per_expert = Retyped(*a.tokens_per_expert, DType::kInt8); },
     {"tokens_per_expert", "int8"},
     Code::kInvalidArgument,
     false},
    {"LengthOfOffsets",
     [](Args& a) { a.expert_offsets = Reshaped(*a.expert_offsets, {3}); },
     {"expert_offsets", "3", "4"},
     Code::kInvalidArgument,
     false},

    {"RowsOnTopOfEachOther",
     [](Args& a) {
       a.permuted_tokens = Restrided(a.permuted_tokens, {6, 7}, {0, 1});
     },
     {"permuted_tokens", "overlaps itself"},
     Code::kInvalidArgument,
     false},
    {"RowsHalfOverEachOther",
     [](Args& a) {
       a.permuted_tokens = Restrided(a.permuted_tokens, {6, 7}, {6, 1});
     },
     {"permuted_tokens", "overlaps itself"},
     Code::kInvalidArgument,
     false},
    {"StridesThatMeet",  // 2 * 3 = 3 * 2
     [](Args& a) {
       a.permuted_tokens = Restrided(a.permuted_tokens, {6, 7}, {2, 3});
     },
     {"permuted_tokens", "overlaps itself"},
     Code::kInvalidArgument,
     false},
    {"IndicesOnTopOfEachOther",
     [](Args& a) { a.sorted_indices = Restrided(a.sorted_indices, {10}, {0}); },
     {"sorted_indices", "overlaps itself"},
     Code::kInvalidArgument,
     false},
    {"CountsOnTopOfEachOther",
     [](Args& a) { a.expert_offsets = Restrided(*a.expert_offsets, {4}, {0}); },
     {"expert_offsets", "overlaps itself"},
     Code::kInvalidArgument,
     false},
    {"InPlace",
     [](Args& a) {
       a.tokens = Reshaped(ConstTensorView(a.permuted_tokens), {5, 7});
     },
     {"permuted_tokens", "tokens", "overlaps"},
     Code::kInvalidArgument,
     false},
    {"OverTheMap",
     [](Args& a) { a.routing_map = AtAddress(a.routing_map, a.permuted_tokens.data()); },
     {"permuted_tokens", "routing_map", "overlaps"},
     Code::kInvalidArgument,
     false},
    {"OverTheProbs",
     [](Args& a) { a.probs = AtAddress(*a.probs, a.permuted_tokens.data()); },
     {"permuted_tokens", "probs", "overlaps"},
     Code::kInvalidArgument,
     false},
    {"TwoOutputsInOnePlace",
     [](Args& a) {
       a.tokens_per_expert = AtAddress(*a.tokens_per_expert, a.expert_offsets->data());
     },
     {"tokens_per_expert", "expert_offsets", "overlaps"},
     Code::kInvalidArgument,
     false},
};

class ForwardRefusals : public testing::TestWithParam<Refusal<Args>> {};

TEST_P(ForwardRefusals, NamesArgumentAndValues) {
  const ForwardInputs inputs = Valid();
  ForwardOutputs outputs = MakeOutputs(inputs);
  Args args = ArgsOf(inputs, outputs);
  ASSERT_TRUE(PermuteWithRoutingMap(args).ok());
  GetParam().spoil(args);
  for (const int threads : {1, 2}) {
    const Context context({.num_threads = threads});
    ExpectRefused(PermuteWithRoutingMap(args, context), GetParam().code, GetParam().says);
  }
  EXPECT_TRUE(outputs.permuted_tokens.GuardsIntact("permuted_tokens"));
  EXPECT_TRUE(outputs.permuted_probs->GuardsIntact("permuted_probs"));
  EXPECT_TRUE(outputs.sorted_indices.GuardsIntact("sorted_indices"));
  EXPECT_TRUE(outputs.tokens_per_expert.GuardsIntact("tokens_per_expert"));
  EXPECT_TRUE(outputs.expert_offsets.GuardsIntact("expert_offsets"));

  PermuteWithRoutingMapSpecs specs;
  const Status infer = InferPermuteWithRoutingMap(args, &specs);
  if (GetParam().infer_refuses) {
    ExpectRefused(infer, GetParam().code, GetParam().says);
  } else {
    EXPECT_TRUE(infer.ok()) << infer.message();
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ForwardRefusals, testing::ValuesIn(kRefusals), NameOfRefusal());

// What looks wrong and is not.
TEST(ForwardAccepts, EmptyViewsWithoutMemory) {
  const ForwardInputs inputs = Valid();
  ForwardOutputs outputs = MakeOutputs(inputs);
  Args args = ArgsOf(inputs, outputs);
  args.tokens = ConstTensorView(static_cast<const float*>(nullptr), {5, 0});
  args.permuted_tokens = TensorView(static_cast<float*>(nullptr), {6, 0});
  EXPECT_TRUE(PermuteWithRoutingMap(args).ok());
  EXPECT_EQ(outputs.sorted_indices.Ints(), (Shape{0, 4, -1, -1, 2, -1, 1, 3, 5, -1}));
}

TEST(ForwardAccepts, AnyStrideOfADimensionOfOne) {
  const float tokens[] = {3};
  const std::int8_t map[] = {1};
  Tensor permuted(DType::kFloat32, {1, 1});
  Tensor indices(DType::kInt32, {1});
  for (const std::int64_t stride : {std::int64_t{0}, kHuge, std::int64_t{INT64_MIN}}) {
    Args args;
    args.tokens = ConstTensorView(tokens, {1, 1}, {stride, stride});
    args.routing_map = ConstTensorView(map, {1, 1}, {stride, stride});
    args.num_out_tokens = 1;
    args.top_k = 1;
    args.permuted_tokens = Restrided(permuted.out(), {1, 1}, {stride, stride});
    args.sorted_indices = Restrided(indices.out(), {1}, {stride});
    permuted.FillBytes(0xFF);
    const Status status = PermuteWithRoutingMap(args);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(permuted.Floats(), std::vector<float>{3});
    EXPECT_EQ(indices.Ints(), Shape{0});
  }
}

TEST(ForwardAccepts, InterleavedOutputs) {
  // Permuted tokens in the even columns of a buffer whose odd columns are the tokens.
  float memory[] = {-1, 5, -1, 6, -1, 7, -1, 8};
  const std::int8_t map[] = {0, 1, 1, 0};
  Tensor indices(DType::kInt64, {2});
  Args args;
  args.tokens = ConstTensorView(memory + 1, {2, 2}, {4, 2});
  args.routing_map = ConstTensorView(map, {2, 2});
  args.num_out_tokens = 2;
  args.top_k = 1;
  args.permuted_tokens = TensorView(memory, {2, 2}, {4, 2});
  args.sorted_indices = indices.out();
  ASSERT_TRUE(PermuteWithRoutingMap(args).ok());
  EXPECT_THAT(memory, testing::ElementsAre(7, 5, 8, 6, 5, 7, 6, 8));
}

// No memory is asked for before the refusal; the message says what it would have been.
TEST(Probes, P044_CapacityPast2To40) {
  const ForwardInputs inputs = NotPadded({.num_experts = 4,
                                          .map = {1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1},
                                          .hidden = 2,
                                          .tokens = {1, 2, 3, 4, 5, 6}});
  ForwardOutputs outputs = MakeOutputs(inputs);
  Args args = ArgsOf(inputs, outputs);
  args.drop_and_pad = true;
  args.num_out_tokens = 4 * (std::int64_t{1} << 40);
  const std::vector<std::string> says = {"1099511627776", "35184372088832"};
  ExpectRefused(PermuteWithRoutingMap(args), Code::kInvalidArgument, says);
  PermuteWithRoutingMapSpecs specs;
  ExpectRefused(InferPermuteWithRoutingMap(args, &specs), Code::kInvalidArgument, says);
}

// The number must not be cut to 32 bits: it would read 6, which is right.
TEST(Probes, P010_RowsPast32Bits) {
  const ForwardInputs inputs = NotPadded(F1());
  ForwardOutputs outputs = MakeOutputs(inputs);
  Args args = ArgsOf(inputs, outputs);
  args.num_out_tokens = 4294967302;
  ExpectRefused(PermuteWithRoutingMap(args), Code::kInvalidArgument, {"4294967302"});
  args.num_out_tokens = -2147483642;
  ExpectRefused(PermuteWithRoutingMap(args), Code::kInvalidArgument, {"-2147483642"});
}

}  // namespace
}  // namespace moeperm::test
