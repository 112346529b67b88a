// SPDX-License-Identifier: Apache-2.0
// Refusals of the row map and of the operators over one.
#include "support/fixtures.hpp"
#include "support/refusal.hpp"

namespace moeperm::test {
namespace {

const std::int8_t kF1Map[] = {1, 0, 1, 1, 1, 0, 0, 1, 1};

Status Build(const ConstTensorView& map, const RowMapOptions& options, RowMap* row_map) {
  return RowMap::FromRoutingMap(map, options, row_map);
}

RowMap F1RowMap() {
  RowMap row_map;
  EXPECT_TRUE(Build(ConstTensorView(kF1Map, {3, 3}), {}, &row_map).ok());
  return row_map;
}

TEST(RowMapRefusals, NameArgumentAndValues) {
  const float floats[9] = {};
  const ConstTensorView map(kF1Map, {3, 3});
  const std::int64_t past = std::int64_t{1} << 31;
  const struct {
    ConstTensorView map;
    RowMapOptions options;
    std::vector<std::string> says;
  } cases[] = {
      {ConstTensorView(kF1Map, {9}), {}, {"routing_map", "1", "2"}},
      {ConstTensorView(floats, {3, 3}), {}, {"routing_map", "float32"}},
      {ConstTensorView(kF1Map, {-3, 3}), {}, {"routing_map", "-3"}},
      {ConstTensorView(static_cast<const bool*>(nullptr), {3, 3}), {}, {"routing_map", "null"}},
      {ConstTensorView(kF1Map, {past, 0}), {}, {"routing_map", "2147483648"}},
      {ConstTensorView(kF1Map, {0, past}), {}, {"routing_map", "2147483648"}},
      {ConstTensorView(kF1Map, {past * past, 4}, {0, 0}), {}, {"routing_map"}},
      {map, {.drop_and_pad = true, .capacity = -1}, {"capacity", "-1"}},
      {map, {.drop_and_pad = true, .capacity = 4}, {"capacity", "4", "3"}},
      {map, {.num_rows = -1}, {"num_rows", "-1"}},
      {map, {.num_rows = past}, {"num_rows", "2147483648"}},
  };
  for (const auto& one : cases) {
    RowMap row_map = F1RowMap();
    ExpectRefused(Build(one.map, one.options, &row_map), Code::kInvalidArgument, one.says);
    EXPECT_EQ(row_map.num_rows(), 6) << "changed by a call that failed";
  }
}

// The sum is 2^31 rows though neither number is.
TEST(RowMapRefusals, RowsPast31Bits) {
  const std::int8_t one = 1;
  RowMap row_map;
  const ConstTensorView map(&one, {65536, 32768}, {0, 0});
  ExpectRefused(Build(map, {.drop_and_pad = true, .capacity = 65536}, &row_map),
                Code::kInvalidArgument, {});
}

TEST(RowMap, DefaultIsEmpty) {
  const RowMap row_map;
  EXPECT_EQ(row_map.num_tokens(), 0);
  EXPECT_EQ(row_map.num_experts(), 0);
  EXPECT_EQ(row_map.num_rows(), 0);
  EXPECT_FALSE(row_map.drop_and_pad());
  EXPECT_THAT(row_map.token_offsets(), testing::ElementsAre(0));
  EXPECT_THAT(row_map.expert_offsets(), testing::ElementsAre(0));
  EXPECT_TRUE(row_map.slot_rows().empty());
  EXPECT_TRUE(row_map.slot_experts().empty());
  EXPECT_TRUE(row_map.row_tokens().empty());
  EXPECT_TRUE(row_map.tokens_per_expert().empty());
}

TEST(RowMap, CopiesShareAndOutlive) {
  RowMap copy;
  {
    const RowMap original = F1RowMap();
    copy = original;
    EXPECT_EQ(copy.row_tokens().data(), original.row_tokens().data());
  }
  EXPECT_THAT(copy.row_tokens(), testing::ElementsAre(0, 1, 1, 2, 0, 2));
  EXPECT_THAT(copy.slot_rows(), testing::ElementsAre(0, 4, 1, 2, 3, 5));
  EXPECT_THAT(copy.slot_experts(), testing::ElementsAre(0, 2, 0, 1, 1, 2));
  EXPECT_THAT(copy.token_offsets(), testing::ElementsAre(0, 2, 4, 6));
}

TEST(RowMap, OperatorsOverTheDefaultOne) {
  const float nothing = 0;
  float untouched = 5;
  EXPECT_TRUE(PermuteByRowMap(RowMap(), {.tokens = ConstTensorView(&nothing, {0, 4}),
                                         .probs = {},
                                         .permuted_tokens = TensorView(&untouched, {0, 4}),
                                         .permuted_probs = {}})
                  .ok());
  EXPECT_EQ(untouched, 5);
}

using Forward = PermuteByRowMapArgs;
const Refusal<Forward> kForward[] = {
    {"OtherTokens",
     [](Forward& a) {
       a.tokens = Reshaped(a.tokens, {2, 2});
     },
     {"tokens", "2", "3"}},
    {"OtherRows",
     [](Forward& a) {
       a.permuted_tokens = Reshaped(a.permuted_tokens, {5, 2});
     },
     {"permuted_tokens", "5", "6"}},
    {"OtherHidden",
     [](Forward& a) {
       a.permuted_tokens = Reshaped(a.permuted_tokens, {6, 1});
     },
     {"permuted_tokens", "1", "2"}},
    {"OtherDType",
     [](Forward& a) { a.permuted_tokens = Retyped(a.permuted_tokens, DType::kFloat16); },
     {"permuted_tokens", "float16", "float32"}},
    {"OtherExperts",
     [](Forward& a) {
       a.probs = Reshaped(*a.probs, {3, 2});
     },
     {"probs", "2", "3"}},
    {"OtherProbs",
     [](Forward& a) { a.permuted_probs = Reshaped(*a.permuted_probs, {5}); },
     {"permuted_probs", "5", "6"}},
    {"ProbsAlone", [](Forward& a) { a.permuted_probs.reset(); }, {"permuted_probs", "missing"}},
    {"PermutedProbsAlone", [](Forward& a) { a.probs.reset(); }, {"permuted_probs", "given"}},
    {"NullTokens", [](Forward& a) { a.tokens = AtAddress(a.tokens, nullptr); }, {"tokens", "null"}},
    {"InPlace",
     [](Forward& a) {
       a.tokens = AtAddress(a.tokens, static_cast<const void*>(a.permuted_tokens.data()));
     },
     {"permuted_tokens", "tokens", "overlaps"}},
    {"OverItself",
     [](Forward& a) {
       a.permuted_tokens = Restrided(a.permuted_tokens, {6, 2}, {0, 1});
     },
     {"permuted_tokens", "overlaps itself"}},
};

class ByRowMapRefusals : public testing::TestWithParam<Refusal<Forward>> {};
TEST_P(ByRowMapRefusals, NamesArgumentAndValues) {
  const ForwardInputs inputs = NotPadded(F1());
  ForwardOutputs outputs = MakeOutputs(inputs);
  Forward args{inputs.tokens.in(), inputs.probs->in(), outputs.permuted_tokens.out(),
               outputs.permuted_probs->out()};
  ASSERT_TRUE(PermuteByRowMap(F1RowMap(), args).ok());
  GetParam().spoil(args);
  ExpectRefused(PermuteByRowMap(F1RowMap(), args), GetParam().code, GetParam().says);
  EXPECT_TRUE(outputs.permuted_tokens.GuardsIntact("permuted_tokens"));
}
INSTANTIATE_TEST_SUITE_P(Table, ByRowMapRefusals, testing::ValuesIn(kForward), NameOfRefusal());

using Grad = PermuteByRowMapGradArgs;
const Refusal<Grad> kGrad[] = {
    {"NothingAsked", [](Grad& a) { a = {}; }, {"tokens_grad", "probs_grad"}},
    {"TokensGradOfNothing",
     [](Grad& a) { a.permuted_tokens_grad.reset(); },
     {"permuted_tokens_grad", "missing"}},
    {"ProbsGradOfNothing",
     [](Grad& a) { a.permuted_probs_grad.reset(); },
     {"permuted_probs_grad", "missing"}},
    {"OtherRows",
     [](Grad& a) {
       a.permuted_tokens_grad = Reshaped(*a.permuted_tokens_grad, {5, 2});
     },
     {"permuted_tokens_grad", "5", "6"}},
    {"OtherProbs",
     [](Grad& a) { a.permuted_probs_grad = Reshaped(*a.permuted_probs_grad, {5}); },
     {"permuted_probs_grad", "5", "6"}},
    {"OtherTokens",
     [](Grad& a) {
       a.tokens_grad = Reshaped(*a.tokens_grad, {2, 2});
     },
     {"tokens_grad", "2", "3"}},
    {"OtherHidden",
     [](Grad& a) {
       a.tokens_grad = Reshaped(*a.tokens_grad, {3, 1});
     },
     {"tokens_grad", "1", "2"}},
    {"OtherExperts",
     [](Grad& a) {
       a.probs_grad = Reshaped(*a.probs_grad, {3, 2});
     },
     {"probs_grad", "2", "3"}},
    {"OtherDType",
     [](Grad& a) { a.tokens_grad = Retyped(*a.tokens_grad, DType::kFloat16); },
     {"tokens_grad", "float16", "float32"}},
    {"InPlace",
     [](Grad& a) {
       a.permuted_tokens_grad =
           AtAddress(*a.permuted_tokens_grad, static_cast<const void*>(a.tokens_grad->data()));
     },
     {"tokens_grad", "permuted_tokens_grad", "overlaps"}},
};

class ByRowMapGradRefusals : public testing::TestWithParam<Refusal<Grad>> {};
TEST_P(ByRowMapGradRefusals, NamesArgumentAndValues) {
  const ForwardInputs forward = NotPadded(F1());
  const GradInputs inputs = GradOf(forward, RunForward(forward), kF1TokensGrad, kF1ProbsGrad);
  GradOutputs outputs = MakeOutputs(inputs);
  const PermuteWithRoutingMapGradArgs all = ArgsOf(inputs, outputs);
  Grad args{all.permuted_tokens_grad, all.permuted_probs_grad, all.tokens_grad, all.probs_grad};
  ASSERT_TRUE(PermuteByRowMapGrad(F1RowMap(), args).ok());
  GetParam().spoil(args);
  ExpectRefused(PermuteByRowMapGrad(F1RowMap(), args), GetParam().code, GetParam().says);
  EXPECT_TRUE(outputs.tokens_grad->GuardsIntact("tokens_grad"));
}
INSTANTIATE_TEST_SUITE_P(Table, ByRowMapGradRefusals, testing::ValuesIn(kGrad), NameOfRefusal());

}  // namespace
}  // namespace moeperm::test
