// SPDX-License-Identifier: Apache-2.0
// An operator's two phases. Phase 1 is a struct of its arguments that checks itself; phase 2 binds
// it to a launch: its tensors resolved, its outputs planned, its computation to come.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/status_macros.hpp"
#include "cann/objects/executor.hpp"
#include "cann/objects/messages.hpp"
#include "cann/ops/messages.hpp"
#include "cann/ops/view.hpp"

namespace moeperm::cann {

class Launch {
 public:
  explicit Launch(const Api& api) : api_(api) {}

  Status Input(const TensorArg& arg, View* view);
  // An input of any rank as a matrix, loaded by the computation; it stays where it is.
  Reshaped& AddReshaped(Reshaped input) { return reshaped_.emplace_back(std::move(input)); }
  // All of an output that takes no results gets 0. One that the program hands over without meaning
  // it (null, no address, no dtype) is left alone.
  Status Zero(const TensorArg& arg);
  void Zero(View view) { zeros_.push_back(std::move(view)); }
  // An output of rows x cols results, `why`; refused where it does not hold them. It stays where it
  // is.
  Status AddOutput(const TensorArg& arg, std::int64_t rows, std::int64_t cols, std::string_view why,
                   Output** output);

  // Runs on the stream, between the outputs' Begin and Finish.
  std::function<Status()> compute;

  // The work of a launch that is complete.
  static Work Finish(std::shared_ptr<Launch> launch);

 private:
  Status Run();

  Api api_;
  std::vector<View> inputs_;
  std::vector<View> zeros_;
  std::deque<Output> outputs_;
  std::deque<Reshaped> reshaped_;
};

// Phase 1. A Call has `int Check()`, which looks its arguments up too, and
// `Status Bind(Launch*) const`.
template <class Call>
int Prepare(const Api& api, Call call, std::uint64_t* workspace_size,
            aclOpExecutor** executor) noexcept try {
  if (api.results_first) MOEPERM_CANN_TRY(CheckResults(api.name, workspace_size, executor));
  MOEPERM_CANN_TRY(call.Check());
  const auto bind = [api, call = std::move(call)](Work* work) -> Status {
    auto launch = std::make_shared<Launch>(api);
    if (const Status status = call.Bind(launch.get()); !status.ok()) {
      return op_msg::Translated(status, api.names);
    }
    *work = Launch::Finish(std::move(launch));
    return {};
  };
  return MakeExecutor(api.name, bind, 0, workspace_size, executor);
} catch (...) {
  return object_msg::OutOfMemory(api.name);
}

}  // namespace moeperm::cann
