// SPDX-License-Identifier: Apache-2.0
#include "cann/ops/launch.hpp"

#include <utility>

#include "base/status_macros.hpp"

namespace moeperm::cann {

Work Launch::Finish(std::shared_ptr<Launch> launch) {
  for (Output& output : launch->outputs_) {
    for (const View& input : launch->inputs_) output.AvoidOverlap(input);
    for (const Output& other : launch->outputs_) {
      if (&other != &output) output.AvoidOverlap(other.view());
    }
    for (const View& zero : launch->zeros_) output.AvoidOverlap(zero);
  }
  return [launch = std::move(launch)] { return launch->Run(); };
}

// Zeros are written last: no input is read after it.
Status Launch::Run() {
  if (compute) MOEPERM_TRY(compute());
  for (Output& output : outputs_) output.Finish();
  for (const View& zero : zeros_) FillZero(zero);
  return {};
}

}  // namespace moeperm::cann
