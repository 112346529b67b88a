// SPDX-License-Identifier: Apache-2.0
// Every refusal of the gradient.
#include "support/fixtures.hpp"
#include "support/refusal.hpp"

namespace moeperm::test {
namespace {

using Args = PermuteWithRoutingMapGradArgs;
constexpr std::int64_t kHuge = std::int64_t{1} << 62;

// Five tokens of hidden 7, three experts; not padded: seven rows, two slots a token, two of them
// empty; drop-and-pad: capacity 2, six rows.
GradInputs Valid(bool drop_and_pad) {
  GradInputs inputs{.sorted_indices = drop_and_pad
                                          ? Tensor::OfInts(DType::kInt32, {6}, {0, 3, 2, 3, 0, 4})
                                          : Tensor::OfInts(DType::kInt64, {10},
                                                           {0, 4, 6, -1, 2, -1, 1, 3, 5, -1})};
  const std::int64_t rows = drop_and_pad ? 6 : 7;
  inputs.permuted_tokens_grad =
      Tensor::OfFloats(DType::kFloat16, {rows, 7}, std::vector<float>(rows * 7, 1));
  inputs.permuted_probs_grad =
      Tensor::OfFloats(DType::kFloat32, {rows}, std::vector<float>(rows, 1));
  if (!drop_and_pad) {
    inputs.routing_map =
        Tensor::OfInts(DType::kInt8, {5, 3}, {1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 0, 0, 1});
  }
  inputs.num_tokens = 5;
  inputs.num_experts = 3;
  inputs.drop_and_pad = drop_and_pad;
  return inputs;
}

// An index tensor of the test's own, for values the call must refuse.
template <int kSlot, std::int64_t kValue>
void SetIndex(Args& args) {
  static std::int64_t indices[10];
  for (int i = 0; i < 10; ++i) {
    indices[i] = i == kSlot ? kValue : 0;
  }
  args.sorted_indices = ConstTensorView(indices, {args.sorted_indices.shape(0)});
}

const Refusal<Args> kBoth[] = {
    {"NothingAsked",
     [](Args& a) {
       a.tokens_grad.reset();
       a.probs_grad.reset();
     },
     {"tokens_grad", "probs_grad"},
     Code::kInvalidArgument,
     false},
    {"NothingAskedNothingGiven",
     [](Args& a) {
       const ConstTensorView indices = a.sorted_indices;
       a = {};
       a.sorted_indices = indices;
     },
     {"permuted_tokens_grad is missing: it or permuted_probs_grad must be given"}},
    {"TokensGradOfNothing",
     [](Args& a) { a.permuted_tokens_grad.reset(); },
     {"permuted_tokens_grad", "missing"},
     Code::kInvalidArgument,
     false},
    {"ProbsGradOfNothing",
     [](Args& a) { a.permuted_probs_grad.reset(); },
     {"permuted_probs_grad", "missing"},
     Code::kInvalidArgument,
     false},
    {"NegativeTokens", [](Args& a) { a.num_tokens = -5; }, {"num_tokens", "-5"}},
    {"NegativeExperts", [](Args& a) { a.num_experts = -3; }, {"num_experts", "-3"}},
    {"TokensPast31Bits",
     [](Args& a) { a.num_tokens = kHuge; },
     {"num_tokens", "4611686018427387904"}},
    {"RankOfTokens",
     [](Args& a) { a.permuted_tokens_grad = Reshaped(*a.permuted_tokens_grad, {42}); },
     {"permuted_tokens_grad", "1", "2"}},
    {"DTypeOfTokens",
     [](Args& a) { a.permuted_tokens_grad = Retyped(*a.permuted_tokens_grad, DType::kInt8); },
     {"permuted_tokens_grad", "int8"}},
    {"NegativeHidden",
     [](Args& a) {
       a.permuted_tokens_grad = Reshaped(*a.permuted_tokens_grad, {6, -7});
     },
     {"permuted_tokens_grad", "-7"}},
    {"NullTokens",
     [](Args& a) { a.permuted_tokens_grad = AtAddress(*a.permuted_tokens_grad, nullptr); },
     {"permuted_tokens_grad", "null"},
     Code::kInvalidArgument,
     false},
    {"TokensBetweenElements",
     [](Args& a) { a.permuted_tokens_grad = OneByteOn(*a.permuted_tokens_grad); },
     {"permuted_tokens_grad", "2"},
     Code::kInvalidArgument,
     false},
    {"RankOfProbs",
     [](Args& a) {
       a.permuted_probs_grad = Reshaped(*a.permuted_probs_grad, {6, 1});
     },
     {"permuted_probs_grad", "2", "1"}},
    {"DTypeOfProbs",
     [](Args& a) { a.permuted_probs_grad = Retyped(*a.permuted_probs_grad, DType::kInt32); },
     {"permuted_probs_grad", "int32"}},
    {"NullProbs",
     [](Args& a) { a.permuted_probs_grad = AtAddress(*a.permuted_probs_grad, nullptr); },
     {"permuted_probs_grad", "null"},
     Code::kInvalidArgument,
     false},
    {"LengthOfProbs",
     [](Args& a) { a.permuted_probs_grad = Reshaped(*a.permuted_probs_grad, {5}); },
     {"permuted_probs_grad", "5"}},
    {"RankOfIndices",
     [](Args& a) {
       a.sorted_indices = Reshaped(a.sorted_indices, {2, 3});
     },
     {"sorted_indices", "2", "1"}},
    {"DTypeOfIndices",
     [](Args& a) { a.sorted_indices = Retyped(a.sorted_indices, DType::kInt8); },
     {"sorted_indices", "int8"}},
    {"IndicesMissing", [](Args& a) { a.sorted_indices = {}; }, {"sorted_indices is missing"}},
    {"NullIndices",
     [](Args& a) { a.sorted_indices = AtAddress(a.sorted_indices, nullptr); },
     {"sorted_indices", "null"},
     Code::kInvalidArgument,
     false},
    {"RowsOfTokensGrad",
     [](Args& a) {
       a.tokens_grad = Reshaped(*a.tokens_grad, {4, 7});
     },
     {"tokens_grad", "4", "5"},
     Code::kInvalidArgument,
     false},
    {"HiddenOfTokensGrad",
     [](Args& a) {
       a.tokens_grad = Reshaped(*a.tokens_grad, {5, 6});
     },
     {"tokens_grad", "6", "7"},
     Code::kInvalidArgument,
     false},
    {"DTypeOfTokensGrad",
     [](Args& a) { a.tokens_grad = Retyped(*a.tokens_grad, DType::kBFloat16); },
     {"tokens_grad", "bfloat16", "float16"},
     Code::kInvalidArgument,
     false},
    {"NullTokensGrad",
     [](Args& a) { a.tokens_grad = AtAddress(*a.tokens_grad, nullptr); },
     {"tokens_grad", "null"},
     Code::kInvalidArgument,
     false},
    {"TokensOfProbsGrad",
     [](Args& a) {
       a.probs_grad = Reshaped(*a.probs_grad, {4, 3});
     },
     {"probs_grad", "4", "5"},
     Code::kInvalidArgument,
     false},
    {"ExpertsOfProbsGrad",
     [](Args& a) {
       a.probs_grad = Reshaped(*a.probs_grad, {5, 2});
     },
     {"probs_grad", "2", "3"},
     Code::kInvalidArgument,
     false},
    {"DTypeOfProbsGrad",
     [](Args& a) { a.probs_grad = Retyped(*a.probs_grad, DType::kInt32); },
     {"probs_grad", "int32"},
     Code::kInvalidArgument,
     false},
    {"TokensGradOverItself",
     [](Args& a) {
       a.tokens_grad = Restrided(*a.tokens_grad, {5, 7}, {0, 1});
     },
     {"tokens_grad", "overlaps itself"},
     Code::kInvalidArgument,
     false},
    {"ProbsGradOverItself",
     [](Args& a) {
       a.probs_grad = Restrided(*a.probs_grad, {5, 3}, {1, 1});
     },
     {"probs_grad", "overlaps itself"},
     Code::kInvalidArgument,
     false},
    {"InPlace",
     [](Args& a) {
       a.permuted_tokens_grad =
           AtAddress(*a.permuted_tokens_grad, static_cast<const void*>(a.tokens_grad->data()));
     },
     {"tokens_grad", "permuted_tokens_grad", "overlaps"},
     Code::kInvalidArgument,
     false},
    {"ProbsInPlace",
     [](Args& a) {
       a.permuted_probs_grad =
           AtAddress(*a.permuted_probs_grad, static_cast<const void*>(a.probs_grad->data()));
     },
     {"probs_grad", "permuted_probs_grad", "overlaps"},
     Code::kInvalidArgument,
     false},
    {"OverTheIndices",
     [](Args& a) {
       a.sorted_indices =
           AtAddress(a.sorted_indices, static_cast<const void*>(a.probs_grad->data()));
     },
     {"probs_grad", "sorted_indices", "overlaps"},
     Code::kInvalidArgument,
     false},
    {"OneGradOverTheOther",
     [](Args& a) { a.probs_grad = AtAddress(*a.probs_grad, a.tokens_grad->data()); },
     {"tokens_grad", "probs_grad", "overlaps"},
     Code::kInvalidArgument,
     false},
};

const Refusal<Args> kNotPadded[] = {
    // Infer looks at no output: tokens_grad alone may be wanted, which needs no map.
    {"MapMissing",
     [](Args& a) { a.routing_map.reset(); },
     {"routing_map", "missing"},
     Code::kInvalidArgument,
     false},
    {"MapOfFloats",
     [](Args& a) { a.routing_map = Retyped(*a.routing_map, DType::kFloat32); },
     {"routing_map", "float32"}},
    {"MapOfOtherTokens",
     [](Args& a) {
       a.routing_map = Reshaped(*a.routing_map, {6, 3});
     },
     {"routing_map", "6", "5"}},
    {"MapOfOtherExperts",
     [](Args& a) {
       a.routing_map = Reshaped(*a.routing_map, {5, 4});
     },
     {"routing_map", "4", "3"}},
    {"NullMap",
     [](Args& a) { a.routing_map = AtAddress(*a.routing_map, nullptr); },
     {"routing_map", "null"},
     Code::kInvalidArgument,
     false},
    {"OverTheMap",
     [](Args& a) {
       a.routing_map = AtAddress(*a.routing_map, static_cast<const void*>(a.tokens_grad->data()));
     },
     {"tokens_grad", "routing_map", "overlaps"},
     Code::kInvalidArgument,
     false},
    {"SlotsNoMultipleOfTokens",
     [](Args& a) { a.sorted_indices = Reshaped(a.sorted_indices, {9}); },
     {"sorted_indices", "9", "5"}},
    {"SlotsOfNoTokens",
     [](Args& a) {
       a.num_tokens = 0;
       a.tokens_grad = Reshaped(*a.tokens_grad, {0, 7});
       a.permuted_probs_grad.reset();
       a.probs_grad.reset();
       a.routing_map.reset();
     },
     {"sorted_indices.shape[0] = 10 but num_tokens = 0"}},
    {"RowPastTheEnd",
     SetIndex<8, 7>,
     {"sorted_indices[8] = 7", "7 permuted rows"},
     Code::kIndexOutOfRange,
     false},
    {"RowFarPastTheEnd",
     SetIndex<0, (std::int64_t{1} << 32) + 1>,
     {"sorted_indices[0] = 4294967297", "7"},
     Code::kIndexOutOfRange,
     false},
};

const Refusal<Args> kDropAndPad[] = {
    {"LengthOfIndices",
     [](Args& a) { a.sorted_indices = Reshaped(a.sorted_indices, {5}); },
     {"5", "6"}},
    {"RowsNoMultipleOfExperts",
     [](Args& a) {
       a.num_experts = 4;
       a.probs_grad = Reshaped(*a.probs_grad, {5, 4});
     },
     {"6 permuted rows are not a multiple of num_experts = 4"},
     Code::kInvalidArgument,
     false},
    {"RowsOfNoExperts",
     [](Args& a) {
       a.num_experts = 0;
       a.probs_grad = Reshaped(*a.probs_grad, {5, 0});
     },
     {"there are 6 permuted rows but num_experts = 0"},
     Code::kInvalidArgument,
     false},
    {"TokenPastTheEnd",
     SetIndex<4, 5>,
     {"sorted_indices[4] = 5", "num_tokens = 5"},
     Code::kIndexOutOfRange,
     false},
    {"NegativeToken",
     SetIndex<2, -1>,
     {"sorted_indices[2] = -1", "num_tokens = 5"},
     Code::kIndexOutOfRange,
     false},
    {"RowsOfNoTokens",
     [](Args& a) {
       SetIndex<0, 0>(a);
       a.num_tokens = 0;
       a.tokens_grad = Reshaped(*a.tokens_grad, {0, 7});
       a.probs_grad = Reshaped(*a.probs_grad, {0, 3});
     },
     {"sorted_indices[0] = 0", "num_tokens = 0"},
     Code::kIndexOutOfRange,
     false},
    {"TokenFarPastTheEnd",
     SetIndex<5, (std::int64_t{1} << 32) + 1>,
     {"sorted_indices[5] = 4294967297", "5"},
     Code::kIndexOutOfRange,
     false},
    {"FarNegativeToken",
     SetIndex<0, INT64_MIN>,
     {"sorted_indices[0] = -9223372036854775808"},
     Code::kIndexOutOfRange,
     false},
};

void Check(const Refusal<Args>& refusal, bool drop_and_pad) {
  const GradInputs inputs = Valid(drop_and_pad);
  GradOutputs outputs = MakeOutputs(inputs);
  Args args = ArgsOf(inputs, outputs);
  ASSERT_TRUE(PermuteWithRoutingMapGrad(args).ok());
  refusal.spoil(args);
  for (const int threads : {1, 2}) {
    const Context context({.num_threads = threads});
    ExpectRefused(PermuteWithRoutingMapGrad(args, context), refusal.code, refusal.says);
  }
  EXPECT_TRUE(outputs.tokens_grad->GuardsIntact("tokens_grad"));
  EXPECT_TRUE(outputs.probs_grad->GuardsIntact("probs_grad"));
  PermuteWithRoutingMapGradSpecs specs;
  const Status infer = InferPermuteWithRoutingMapGrad(args, &specs);
  if (refusal.infer_refuses) {
    ExpectRefused(infer, refusal.code, refusal.says);
  } else {
    EXPECT_TRUE(infer.ok()) << infer.message();
  }
}

class GradRefusals : public testing::TestWithParam<Refusal<Args>> {};
TEST_P(GradRefusals, NotPadded) { Check(GetParam(), false); }
TEST_P(GradRefusals, DropAndPad) { Check(GetParam(), true); }
INSTANTIATE_TEST_SUITE_P(Table, GradRefusals, testing::ValuesIn(kBoth), NameOfRefusal());

class GradRefusalsNotPadded : public testing::TestWithParam<Refusal<Args>> {};
TEST_P(GradRefusalsNotPadded, NamesArgumentAndValues) { Check(GetParam(), false); }
INSTANTIATE_TEST_SUITE_P(Table, GradRefusalsNotPadded, testing::ValuesIn(kNotPadded),
                         NameOfRefusal());

class GradRefusalsDropAndPad : public testing::TestWithParam<Refusal<Args>> {};
TEST_P(GradRefusalsDropAndPad, NamesArgumentAndValues) { Check(GetParam(), true); }
INSTANTIATE_TEST_SUITE_P(Table, GradRefusalsDropAndPad, testing::ValuesIn(kDropAndPad),
                         NameOfRefusal());

// Each gradient alone, without what only the other needs.
TEST(GradAccepts, OneGradAlone) {
  for (const bool drop_and_pad : {false, true}) {
    const GradInputs inputs = Valid(drop_and_pad);
    const ReferenceGrads expected = Reference(inputs);
    GradOutputs outputs = MakeOutputs(inputs);
    Args args = ArgsOf(inputs, outputs);
    args.permuted_probs_grad.reset();
    args.probs_grad.reset();
    args.routing_map.reset();
    args.num_experts = 0;
    ASSERT_TRUE(PermuteWithRoutingMapGrad(args).ok());
    EXPECT_TRUE(Equals("tokens_grad", *outputs.tokens_grad, *expected.tokens));
    args = ArgsOf(inputs, outputs);
    args.permuted_tokens_grad.reset();
    args.tokens_grad.reset();
    ASSERT_TRUE(PermuteWithRoutingMapGrad(args).ok());
    EXPECT_TRUE(Equals("probs_grad", *outputs.probs_grad, *expected.probs));
  }
}

}  // namespace
}  // namespace moeperm::test
