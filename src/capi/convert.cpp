// SPDX-License-Identifier: Apache-2.0
#include "capi/convert.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>

namespace moeperm::capi {
namespace {

template <class View>
View MakeView(const moeperm_tensor& tensor) noexcept {
  const auto dtype = static_cast<DType>(tensor.dtype);
  if (tensor.rank < 0 || tensor.rank > MOEPERM_MAX_RANK) {
    // Strides that do not match the shape: the view that every operator refuses.
    return View(tensor.data, dtype, std::span(tensor.shape, 1), {});
  }
  const auto rank = static_cast<std::size_t>(tensor.rank);
  return View(tensor.data, dtype, std::span(tensor.shape, rank), std::span(tensor.strides, rank));
}

// Take: one field, by the type it has in C++.
Status Take(std::string_view name, const moeperm_tensor* from, ConstTensorView* to, Outputs) {
  if (from == nullptr) return msg::Missing(name, "it is a null pointer");
  *to = View(*from);
  return {};
}
Status Take(std::string_view, const moeperm_tensor* from, std::optional<ConstTensorView>* to,
            Outputs) {
  if (from != nullptr) *to = View(*from);
  return {};
}
Status Take(std::string_view name, const moeperm_tensor* from, TensorView* to, Outputs outputs) {
  if (outputs == Outputs::kIgnored) return {};
  if (from == nullptr) return msg::Missing(name, "it is a null pointer");
  *to = MakeView<TensorView>(*from);
  return {};
}
Status Take(std::string_view, const moeperm_tensor* from, std::optional<TensorView>* to,
            Outputs outputs) {
  if (outputs == Outputs::kNeeded && from != nullptr) *to = MakeView<TensorView>(*from);
  return {};
}
Status Take(std::string_view, std::int64_t from, std::int64_t* to, Outputs) {
  *to = from;
  return {};
}
Status Take(std::string_view, std::int32_t from, int* to, Outputs) {
  *to = from;
  return {};
}
Status Take(std::string_view, std::int32_t from, bool* to, Outputs) {
  *to = from != 0;
  return {};
}
Status Take(std::string_view, std::int64_t from, bool* to, Outputs) {
  *to = from != 0;
  return {};
}
Status Take(std::string_view name, std::int32_t from, KeepPolicy* to, Outputs) {
  if (from != MOEPERM_KEEP_FIRST && from != MOEPERM_KEEP_HIGHEST_PROB) {
    return msg::NotAmong(name, from, MOEPERM_KEEP_FIRST, MOEPERM_KEEP_HIGHEST_PROB);
  }
  *to = static_cast<KeepPolicy>(from);
  return {};
}
Status Take(std::string_view, const char* from, std::string* to, Outputs) {
  if (from != nullptr) *to = from;
  return {};
}

moeperm_tensor_spec ToSpec(const TensorSpec& from) {
  moeperm_tensor_spec to = MOEPERM_TENSOR_SPEC_INIT;
  to.dtype = static_cast<moeperm_dtype>(from.dtype);
  to.rank = static_cast<std::int32_t>(from.shape.size());
  std::copy(from.shape.begin(), from.shape.end(), to.shape);
  return to;
}
moeperm_tensor_spec ToSpec(const std::optional<TensorSpec>& from) {
  return from ? ToSpec(*from) : moeperm_tensor_spec MOEPERM_TENSOR_SPEC_INIT;
}

}  // namespace

ConstTensorView View(const moeperm_tensor& tensor) noexcept {
  return MakeView<ConstTensorView>(tensor);
}

#define MOEPERM_TAKE(field) MOEPERM_TRY(Take(#field, from.field, &to->field, outputs))

Status Face<moeperm_context_options>::Convert(const moeperm_context_options& from,
                                              ContextOptions* to, Outputs outputs) {
  MOEPERM_TAKE(num_threads);
  MOEPERM_TAKE(isa);
  return {};
}

Status Face<moeperm_row_map_options>::Convert(const moeperm_row_map_options& from,
                                              RowMapOptions* to, Outputs outputs) {
  MOEPERM_TAKE(drop_and_pad);
  MOEPERM_TAKE(capacity);
  if (from.has_num_rows != 0) to->num_rows = from.num_rows;
  MOEPERM_TAKE(keep);
  MOEPERM_TAKE(mask_pads);
  to->align = from.align == 0 ? 1 : from.align;  // 0: the default, as of every field
  MOEPERM_TAKE(probs);
  MOEPERM_TAKE(pad_empty_experts);
  return {};
}

Status Face<moeperm_permute_with_routing_map_args>::Convert(
    const moeperm_permute_with_routing_map_args& from, PermuteWithRoutingMapArgs* to,
    Outputs outputs) {
  MOEPERM_TAKE(tokens);
  MOEPERM_TAKE(routing_map);
  MOEPERM_TAKE(probs);
  MOEPERM_TAKE(num_out_tokens);
  MOEPERM_TAKE(top_k);
  MOEPERM_TAKE(drop_and_pad);
  MOEPERM_TAKE(permuted_tokens);
  MOEPERM_TAKE(permuted_probs);
  MOEPERM_TAKE(sorted_indices);
  MOEPERM_TAKE(tokens_per_expert);
  MOEPERM_TAKE(expert_offsets);
  return {};
}

Status Face<moeperm_permute_with_routing_map_grad_args>::Convert(
    const moeperm_permute_with_routing_map_grad_args& from, PermuteWithRoutingMapGradArgs* to,
    Outputs outputs) {
  MOEPERM_TAKE(permuted_tokens_grad);
  MOEPERM_TAKE(permuted_probs_grad);
  MOEPERM_TAKE(sorted_indices);
  MOEPERM_TAKE(routing_map);
  MOEPERM_TAKE(num_tokens);
  MOEPERM_TAKE(num_experts);
  MOEPERM_TAKE(drop_and_pad);
  MOEPERM_TAKE(skip_rows_out_of_range);
  MOEPERM_TAKE(tokens_grad);
  MOEPERM_TAKE(probs_grad);
  return {};
}

Status Face<moeperm_permute_by_row_map_args>::Convert(const moeperm_permute_by_row_map_args& from,
                                                      PermuteByRowMapArgs* to, Outputs outputs) {
  MOEPERM_TAKE(tokens);
  MOEPERM_TAKE(probs);
  MOEPERM_TAKE(permuted_tokens);
  MOEPERM_TAKE(permuted_probs);
  return {};
}

Status Face<moeperm_permute_by_row_map_grad_args>::Convert(
    const moeperm_permute_by_row_map_grad_args& from, PermuteByRowMapGradArgs* to,
    Outputs outputs) {
  MOEPERM_TAKE(permuted_tokens_grad);
  MOEPERM_TAKE(permuted_probs_grad);
  MOEPERM_TAKE(tokens_grad);
  MOEPERM_TAKE(probs_grad);
  return {};
}

Status Face<moeperm_permute_args>::Convert(const moeperm_permute_args& from, PermuteArgs* to,
                                           Outputs outputs) {
  MOEPERM_TAKE(tokens);
  MOEPERM_TAKE(indices);
  MOEPERM_TAKE(probs);
  MOEPERM_TAKE(num_experts);
  MOEPERM_TAKE(num_out_tokens);
  MOEPERM_TAKE(first_row);
  MOEPERM_TAKE(permuted_tokens);
  MOEPERM_TAKE(permuted_probs);
  MOEPERM_TAKE(sorted_indices);
  MOEPERM_TAKE(tokens_per_expert);
  return {};
}

Status Face<moeperm_permute_grad_args>::Convert(const moeperm_permute_grad_args& from,
                                                PermuteGradArgs* to, Outputs outputs) {
  MOEPERM_TAKE(permuted_tokens_grad);
  MOEPERM_TAKE(permuted_probs_grad);
  MOEPERM_TAKE(sorted_indices);
  MOEPERM_TAKE(num_tokens);
  MOEPERM_TAKE(first_row);
  MOEPERM_TAKE(tokens_grad);
  MOEPERM_TAKE(probs_grad);
  return {};
}

Status Face<moeperm_unpermute_args>::Convert(const moeperm_unpermute_args& from, UnpermuteArgs* to,
                                             Outputs outputs) {
  MOEPERM_TAKE(permuted_tokens);
  MOEPERM_TAKE(sorted_indices);
  MOEPERM_TAKE(probs);
  MOEPERM_TAKE(first_row);
  MOEPERM_TAKE(tokens);
  return {};
}

Status Face<moeperm_unpermute_grad_args>::Convert(const moeperm_unpermute_grad_args& from,
                                                  UnpermuteGradArgs* to, Outputs outputs) {
  MOEPERM_TAKE(tokens_grad);
  MOEPERM_TAKE(permuted_tokens);
  MOEPERM_TAKE(sorted_indices);
  MOEPERM_TAKE(probs);
  MOEPERM_TAKE(first_row);
  MOEPERM_TAKE(permuted_tokens_grad);
  MOEPERM_TAKE(probs_grad);
  return {};
}

Status Face<moeperm_unpermute_with_routing_map_args>::Convert(
    const moeperm_unpermute_with_routing_map_args& from, UnpermuteWithRoutingMapArgs* to,
    Outputs outputs) {
  MOEPERM_TAKE(permuted_tokens);
  MOEPERM_TAKE(sorted_indices);
  MOEPERM_TAKE(routing_map);
  MOEPERM_TAKE(probs);
  MOEPERM_TAKE(drop_and_pad);
  MOEPERM_TAKE(round_products);
  MOEPERM_TAKE(skip_rows_out_of_range);
  MOEPERM_TAKE(tokens);
  MOEPERM_TAKE(gathered_probs);
  return {};
}

Status Face<moeperm_unpermute_with_routing_map_grad_args>::Convert(
    const moeperm_unpermute_with_routing_map_grad_args& from, UnpermuteWithRoutingMapGradArgs* to,
    Outputs outputs) {
  MOEPERM_TAKE(tokens_grad);
  MOEPERM_TAKE(permuted_tokens);
  MOEPERM_TAKE(sorted_indices);
  MOEPERM_TAKE(routing_map);
  MOEPERM_TAKE(probs);
  MOEPERM_TAKE(drop_and_pad);
  MOEPERM_TAKE(skip_rows_out_of_range);
  MOEPERM_TAKE(permuted_tokens_grad);
  MOEPERM_TAKE(probs_grad);
  return {};
}

Status Face<moeperm_unpermute_by_row_map_args>::Convert(
    const moeperm_unpermute_by_row_map_args& from, UnpermuteByRowMapArgs* to, Outputs outputs) {
  MOEPERM_TAKE(permuted_tokens);
  MOEPERM_TAKE(probs);
  MOEPERM_TAKE(tokens);
  MOEPERM_TAKE(round_products);
  return {};
}

Status Face<moeperm_unpermute_by_row_map_grad_args>::Convert(
    const moeperm_unpermute_by_row_map_grad_args& from, UnpermuteByRowMapGradArgs* to,
    Outputs outputs) {
  MOEPERM_TAKE(tokens_grad);
  MOEPERM_TAKE(permuted_tokens);
  MOEPERM_TAKE(probs);
  MOEPERM_TAKE(permuted_tokens_grad);
  MOEPERM_TAKE(probs_grad);
  return {};
}

Status Face<moeperm_sort_chunks_args>::Convert(const moeperm_sort_chunks_args& from,
                                               SortChunksArgs* to, Outputs outputs) {
  MOEPERM_TAKE(rows);
  MOEPERM_TAKE(probs);
  MOEPERM_TAKE(split_sizes);
  MOEPERM_TAKE(order);
  MOEPERM_TAKE(sorted_rows);
  MOEPERM_TAKE(sorted_probs);
  return {};
}

Status Face<moeperm_sort_chunks_grad_args>::Convert(const moeperm_sort_chunks_grad_args& from,
                                                    SortChunksGradArgs* to, Outputs outputs) {
  MOEPERM_TAKE(sorted_rows_grad);
  MOEPERM_TAKE(sorted_probs_grad);
  MOEPERM_TAKE(split_sizes);
  MOEPERM_TAKE(order);
  MOEPERM_TAKE(rows_grad);
  MOEPERM_TAKE(probs_grad);
  return {};
}

#define MOEPERM_GIVE(field) to->field = ToSpec(from.field)

void Give(const PermuteWithRoutingMapSpecs& from, moeperm_permute_with_routing_map_specs* to) {
  MOEPERM_GIVE(permuted_tokens);
  MOEPERM_GIVE(permuted_probs);
  MOEPERM_GIVE(sorted_indices);
  MOEPERM_GIVE(tokens_per_expert);
  MOEPERM_GIVE(expert_offsets);
}

void Give(const PermuteWithRoutingMapGradSpecs& from,
          moeperm_permute_with_routing_map_grad_specs* to) {
  MOEPERM_GIVE(tokens_grad);
  MOEPERM_GIVE(probs_grad);
}

void Give(const PermuteSpecs& from, moeperm_permute_specs* to) {
  MOEPERM_GIVE(permuted_tokens);
  MOEPERM_GIVE(permuted_probs);
  MOEPERM_GIVE(sorted_indices);
}

}  // namespace moeperm::capi
