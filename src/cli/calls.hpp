// SPDX-License-Identifier: Apache-2.0
// The index form and the ways back: outputs made for arguments that have none yet, and the call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/attributes.hpp"
#include "cli/tensors.hpp"
#include "moeperm/moeperm.hpp"

namespace moeperm::cli {

struct IndexInputs {
  IndexInputs(const io::SafetensorsFile& file, const AttributeOptions& options);

  std::string path;
  InputTensor tokens;
  InputTensor indices;
  std::optional<InputTensor> probs;
  Attributes attributes;
};

// The outputs of a call, in the order of its arguments, and how long it took.
struct Called {
  std::vector<OwnedTensor> tensors;
  double seconds = 0;
};

// All throw io::Error, which names the file `path` where all arguments are from it. Every gradient
// whose input is there is computed, where the arguments are of
// a gradient.
Called Call(const IndexInputs& inputs, DType index_dtype, const Context& context);
Called Call(PermuteGradArgs args, const Context& context, std::string_view path = {});
Called Call(UnpermuteArgs args, std::int64_t tokens, const Context& context,
            std::string_view path = {});
Called Call(UnpermuteWithRoutingMapArgs args, std::int64_t tokens, const Context& context,
            std::string_view path = {});

enum class Only { kBoth, kTokens, kProbs };  // which of the two gradients
Called Call(UnpermuteGradArgs args, std::int64_t rows, Only only, const Context& context,
            std::string_view path = {});
Called Call(UnpermuteWithRoutingMapGradArgs args, std::int64_t rows, Only only,
            const Context& context, std::string_view path = {});

}  // namespace moeperm::cli
