// SPDX-License-Identifier: Apache-2.0
// The two operators with files behind their arguments; for the commands that run them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/attributes.hpp"
#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/tensors.hpp"

namespace moeperm::cli {

// Seconds of a call, a callable returning Status; throws io::Error, which names the file `path`
// where all arguments are from it.
template <class Call>
double Time(const char* label, const Call& call, std::string_view path = {}) {
  const Progress progress(label);
  const auto start = std::chrono::steady_clock::now();
  ThrowUnlessOk(call(), path);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct ForwardInputs {
  ForwardInputs(const io::SafetensorsFile& file, const AttributeOptions& options);

  std::string path;
  InputTensor tokens;
  InputTensor routing_map;
  std::optional<InputTensor> probs;
  Attributes attributes;
};

// Without outputs.
PermuteWithRoutingMapArgs ForwardArgs(const ForwardInputs& inputs);

class ForwardOutputs {
 public:
  // What the inputs view must outlive it; so in GradOutputs.
  ForwardOutputs(const ForwardInputs& inputs, DType index_dtype);
  // Seconds of the call; throws io::Error.
  double Run(const Context& context);
  [[nodiscard]] std::vector<OwnedTensor>& tensors() noexcept { return tensors_; }

 private:
  std::string path_;
  PermuteWithRoutingMapArgs args_;
  std::vector<OwnedTensor> tensors_;  // in the order of the arguments
};

class GradOutputs {
 public:
  // `args` without outputs; every gradient whose input is there is computed.
  explicit GradOutputs(const PermuteWithRoutingMapGradArgs& args);
  double Run(const Context& context);
  [[nodiscard]] std::vector<OwnedTensor>& tensors() noexcept { return tensors_; }

 private:
  PermuteWithRoutingMapGradArgs args_;
  std::vector<OwnedTensor> tensors_;
};

// Writes the outputs and prints what was written.
int WriteResult(std::string_view command, const std::string& path,
                const std::vector<OwnedTensor>& tensors, const io::Metadata& metadata,
                double seconds, const Globals& globals);

}  // namespace moeperm::cli
