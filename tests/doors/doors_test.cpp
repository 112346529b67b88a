// SPDX-License-Identifier: Apache-2.0
// Every operator through every door: C++, C, aclnn and the command-line tool, each bit for bit as
// the plain reference. The definitions of the aclnn operators say which operators there are.
#include "doors.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "cann/host/op_def.hpp"
#include "support/fixtures.hpp"

namespace moeperm::test {
namespace {

enum class Door { kCpp, kC, kCann, kCli };

template <class Inputs, class Outputs>
void CallThrough(Door door, const Inputs& inputs, Outputs& outputs) {
  switch (door) {
    case Door::kCpp:
      return cpp_door::Call(inputs, outputs);
    case Door::kC:
      return c_door::Call(inputs, outputs);
    case Door::kCann:
      return cann_door::Call(inputs, outputs);
    case Door::kCli:
      return cli_door::Call(inputs, outputs);
  }
}

// F1 as a map and as a table: the same routes, so the same rows.
ForwardInputs Map() { return NotPadded(F1()); }
Tensor Table() { return Tensor::OfInts(DType::kInt32, {3, 2}, {0, 2, 0, 1, 1, 2}); }
Tensor SortedIndices() { return Tensor::OfInts(DType::kInt32, {6}, {0, 4, 1, 2, 3, 5}); }
Tensor Tokens() { return Tensor::OfFloats(DType::kFloat32, {3, 2}, {1, 10, 2, 20, 3, 30}); }
Tensor SlotProbs() {
  return Tensor::OfFloats(DType::kFloat32, {3, 2}, {.5, .25, .75, .125, .375, .625});
}
// Rows first .. first + count - 1 of six.
Tensor Rows(std::int64_t first, std::int64_t count) {
  const auto begin = kF1TokensGrad.begin() + first * 2;
  return Tensor::OfFloats(DType::kFloat32, {count, 2}, {begin, begin + count * 2});
}
Tensor RowProbs(std::int64_t first, std::int64_t count) {
  const auto begin = kF1ProbsGrad.begin() + first;
  return Tensor::OfFloats(DType::kFloat32, {count}, {begin, begin + count});
}

// Of the rows of the experts elsewhere, a process with EP has none.
struct Range {
  std::int64_t first;
  std::int64_t count;
};
constexpr Range kAll = {0, 6};
constexpr Range kSome = {1, 4};

TableInputs TableCase(const Range& range, bool probs) {
  TableInputs inputs{Tokens(), Table()};
  if (probs) inputs.probs = SlotProbs();
  inputs.num_out_tokens = range.count;
  inputs.first_row = range.first;
  return inputs;
}
TableGradInputs TableGradCase(const Range& range, bool probs) {
  TableGradInputs inputs{.sorted_indices = SortedIndices()};
  inputs.permuted_tokens_grad = Rows(range.first, range.count);
  if (probs) inputs.permuted_probs_grad = RowProbs(range.first, range.count);
  inputs.num_tokens = 3;
  inputs.first_row = range.first;
  return inputs;
}
BackInputs BackCase(const Range& range) {
  BackInputs inputs{Rows(range.first, range.count), Tokens(), SortedIndices(), SlotProbs()};
  inputs.first_row = range.first;
  return inputs;
}
BackInputs BackCaseWithMap() {
  ForwardInputs map = Map();
  BackInputs inputs{Rows(0, 6), Tokens(), SortedIndices(), std::move(map.probs)};
  inputs.with_map = true;
  inputs.routing_map = std::move(map.routing_map);
  return inputs;
}

void Forward(Door door) {
  const ForwardInputs inputs = Map();
  ForwardOutputs outputs = MakeOutputs(inputs);
  CallThrough(door, inputs, outputs);
  const Permuted expected = Reference(inputs);
  if (door != Door::kCann) {
    EXPECT_TRUE(Matches(inputs, outputs, expected));
    return;
  }
  // It has no output for the counts.
  EXPECT_TRUE(Equals("permuted_tokens", outputs.permuted_tokens, expected.tokens));
  EXPECT_TRUE(Equals("permuted_probs", *outputs.permuted_probs, expected.probs));
  EXPECT_TRUE(Equals("sorted_indices", outputs.sorted_indices, expected.sorted_indices));
}
void Grad(Door door) {
  const ForwardInputs map = Map();
  const GradInputs inputs = GradOf(map, RunForward(map), kF1TokensGrad, kF1ProbsGrad);
  GradOutputs outputs = MakeOutputs(inputs);
  CallThrough(door, inputs, outputs);
  EXPECT_TRUE(Matches(inputs, outputs, Reference(inputs)));
}
template <class Inputs>
void CheckTable(Door door, const Inputs& inputs) {
  auto outputs = MakeOutputs(inputs);
  CallThrough(door, inputs, outputs);
  EXPECT_TRUE(Matches(inputs, outputs, Reference(inputs)));
}
void CheckBack(Door door, const BackInputs& inputs) {
  BackOutputs outputs = MakeOutputs(inputs);
  CallThrough(door, inputs, outputs);
  EXPECT_TRUE(Matches(inputs, outputs, Reference(inputs)));
}
void CheckBackGrad(Door door, const BackInputs& inputs) {
  BackGrads outputs = MakeGrads(inputs, {}, Dense);
  CallThrough(door, inputs, outputs);
  EXPECT_TRUE(Matches(inputs, outputs, ReferenceOfGrads(inputs)));
}

struct Operator {
  std::string_view type;
  void (*check)(Door door);
};
constexpr std::array kOperators = {
    Operator{"MoeTokenPermuteWithRoutingMap", Forward},
    Operator{"MoeTokenPermuteWithRoutingMapGrad", Grad},
    Operator{"MoeTokenUnpermuteWithRoutingMap",
             [](Door door) { CheckBack(door, BackCaseWithMap()); }},
    Operator{"MoeTokenUnpermuteWithRoutingMapGrad",
             [](Door door) { CheckBackGrad(door, BackCaseWithMap()); }},
    Operator{"MoeTokenPermute", [](Door door) { CheckTable(door, TableCase(kAll, false)); }},
    Operator{"MoeTokenPermuteGrad",
             [](Door door) { CheckTable(door, TableGradCase(kAll, false)); }},
    Operator{"MoeTokenUnpermute", [](Door door) { CheckBack(door, BackCase(kAll)); }},
    Operator{"MoeTokenUnpermuteGrad", [](Door door) { CheckBackGrad(door, BackCase(kAll)); }},
    Operator{"MoeTokenPermuteWithEp", [](Door door) { CheckTable(door, TableCase(kSome, true)); }},
    Operator{"MoeTokenPermuteWithEpGrad",
             [](Door door) { CheckTable(door, TableGradCase(kSome, true)); }},
    Operator{"MoeTokenUnpermuteWithEp", [](Door door) { CheckBack(door, BackCase(kSome)); }},
    Operator{"MoeTokenUnpermuteWithEpGrad",
             [](Door door) { CheckBackGrad(door, BackCase(kSome)); }},
};

TEST(Doors, EveryOperatorIsHere) {
  for (const cann::host::OpDef& op : cann::host::Ops()) {
    EXPECT_EQ(std::ranges::count(kOperators, op.type, &Operator::type), 1) << op.type;
  }
  EXPECT_EQ(cann::host::Ops().size(), kOperators.size());
}

class Doors : public testing::TestWithParam<std::tuple<Operator, Door>> {};

TEST_P(Doors, GiveTheBitsOfTheReference) {
  const auto& [op, door] = GetParam();
  op.check(door);
}

std::string NameOf(const testing::TestParamInfo<Doors::ParamType>& info) {
  constexpr std::array kNames = {"Cpp", "C", "Aclnn", "Tool"};
  const auto& [op, door] = info.param;
  return std::string(op.type) + "_" + kNames[static_cast<std::size_t>(door)];
}

INSTANTIATE_TEST_SUITE_P(All, Doors,
                         testing::Combine(testing::ValuesIn(kOperators),
                                          testing::Values(Door::kCpp, Door::kC, Door::kCann,
                                                          Door::kCli)),
                         NameOf);

}  // namespace
}  // namespace moeperm::test
