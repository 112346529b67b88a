// SPDX-License-Identifier: Apache-2.0
// The index form and the ways back: outputs made for arguments that have none yet, and the call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/attributes.hpp"
#include "cli/tensors.hpp"
#include "moeperm/moeperm.hpp"

namespace moeperm::cli {

struct IndexInputs {
  IndexInputs(const io::SafetensorsFile& file, const AttributeOptions& options);

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

// All throw io::Error. Every gradient whose input is there is computed, where the arguments are of
// a gradient.
Called Call(const IndexInputs& inputs, DType index_dtype, const Context& context);
Called Call(PermuteGradArgs args, const Context& context);
Called Call(UnpermuteArgs args, std::int64_t tokens, const Context& context);
Called Call(UnpermuteWithRoutingMapArgs args, std::int64_t tokens, const Context& context);

enum class Only { kBoth, kTokens, kProbs };  // which of the two gradients
Called Call(UnpermuteGradArgs args, std::int64_t rows, Only only, const Context& context);
Called Call(UnpermuteWithRoutingMapGradArgs args, std::int64_t rows, Only only,
            const Context& context);

}  // namespace moeperm::cli
