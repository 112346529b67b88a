// SPDX-License-Identifier: Apache-2.0
// Every refusal of the index form and of the way back with weights.
#include <algorithm>
#include <optional>

#include "support/family.hpp"
#include "support/fixtures.hpp"
#include "support/refusal.hpp"
#include "support/view_faults.hpp"

namespace moeperm::test {
namespace {

using Ints = std::vector<std::int64_t>;
constexpr std::int64_t kHuge = std::int64_t{1} << 62;
constexpr Code kInvalid = Code::kInvalidArgument;
constexpr Code kRange = Code::kIndexOutOfRange;

Tensor Ones(DType dtype, Ints shape) {
  std::int64_t size = 1;
  for (const std::int64_t n : shape) size *= n;
  return Tensor::OfFloats(dtype, std::move(shape),
                          std::vector<float>(static_cast<std::size_t>(size), 1));
}

// Five tokens of hidden 7, two slots each, three experts, eight routes and a row more.
TableInputs Table() {
  TableInputs inputs{Ones(DType::kFloat16, {5, 7}),
                     Tensor::OfInts(DType::kInt64, {5, 2}, {0, 1, 2, -1, 1, 0, 2, 2, 0, -1}),
                     Ones(DType::kFloat16, {5, 2})};
  inputs.num_experts = 3;
  inputs.num_out_tokens = 9;
  return inputs;
}
const Ints kRows = {0, 3, 5, -1, 4, 1, 6, 7, 2, -1};

TableGradInputs TableGrad() {
  TableGradInputs inputs{Ones(DType::kFloat16, {9, 7}), Ones(DType::kFloat16, {9}),
                         Tensor::OfInts(DType::kInt64, {10}, kRows)};
  inputs.num_tokens = 5;
  return inputs;
}

BackInputs Back() {
  return {Ones(DType::kFloat16, {9, 7}), Ones(DType::kFloat16, {5, 7}),
          Tensor::OfInts(DType::kInt64, {10}, kRows), Ones(DType::kFloat16, {5, 2})};
}

// Not padded: two slots a token, some empty, nine rows. Drop-and-pad: capacity 2, six rows.
BackInputs BackWithMap(bool drop_and_pad) {
  const std::int64_t rows = drop_and_pad ? 6 : 9;
  BackInputs inputs{Ones(DType::kFloat16, {rows, 7}), Ones(DType::kFloat16, {5, 7}),
                    drop_and_pad ? Tensor::OfInts(DType::kInt64, {6}, {0, 3, 2, 3, 0, 4})
                                 : Tensor::OfInts(DType::kInt64, {10}, kRows),
                    Ones(DType::kFloat16, {5, 3})};
  inputs.with_map = true;
  inputs.drop_and_pad = drop_and_pad;
  if (!drop_and_pad) {
    inputs.routing_map =
        Tensor::OfInts(DType::kInt8, {5, 3}, {1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0});
  }
  return inputs;
}

template <class Args>
std::function<Status(const Args&)> Called(Status (*function)(const Args&, const Context&) noexcept,
                                          int threads = 1) {
  return [=](const Args& args) { return function(args, Context({.num_threads = threads})); };
}

// An index tensor of the test's own, for values the call must refuse.
template <int kAt, std::int64_t kValue, auto kField>
void SetIndex(auto& args) {
  static std::int64_t indices[10];
  std::fill_n(indices, 10, 0);
  indices[kAt] = kValue;
  const Ints shape((args.*kField).shape().begin(), (args.*kField).shape().end());
  args.*kField = ConstTensorView(indices, DType::kInt64, shape);
}

template <class Args, std::size_t kSize>
void CheckTable(const Args& valid, const Refusal<Args> (&table)[kSize],
                Status (*function)(const Args&, const Context&) noexcept,
                Status (*infer)(const Args&) = nullptr) {
  for (const Refusal<Args>& refusal : table) {
    SCOPED_TRACE(refusal.name);
    Args args = valid;
    refusal.spoil(args);
    for (const int threads : {1, 2}) {
      ExpectRefused(Called(function, threads)(args), refusal.code, refusal.says);
    }
    if (infer == nullptr) continue;
    if (refusal.infer_refuses) {
      ExpectRefused(infer(args), refusal.code, refusal.says);
    } else {
      EXPECT_EQ(infer(args).message(), "");
    }
  }
  const Context none({.num_threads = -1});
  EXPECT_EQ(function(valid, none).message(), none.status().message());
}

Status Infer(const PermuteArgs& args) {
  PermuteSpecs specs;
  return InferPermute(args, &specs);
}

const Refusal<PermuteArgs> kPermute[] = {
    {"Nothing", [](PermuteArgs& a) { a = {}; }, {"tokens"}},
    {"NegativeExperts", [](PermuteArgs& a) { a.num_experts = -3; }, {"num_experts", "-3"}},
    {"NegativeRows", [](PermuteArgs& a) { a.num_out_tokens = -9; }, {"num_out_tokens", "-9"}},
    {"NegativeFirstRow", [](PermuteArgs& a) { a.first_row = -1; }, {"first_row", "-1"}},
    {"ManyExperts", [](PermuteArgs& a) { a.num_experts = kHuge; }, {"num_experts", "46116860"}},
    {"ManyRows", [](PermuteArgs& a) { a.num_out_tokens = kHuge; }, {"num_out_tokens", "46116860"}},
    {"FarFirstRow", [](PermuteArgs& a) { a.first_row = kHuge; }, {"first_row", "46116860"}},
    {"RowsPast32Bits",
     [](PermuteArgs& a) { a.num_out_tokens = 9 + (std::int64_t{1} << 32); },
     {"num_out_tokens", "4294967305"}},
    {"OtherRows",
     [](PermuteArgs& a) { a.num_out_tokens = 8; },
     {"permuted_tokens.shape[0] = 9", "8", "num_out_tokens"},
     kInvalid,
     false},
    {"OtherExperts",
     [](PermuteArgs& a) { a.num_experts = 4; },
     {"tokens_per_expert.shape[0] = 3", "4", "num_experts"},
     kInvalid,
     false},
    {"CountsOfNoNumber",
     [](PermuteArgs& a) { a.num_experts = 0; },
     {"num_experts", "missing", "tokens_per_expert"},
     kInvalid,
     false},
    {"NoPermutedProbs",
     [](PermuteArgs& a) { a.permuted_probs.reset(); },
     {"permuted_probs", "missing"},
     kInvalid,
     false},
    {"NoProbs",
     [](PermuteArgs& a) { a.probs.reset(); },
     {"permuted_probs", "no probs"},
     kInvalid,
     false},
    {"ExpertPastTheEnd",
     SetIndex<3, 3, &PermuteArgs::indices>,
     {"indices[3] = 3", "num_experts = 3"},
     kRange,
     false},
    {"ExpertFarPastTheEnd",
     SetIndex<9, (std::int64_t{1} << 32) + 1, &PermuteArgs::indices>,
     {"indices[9] = 4294967297", "num_experts = 3"},
     kRange,
     false},
    {"ExpertPast31Bits",
     [](PermuteArgs& a) {
       SetIndex<9, (std::int64_t{1} << 31) - 1, &PermuteArgs::indices>(a);
       a.num_experts = 0;
       a.tokens_per_expert.reset();
     },
     {"indices[9] = 2147483647", "2147483646"},
     kRange,
     false},
    {"ExpertFarPast31Bits",
     [](PermuteArgs& a) {
       SetIndex<0, kHuge, &PermuteArgs::indices>(a);
       a.num_experts = 0;
       a.tokens_per_expert.reset();
     },
     {"indices[0] = 4611686018427387904", "2147483646"},
     kRange,
     false},
};

TEST(FamilyRefusals, Permute) {
  const TableInputs inputs = Table();
  TableOutputs outputs = MakeOutputs(inputs);
  const PermuteArgs valid = ArgsOf(inputs, outputs);
  CheckEveryView<PermuteArgs>(
      valid,
      {Ref("tokens", &PermuteArgs::tokens), Ref("indices", &PermuteArgs::indices),
       Ref("probs", &PermuteArgs::probs), Ref("permuted_tokens", &PermuteArgs::permuted_tokens),
       Ref("permuted_probs", &PermuteArgs::permuted_probs),
       Ref("sorted_indices", &PermuteArgs::sorted_indices),
       Ref("tokens_per_expert", &PermuteArgs::tokens_per_expert)},
      Called(Permute), Infer);
  CheckTable(valid, kPermute, Permute, Infer);
  EXPECT_TRUE(outputs.permuted_tokens.GuardsIntact("permuted_tokens"));
  EXPECT_TRUE(outputs.permuted_probs->GuardsIntact("permuted_probs"));
  EXPECT_TRUE(outputs.sorted_indices.GuardsIntact("sorted_indices"));
  EXPECT_TRUE(outputs.tokens_per_expert->GuardsIntact("tokens_per_expert"));
}

const Refusal<PermuteGradArgs> kPermuteGrad[] = {
    {"NothingAsked",
     [](PermuteGradArgs& a) {
       a.tokens_grad.reset();
       a.probs_grad.reset();
     },
     {"tokens_grad", "probs_grad"}},
    {"NegativeTokens", [](PermuteGradArgs& a) { a.num_tokens = -5; }, {"num_tokens", "-5"}},
    {"ManyTokens", [](PermuteGradArgs& a) { a.num_tokens = kHuge; }, {"num_tokens", "46116860"}},
    {"NegativeFirstRow", [](PermuteGradArgs& a) { a.first_row = -1; }, {"first_row", "-1"}},
    {"FarFirstRow", [](PermuteGradArgs& a) { a.first_row = kHuge; }, {"first_row", "46116860"}},
    {"OtherTokens",
     [](PermuteGradArgs& a) { a.num_tokens = 2; },
     {"tokens_grad.shape[0] = 5", "2", "num_tokens"}},
    {"NoMultiple", [](PermuteGradArgs& a) { a.num_tokens = 4; }, {"sorted_indices", "10", "4"}},
    {"NoTokens", [](PermuteGradArgs& a) { a.num_tokens = 0; }, {"sorted_indices", "10", "0"}},
    {"GradOfNoTokens",
     [](PermuteGradArgs& a) { a.permuted_tokens_grad.reset(); },
     {"permuted_tokens_grad", "missing"}},
    {"GradOfNoProbs",
     [](PermuteGradArgs& a) { a.permuted_probs_grad.reset(); },
     {"permuted_probs_grad", "missing"}},
};

TEST(FamilyRefusals, PermuteGrad) {
  const TableGradInputs inputs = TableGrad();
  TableGrads outputs = MakeOutputs(inputs);
  const PermuteGradArgs valid = ArgsOf(inputs, outputs);
  CheckEveryView<PermuteGradArgs>(
      valid,
      {Ref("permuted_tokens_grad", &PermuteGradArgs::permuted_tokens_grad),
       Ref("permuted_probs_grad", &PermuteGradArgs::permuted_probs_grad),
       Ref("sorted_indices", &PermuteGradArgs::sorted_indices),
       Ref("tokens_grad", &PermuteGradArgs::tokens_grad),
       Ref("probs_grad", &PermuteGradArgs::probs_grad)},
      Called(PermuteGrad));
  CheckTable(valid, kPermuteGrad, PermuteGrad);
  EXPECT_TRUE(outputs.tokens_grad->GuardsIntact("tokens_grad"));
  EXPECT_TRUE(outputs.probs_grad->GuardsIntact("probs_grad"));
}

const Refusal<UnpermuteArgs> kUnpermute[] = {
    {"NegativeFirstRow", [](UnpermuteArgs& a) { a.first_row = -1; }, {"first_row", "-1"}},
    {"FarFirstRow", [](UnpermuteArgs& a) { a.first_row = kHuge; }, {"first_row", "46116860"}},
    {"SlotsOfNoTokens",
     [](UnpermuteArgs& a) {
       a.tokens = Reshaped(a.tokens, {0, 7});
     },
     {"sorted_indices", "10", "0"}},
};

TEST(FamilyRefusals, Unpermute) {
  using Args = UnpermuteArgs;
  const BackInputs inputs = Back();
  BackOutputs outputs = MakeOutputs(inputs);
  const Args valid = ArgsOf(inputs, outputs);
  CheckEveryView<Args>(valid,
                       {Ref("permuted_tokens", &Args::permuted_tokens, {0}),
                        Ref("sorted_indices", &Args::sorted_indices),
                        Ref("probs", &Args::probs, {}, true), Ref("tokens", &Args::tokens)},
                       Called(Unpermute));
  CheckTable(valid, kUnpermute, Unpermute);
  EXPECT_TRUE(outputs.tokens.GuardsIntact("tokens"));
}

// What both gradients of the way back refuse alike.
template <class Args>
const Refusal<Args> kBackGrad[] = {
    {"NothingAsked",
     [](Args& a) {
       a.permuted_tokens_grad.reset();
       a.probs_grad.reset();
     },
     {"permuted_tokens_grad", "probs_grad"}},
    {"NoProbs", [](Args& a) { a.probs.reset(); }, {"probs is missing"}},
    {"NoRows", [](Args& a) { a.permuted_tokens.reset(); }, {"permuted_tokens is missing"}},
    {"SlotsOfNoTokens",
     [](Args& a) {
       a.tokens_grad = Reshaped(a.tokens_grad, {0, 7});
     },
     {"0"}},
};

const Refusal<UnpermuteGradArgs> kUnpermuteGrad[] = {
    {"NegativeFirstRow", [](UnpermuteGradArgs& a) { a.first_row = -1; }, {"first_row", "-1"}},
    {"FarFirstRow", [](UnpermuteGradArgs& a) { a.first_row = kHuge; }, {"first_row", "46116860"}},
};

TEST(FamilyRefusals, UnpermuteGrad) {
  using Args = UnpermuteGradArgs;
  const BackInputs inputs = Back();
  BackGrads outputs = MakeGrads(inputs, {}, Dense);
  const Args valid = ArgsOf(inputs, outputs);
  CheckEveryView<Args>(
      valid,
      {Ref("tokens_grad", &Args::tokens_grad), Ref("permuted_tokens", &Args::permuted_tokens),
       Ref("sorted_indices", &Args::sorted_indices), Ref("probs", &Args::probs),
       Ref("permuted_tokens_grad", &Args::permuted_tokens_grad),
       Ref("probs_grad", &Args::probs_grad)},
      Called(UnpermuteGrad));
  CheckTable(valid, kBackGrad<Args>, UnpermuteGrad);
  CheckTable(valid, kUnpermuteGrad, UnpermuteGrad);
  EXPECT_TRUE(outputs.permuted_tokens_grad->GuardsIntact("permuted_tokens_grad"));
  EXPECT_TRUE(outputs.probs_grad->GuardsIntact("probs_grad"));
}

// Of both directions with a routing map, not padded.
template <class Args>
const Refusal<Args> kNotPadded[] = {
    {"NoMap", [](Args& a) { a.routing_map.reset(); }, {"routing_map", "missing"}},
    {"MoreRoutesThanSlots",
     [](Args& a) {
       static const bool map[15] = {false, false, false, true, true, true};
       a.routing_map = ConstTensorView(map, {5, 3});
     },
     {"routing_map[1] has 3 routes", "2"}},
    {"RowPastTheEnd",
     SetIndex<8, 9, &Args::sorted_indices>,
     {"sorted_indices[8] = 9", "9 permuted rows"},
     kRange},
    {"RowFarPastTheEnd",
     SetIndex<0, (std::int64_t{1} << 32) + 1, &Args::sorted_indices>,
     {"sorted_indices[0] = 4294967297", "9"},
     kRange},
};
template <class Args>
const Refusal<Args> kDropAndPad[] = {
    {"NoMultipleOfExperts",
     [](Args& a) {
       static const float probs[20] = {};
       a.probs = ConstTensorView(probs, {5, 4});
     },
     {"6 permuted rows", "4"}},
    {"NegativeToken",
     SetIndex<2, -1, &Args::sorted_indices>,
     {"sorted_indices[2] = -1", "num_tokens = 5"},
     kRange},
    {"TokenPastTheEnd",
     SetIndex<5, 5, &Args::sorted_indices>,
     {"sorted_indices[5] = 5", "num_tokens = 5"},
     kRange},
    {"TokenFarPastTheEnd",
     SetIndex<0, kHuge, &Args::sorted_indices>,
     {"sorted_indices[0] = 4611686018427387904", "num_tokens = 5"},
     kRange},
};

TEST(FamilyRefusals, UnpermuteWithRoutingMap) {
  using Args = UnpermuteWithRoutingMapArgs;
  for (const bool drop_and_pad : {false, true}) {
    const BackInputs inputs = BackWithMap(drop_and_pad);
    BackOutputs outputs = MakeOutputs(inputs);
    const Args valid = MapArgsOf(inputs, outputs);
    const std::vector<int> rows = drop_and_pad ? std::vector<int>{} : std::vector{0};
    std::vector<ViewRef<Args>> refs = {Ref("permuted_tokens", &Args::permuted_tokens, rows),
                                       Ref("sorted_indices", &Args::sorted_indices),
                                       Ref("probs", &Args::probs), Ref("tokens", &Args::tokens),
                                       Ref("gathered_probs", &Args::gathered_probs)};
    if (!drop_and_pad) refs.push_back(Ref("routing_map", &Args::routing_map));
    CheckEveryView<Args>(valid, refs, Called(UnpermuteWithRoutingMap));
    if (drop_and_pad) {
      CheckTable(valid, kDropAndPad<Args>, UnpermuteWithRoutingMap);
    } else {
      CheckTable(valid, kNotPadded<Args>, UnpermuteWithRoutingMap);
    }
    const Refusal<Args> both[] = {
        {"NoProbs", [](Args& a) { a.probs.reset(); }, {"gathered_probs", "no probs"}}};
    CheckTable(valid, both, UnpermuteWithRoutingMap);
    EXPECT_TRUE(outputs.tokens.GuardsIntact("tokens"));
    EXPECT_TRUE(outputs.gathered_probs->GuardsIntact("gathered_probs"));
  }
}

TEST(FamilyRefusals, UnpermuteWithRoutingMapGrad) {
  using Args = UnpermuteWithRoutingMapGradArgs;
  for (const bool drop_and_pad : {false, true}) {
    const BackInputs inputs = BackWithMap(drop_and_pad);
    BackGrads outputs = MakeGrads(inputs, {}, Dense);
    const Args valid = MapArgsOf(inputs, outputs);
    std::vector<ViewRef<Args>> refs = {Ref("tokens_grad", &Args::tokens_grad),
                                       Ref("permuted_tokens", &Args::permuted_tokens),
                                       Ref("sorted_indices", &Args::sorted_indices),
                                       Ref("probs", &Args::probs),
                                       Ref("permuted_tokens_grad", &Args::permuted_tokens_grad),
                                       Ref("probs_grad", &Args::probs_grad)};
    if (!drop_and_pad) refs.push_back(Ref("routing_map", &Args::routing_map));
    CheckEveryView<Args>(valid, refs, Called(UnpermuteWithRoutingMapGrad));
    CheckTable(valid, kBackGrad<Args>, UnpermuteWithRoutingMapGrad);
    if (drop_and_pad) {
      CheckTable(valid, kDropAndPad<Args>, UnpermuteWithRoutingMapGrad);
    } else {
      CheckTable(valid, kNotPadded<Args>, UnpermuteWithRoutingMapGrad);
    }
    EXPECT_TRUE(outputs.permuted_tokens_grad->GuardsIntact("permuted_tokens_grad"));
    EXPECT_TRUE(outputs.probs_grad->GuardsIntact("probs_grad"));
  }
}

}  // namespace
}  // namespace moeperm::test
