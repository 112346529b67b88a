// SPDX-License-Identifier: Apache-2.0
// The way back over a row map: worked examples, there and back, adjoint gradients, refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/contexts.hpp"
#include "support/family_random.hpp"
#include "support/fixtures.hpp"
#include "support/refusal.hpp"
#include "support/row_map.hpp"

namespace moeperm::test {
namespace {

using Floats = std::vector<float>;

MapInputs F1Map(const RowMapOptions& options = {}) {
  return {Copy(NotPadded(F1()).routing_map), Tensor(DType::kFloat32, {3, 3}), options};
}

BackOutputs RunBack(const RowMap& map, const BackInputs& inputs,
                    const Context& context = Context::Default()) {
  BackOutputs outputs = MakeOutputs(inputs);
  const Status status = UnpermuteByRowMap(map, ByRowMapArgsOf(inputs, outputs), context);
  EXPECT_TRUE(status.ok()) << status.message();
  return outputs;
}

BackGrads RunBackGrad(const RowMap& map, const BackInputs& inputs,
                      const Context& context = Context::Default()) {
  BackGrads outputs = MakeGrads(inputs, {}, Dense);
  const Status status = UnpermuteByRowMapGrad(map, ByRowMapArgsOf(inputs, outputs), context);
  EXPECT_TRUE(status.ok()) << status.message();
  return outputs;
}

// Experts' rows aligned to 3: NaN in the rows without a token spreads nowhere.
TEST(RowMapBack, AlignedRowsOfNoTokenTakeNoPart) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const MapInputs map = F1Map({.align = 3});
  const BackInputs back =
      BackOver(map, map.Reference(),
               Tensor::OfFloats(DType::kFloat32, {9, 1}, {1, 2, nan, 4, 8, nan, 16, 32, nan}),
               Tensor::OfFloats(DType::kFloat32, {3, 1}, {1, 2, 3}),
               Tensor::OfFloats(DType::kFloat16, {3, 3}, {.5, nan, .25, 2, .125, nan, nan, 0, 4}));
  const RowMap row_map = map.Build();
  EXPECT_EQ(RunBack(row_map, back).tokens.Floats(), (Floats{4.5, 4.5, 128}));
  const BackGrads grads = RunBackGrad(row_map, back);
  EXPECT_EQ(grads.permuted_tokens_grad->Floats(), (Floats{.5, 4, 0, .25, 0, 0, .25, 12, 0}));
  EXPECT_EQ(grads.probs_grad->Floats(), (Floats{1, 0, 16, 4, 8, 0, 0, 24, 96}));
}

// The pad row of F4 adds the prob of its token and expert; masked, it adds nothing.
TEST(RowMapBack, PadRowsAndMaskedOnes) {
  const ForwardInputs forward = DropAndPad(F4(), 2);
  for (const bool mask_pads : {false, true}) {
    MapInputs map{Copy(forward.routing_map), Tensor(DType::kFloat32, {4, 2}),
                  RowMapOptionsOf(forward)};
    map.options.mask_pads = mask_pads;
    const BackInputs back =
        BackOver(map, map.Reference(), Tensor::OfFloats(DType::kFloat32, {4, 1}, {1, 2, 4, 8}),
                 Tensor::OfFloats(DType::kFloat32, {4, 1}, {1, 2, 3, 4}),
                 Tensor::OfFloats(DType::kFloat32, {4, 2}, {.5, 3, .25, .75, 1, 0, 0, 0}));
    const RowMap row_map = map.Build();
    EXPECT_EQ(RunBack(row_map, back).tokens.Floats(), (Floats{mask_pads ? .5F : 24.5F, 3.5, 0, 0}));
    const BackGrads grads = RunBackGrad(row_map, back);
    EXPECT_EQ(grads.permuted_tokens_grad->Floats(), (Floats{.5, .5, 1.5, mask_pads ? 0.F : 3.F}));
    EXPECT_EQ(grads.probs_grad->Floats(), (Floats{1, mask_pads ? 0.F : 8.F, 4, 8, 0, 0, 0, 0}));
  }
}

// The slots of a token: its routes with a row, and how many of them it has.
std::vector<std::vector<std::int64_t>> ExpertsOfTokens(const moeperm_reference::PlainRowMap& plain,
                                                       std::int64_t tokens) {
  std::vector<std::vector<std::int64_t>> experts(static_cast<std::size_t>(tokens));
  for (const moeperm_reference::Slot& slot : plain.slots) {
    if (slot.row >= 0) experts[static_cast<std::size_t>(slot.token)].push_back(slot.column);
  }
  return experts;
}

// Weights 1/2, 1/4, ..., the last two equal: they sum to one and every partial sum is exact.
TEST(RowMapBack, ThereAndBackIsNothing) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::int64_t tokens = 1 + random.Below(20);
    const std::int64_t experts = 1 + random.Below(6);
    const MapInputs map = AnyMap(random, tokens, experts);
    const moeperm_reference::PlainRowMap plain = map.Reference();
    const DType dtype = AnyFloat(random);
    Tensor x(dtype, {tokens, 1 + random.Below(70)});
    FillSmallIntegers(random, x);
    Tensor probs(DType::kFloat32, {tokens, experts});
    const auto of_token = ExpertsOfTokens(plain, tokens);
    for (std::int64_t token = 0; token < tokens; ++token) {
      const auto& slots = of_token[static_cast<std::size_t>(token)];
      for (std::size_t k = 0; k < slots.size(); ++k) {
        const auto power = static_cast<int>(std::min(k + 1, slots.size() - 1));
        const float weight = std::ldexp(1.0F, -power);
        probs.SetBits(token, slots[k], moeperm_reference::Narrow(Type::kFloat32, weight));
      }
      for (std::int64_t h = 0; slots.empty() && h < x.cols(); ++h) x.SetBits(token, h, 0);
    }
    x.Freeze();
    probs.Freeze();
    const Context& context =
        ContextOf(random.OneOf({AvailableIsas().front(), AvailableIsas().back()}), 2);
    const RowMap row_map = map.Build(context);
    Tensor rows(dtype, {row_map.num_rows(), x.cols()});
    ASSERT_TRUE(
        PermuteByRowMap(row_map, {x.in(), std::nullopt, rows.out(), std::nullopt}, context).ok());
    rows.Freeze();
    const BackInputs back = BackOver(map, plain, std::move(rows), Copy(x), std::move(probs));
    ASSERT_TRUE(Equals("tokens", RunBack(row_map, back, context).tokens, x));
  }
}

