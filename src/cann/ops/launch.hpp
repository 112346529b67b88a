// SPDX-License-Identifier: Apache-2.0
// Phase 2 of an operator: its tensors resolved, its outputs planned, its computation to come.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "cann/objects/executor.hpp"
#include "cann/ops/view.hpp"

namespace moeperm::cann {

class Launch {
 public:
  Status Input(const TensorArg& arg, View* view) {
    Status status = Resolve(arg, view);
    if (status.ok()) inputs_.push_back(*view);
    return status;
  }
  // Of an output that takes no results: all of it gets 0.
  void Zero(View view) { zeros_.push_back(std::move(view)); }
  // The output stays where it is.
  Output& Add(Output output) { return outputs_.emplace_back(std::move(output)); }

  // Runs on the stream, between the outputs' Begin and Finish.
  std::function<Status()> compute;

  // The work of a launch that is complete.
  static Work Finish(std::shared_ptr<Launch> launch);

 private:
  Status Run();

  std::vector<View> inputs_;
  std::vector<View> zeros_;
  std::deque<Output> outputs_;
};

}  // namespace moeperm::cann
