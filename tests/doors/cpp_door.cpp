// SPDX-License-Identifier: Apache-2.0
#include "doors.hpp"

namespace moeperm::test::cpp_door {
namespace {

void ExpectOk(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

}  // namespace

void Call(const ForwardInputs& inputs, ForwardOutputs& outputs) {
  ExpectOk(PermuteWithRoutingMap(ArgsOf(inputs, outputs)));
}
void Call(const GradInputs& inputs, GradOutputs& outputs) {
  ExpectOk(PermuteWithRoutingMapGrad(ArgsOf(inputs, outputs)));
}
void Call(const TableInputs& inputs, TableOutputs& outputs) {
  ExpectOk(Permute(ArgsOf(inputs, outputs)));
}
void Call(const TableGradInputs& inputs, TableGrads& outputs) {
  ExpectOk(PermuteGrad(ArgsOf(inputs, outputs)));
}
void Call(const BackInputs& inputs, BackOutputs& outputs) {
  ExpectOk(test::Call(inputs, outputs, Context::Default()));
}
void Call(const BackInputs& inputs, BackGrads& outputs) {
  ExpectOk(test::Call(inputs, outputs, Context::Default()));
}

}  // namespace moeperm::test::cpp_door
