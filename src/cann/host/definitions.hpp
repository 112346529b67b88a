// SPDX-License-Identifier: Apache-2.0
// The definition of each operator, one in each file of the operator's name; op_def.cpp has the
// table.
#pragma once

#include "cann/host/op_def.hpp"

namespace moeperm::cann::host {

OpDef MoeTokenPermuteWithRoutingMap();
OpDef MoeTokenPermuteWithRoutingMapGrad();
OpDef MoeTokenUnpermuteWithRoutingMap();
OpDef MoeTokenUnpermuteWithRoutingMapGrad();
OpDef MoeTokenPermute();
OpDef MoeTokenPermuteWithEp();
OpDef MoeTokenPermuteGrad();
OpDef MoeTokenUnpermute();
OpDef MoeTokenUnpermuteGrad();
OpDef MoeTokenPermuteWithEpGrad();
OpDef MoeTokenUnpermuteWithEp();
OpDef MoeTokenUnpermuteWithEpGrad();

}  // namespace moeperm::cann::host
