// SPDX-License-Identifier: Apache-2.0
// One call, through each of the library's doors. Inputs and outputs are dense; a call that does not
// succeed is a failure of the test.
//
// An operator a door lacks is an overload it lacks, and no test is built. Tables of expert numbers
// and their ways back with `first_row` are those "with EP".
#pragma once

#include "support/family.hpp"
#include "support/pair.hpp"

namespace moeperm::test {

#define MOEPERM_TEST_DOOR(name)                                    \
  namespace name {                                                 \
  void Call(const ForwardInputs& inputs, ForwardOutputs& outputs); \
  void Call(const GradInputs& inputs, GradOutputs& outputs);       \
  void Call(const TableInputs& inputs, TableOutputs& outputs);     \
  void Call(const TableGradInputs& inputs, TableGrads& outputs);   \
  void Call(const BackInputs& inputs, BackOutputs& outputs);       \
  void Call(const BackInputs& inputs, BackGrads& outputs);         \
  }
MOEPERM_TEST_DOOR(cpp_door)
MOEPERM_TEST_DOOR(c_door)
MOEPERM_TEST_DOOR(cann_door)
MOEPERM_TEST_DOOR(cli_door)
#undef MOEPERM_TEST_DOOR

// The inputs as something that may be written: doors of C take no const.
inline TensorView Writable(const Tensor& tensor) { return const_cast<Tensor&>(tensor).out(); }

}  // namespace moeperm::test
