// SPDX-License-Identifier: Apache-2.0
// From the structs of the C ABI to those of the C++ API and back. A new operator is a Face of its
// args, one Give of its specs, and its functions in capi.cpp.
#pragma once

#include "capi/struct_size.hpp"
#include "moeperm/moeperm.h"
#include "moeperm/moeperm.hpp"

namespace moeperm::capi {

enum class Outputs { kNeeded, kIgnored };  // ignored: by the infer functions

// Face<struct of the C ABI>::Cpp is its C++ twin, Convert fills that.
template <class T>
struct Face;

// NOLINTBEGIN(bugprone-macro-parentheses): types
#define MOEPERM_FACE(c_type, cpp_type, last_field_of_first_version)           \
  MOEPERM_FIRST_VERSION_ENDS_WITH(c_type, last_field_of_first_version);       \
  template <>                                                                 \
  struct Face<c_type> {                                                       \
    using Cpp = cpp_type;                                                     \
    static Status Convert(const c_type& from, cpp_type* to, Outputs outputs); \
  }
// NOLINTEND(bugprone-macro-parentheses)

MOEPERM_FACE(moeperm_context_options, ContextOptions, isa);
MOEPERM_FACE(moeperm_row_map_options, RowMapOptions, num_rows);
MOEPERM_FACE(moeperm_permute_with_routing_map_args, PermuteWithRoutingMapArgs, expert_offsets);
MOEPERM_FACE(moeperm_permute_with_routing_map_grad_args, PermuteWithRoutingMapGradArgs, probs_grad);
MOEPERM_FACE(moeperm_permute_by_row_map_args, PermuteByRowMapArgs, permuted_probs);
MOEPERM_FACE(moeperm_permute_by_row_map_grad_args, PermuteByRowMapGradArgs, probs_grad);
MOEPERM_FACE(moeperm_permute_args, PermuteArgs, tokens_per_expert);
MOEPERM_FACE(moeperm_permute_grad_args, PermuteGradArgs, probs_grad);
MOEPERM_FACE(moeperm_unpermute_args, UnpermuteArgs, tokens);
MOEPERM_FACE(moeperm_unpermute_grad_args, UnpermuteGradArgs, probs_grad);
MOEPERM_FACE(moeperm_unpermute_with_routing_map_args, UnpermuteWithRoutingMapArgs, gathered_probs);
MOEPERM_FACE(moeperm_unpermute_with_routing_map_grad_args, UnpermuteWithRoutingMapGradArgs,
             probs_grad);
MOEPERM_FACE(moeperm_unpermute_by_row_map_args, UnpermuteByRowMapArgs, round_products);
MOEPERM_FACE(moeperm_unpermute_by_row_map_grad_args, UnpermuteByRowMapGradArgs, probs_grad);
MOEPERM_FACE(moeperm_sort_chunks_args, SortChunksArgs, sorted_probs);
MOEPERM_FACE(moeperm_sort_chunks_grad_args, SortChunksGradArgs, probs_grad);
#undef MOEPERM_FACE

MOEPERM_FIRST_VERSION_ENDS_WITH(moeperm_permute_with_routing_map_specs, expert_offsets);
MOEPERM_FIRST_VERSION_ENDS_WITH(moeperm_permute_with_routing_map_grad_specs, probs_grad);
MOEPERM_FIRST_VERSION_ENDS_WITH(moeperm_permute_specs, sorted_indices);

template <class C>
Status Read(std::string_view name, const C* from, typename Face<C>::Cpp* to,
            Outputs outputs = Outputs::kNeeded) {
  C known{};
  MOEPERM_TRY(ReadStruct(name, from, &known));
  return Face<C>::Convert(known, to, outputs);
}

ConstTensorView View(const moeperm_tensor& tensor) noexcept;

void Give(const PermuteWithRoutingMapSpecs& from, moeperm_permute_with_routing_map_specs* to);
void Give(const PermuteWithRoutingMapGradSpecs& from,
          moeperm_permute_with_routing_map_grad_specs* to);
void Give(const PermuteSpecs& from, moeperm_permute_specs* to);

}  // namespace moeperm::capi