// Small integers: every sum and product is exact.
Tensor Small(Random& random, DType dtype, std::vector<std::int64_t> shape) {
  Tensor tensor(dtype, std::move(shape));
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const auto value = static_cast<float>(random.Below(7) - 3);
    tensor.SetBits(i / tensor.cols(), i % tensor.cols(),
                   moeperm_reference::Narrow(ToType(dtype), value));
  }
  tensor.Freeze();
  return tensor;
}

double Dot(const Tensor& a, const Tensor& b) {
  const Floats x = a.Floats();
  const Floats y = b.Floats();
  EXPECT_EQ(x.size(), y.size());
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += double{x[i]} * double{y[i]};
  return sum;
}

// tokens = U(rows, probs) is linear in each: <U(r, p), y> == <r, dU/dr y> == <p, dU/dp y>.
TEST(RowMapBack, GradientsAreAdjoint) {
  double seen = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::int64_t tokens = 1 + random.Below(30);
    const std::int64_t experts = 1 + random.Below(6);
    const std::int64_t hidden = 1 + random.Below(8);
    const MapInputs map = AnyMap(random, tokens, experts);
    const moeperm_reference::PlainRowMap plain = map.Reference();
    const DType dtype = AnyFloat(random);
    const Context& context = ContextOf(AvailableIsas().front(), random.OneOf({1, 3}));
    const RowMap row_map = map.Build(context);
    const BackInputs back =
        BackOver(map, plain, Small(random, dtype, {row_map.num_rows(), hidden}),
                 Small(random, dtype, {tokens, hidden}), Small(random, dtype, {tokens, experts}));
    const BackGrads grads = RunBackGrad(row_map, back, context);
    const double product = Dot(RunBack(row_map, back, context).tokens, back.tokens);
    ASSERT_EQ(product, Dot(back.rows, *grads.permuted_tokens_grad));
    ASSERT_EQ(product, Dot(*back.probs, *grads.probs_grad));
    seen += std::abs(product);
  }
  EXPECT_GT(seen, 0);
}

TEST(RowMapBack, TheDefaultRowMap) {
  float untouched = 5;
  UnpermuteByRowMapArgs args;
  args.permuted_tokens = ConstTensorView(&untouched, {0, 4});
  args.tokens = TensorView(&untouched, {0, 4});
  EXPECT_TRUE(UnpermuteByRowMap(RowMap(), args).ok());
  EXPECT_EQ(untouched, 5);
}

BackInputs ValidBack() {
  const MapInputs map = F1Map();
  return BackOver(map, map.Reference(), Counting(DType::kFloat32, {6, 2}),
                  Counting(DType::kFloat32, {3, 2}), Counting(DType::kFloat16, {3, 3}));
}

template <class Args, std::size_t kSize, class Outputs, class Run>
void CheckRefusals(const Refusal<Args> (&table)[kSize], Outputs& outputs, const BackInputs& back,
                   const Run& run) {
  ASSERT_TRUE(run(ByRowMapArgsOf(back, outputs)).ok());
  for (const Refusal<Args>& refusal : table) {
    SCOPED_TRACE(refusal.name);
    Args args = ByRowMapArgsOf(back, outputs);
    refusal.spoil(args);
    ExpectRefused(run(args), refusal.code, refusal.says);
  }
}

