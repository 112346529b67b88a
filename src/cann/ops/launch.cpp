// SPDX-License-Identifier: Apache-2.0
#include "cann/ops/launch.hpp"

#include <utility>

#include "base/status_macros.hpp"

namespace moeperm::cann {

Status Launch::Input(const TensorArg& arg, View* view) {
  MOEPERM_TRY(Resolve(arg, view));
  inputs_.push_back(*view);
  return {};
}

Status Launch::Zero(const TensorArg& arg) {
  if (!arg || arg.tensor->data() == nullptr || !DTypeKnown(arg)) return {};
  View view;
  MOEPERM_TRY(Resolve(arg, &view));
  Zero(std::move(view));
  return {};
}

Status Launch::AddOutput(const TensorArg& arg, std::int64_t rows, std::int64_t cols,
                         std::string_view why, Output** output) {
  View view;
  MOEPERM_TRY(Resolve(arg, &view));
  if (!Output::Fits(view, rows, cols)) {
    return op_msg::DoesNotFit(arg.name, view.dims, rows, cols, why);
  }
  *output = &outputs_.emplace_back(std::move(view), rows, cols);
  return {};
}

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
  if (compute) {
    if (const Status status = compute(); !status.ok()) {
      return op_msg::OfWork(api_.name, status, api_.names);
    }
  }
  for (Output& output : outputs_) output.Finish();
  for (const View& zero : zeros_) FillZero(zero);
  return {};
}

}  // namespace moeperm::cann
