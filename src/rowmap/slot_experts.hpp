// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/buffer.hpp"
#include "base/context.hpp"
#include "moeperm/tensor.hpp"

namespace moeperm {

// The expert of each slot t * top_k + k: token t's k-th in the map, ascending; -1 where it has
// fewer. [tokens * top_k]. The lowest token with more than top_k routes is an error.
Status FindSlotExperts(const Context::Impl& context, const ConstTensorView& map, std::int64_t top_k,
                       Buffer<std::int32_t>* slot_experts);

}  // namespace moeperm