using Forward = UnpermuteByRowMapArgs;
const Refusal<Forward> kForward[] = {
    {"Nothing", [](Forward& a) { a = {}; }, {"permuted_tokens", "never set"}},
    {"NoTokens", [](Forward& a) { a.tokens = {}; }, {"tokens", "never set"}},
    {"OtherRows",
     [](Forward& a) {
       a.permuted_tokens = Reshaped(a.permuted_tokens, {5, 2});
     },
     {"permuted_tokens.shape[0] = 5", "6"}},
    {"OtherTokens",
     [](Forward& a) {
       a.tokens = Reshaped(a.tokens, {2, 2});
     },
     {"tokens.shape[0] = 2", "3"}},
    {"OtherHidden",
     [](Forward& a) {
       a.tokens = Reshaped(a.tokens, {3, 1});
     },
     {"tokens.shape[1] = 1", "2"}},
    {"OtherDType",
     [](Forward& a) { a.tokens = Retyped(a.tokens, DType::kBFloat16); },
     {"tokens", "bfloat16", "float32"}},
    {"ProbsASlot",
     [](Forward& a) {
       a.probs = Reshaped(*a.probs, {3, 2});
     },
     {"probs.shape[1] = 2", "3"}},
    {"IntegerProbs", [](Forward& a) { a.probs = Retyped(*a.probs, DType::kInt8); }, {"probs"}},
    {"InPlace",
     [](Forward& a) {
       a.permuted_tokens = AtAddress(a.permuted_tokens, static_cast<const void*>(a.tokens.data()));
     },
     {"tokens", "permuted_tokens", "overlaps"}},
};

TEST(RowMapBack, ForwardRefusals) {
  const BackInputs back = ValidBack();
  BackOutputs outputs = MakeOutputs(back);
  const RowMap map = F1Map().Build();
  CheckRefusals(kForward, outputs, back,
                [&](const Forward& args) { return UnpermuteByRowMap(map, args); });
  EXPECT_EQ(UnpermuteByRowMap(map, {}, Context({.num_threads = -1})).code(),
            Code::kInvalidArgument);
}

using Grad = UnpermuteByRowMapGradArgs;
const Refusal<Grad> kGrad[] = {
    {"Nothing", [](Grad& a) { a = {}; }, {"permuted_tokens_grad, probs_grad"}},
    {"NoTokensGrad", [](Grad& a) { a.tokens_grad = {}; }, {"tokens_grad", "never set"}},
    {"OtherTokens",
     [](Grad& a) {
       a.tokens_grad = Reshaped(a.tokens_grad, {2, 2});
     },
     {"tokens_grad.shape[0] = 2", "3"}},
    {"NoProbs", [](Grad& a) { a.probs.reset(); }, {"probs", "probs_grad is wanted"}},
    {"NoRows", [](Grad& a) { a.permuted_tokens.reset(); }, {"permuted_tokens", "missing"}},
    {"OtherRows",
     [](Grad& a) {
       a.permuted_tokens = Reshaped(*a.permuted_tokens, {5, 2});
     },
     {"permuted_tokens.shape[0] = 5", "6"}},
    {"OtherRowsDType",
     [](Grad& a) { a.permuted_tokens = Retyped(*a.permuted_tokens, DType::kFloat16); },
     {"permuted_tokens", "float16", "float32"}},
    {"OtherRowsGrad",
     [](Grad& a) {
       a.permuted_tokens_grad = Reshaped(*a.permuted_tokens_grad, {6, 1});
     },
     {"permuted_tokens_grad.shape[1] = 1", "2"}},
    {"OtherExperts",
     [](Grad& a) {
       a.probs_grad = Reshaped(*a.probs_grad, {3, 2});
     },
     {"probs_grad.shape[1] = 2", "3"}},
    {"ProbsGradDType",
     [](Grad& a) { a.probs_grad = Retyped(*a.probs_grad, DType::kBFloat16); },
     {"probs_grad", "bfloat16", "float16"}},
    {"InPlace",
     [](Grad& a) {
       a.permuted_tokens_grad =
           AtAddress(*a.permuted_tokens_grad, const_cast<void*>(a.permuted_tokens->data()));
     },
     {"permuted_tokens_grad", "permuted_tokens", "overlaps"}},
};

TEST(RowMapBack, BackwardRefusals) {
  const BackInputs back = ValidBack();
  BackGrads outputs = MakeGrads(back, {}, Dense);
  const RowMap map = F1Map().Build();
  CheckRefusals(kGrad, outputs, back,
                [&](const Grad& args) { return UnpermuteByRowMapGrad(map, args); });
}

}  // namespace
}  // namespace moeperm::test
