// SPDX-License-Identifier: Apache-2.0
// Every allocation of a call fails once: the call says so, with a text, or succeeds. No exception
// crosses, also where there is no memory for the text of another error.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "moeperm/moeperm.h"

namespace {

// Allocations until one fails; negative: none does.
thread_local long allocations_left = -1;

constexpr long kMost = 1000;

template <class Call>
bool Survives(const char* name, moeperm_code without_failures, Call call) {
  for (long n = 0; n < kMost; ++n) {
    allocations_left = n;
    const moeperm_code code = call();
    const bool failed_one = allocations_left < 0;
    allocations_left = -1;
    if (code != without_failures && code != MOEPERM_OUT_OF_MEMORY) {
      std::fprintf(stderr, "%s: %s at allocation %ld\n", name, moeperm_code_name(code), n);
      return false;
    }
    if (code == MOEPERM_OUT_OF_MEMORY && std::strstr(moeperm_last_error(), "memory") == nullptr) {
      std::fprintf(stderr, "%s: '%s' at allocation %ld\n", name, moeperm_last_error(), n);
      return false;
    }
    if (!failed_one) return code == without_failures && n > 0;
  }
  std::fprintf(stderr, "%s: more than %ld allocations\n", name, kMost);
  return false;
}

}  // namespace

void* operator new(std::size_t size) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

int main() {
  const std::int8_t routes[] = {1, 0, 1, 1, 1, 0, 0, 1, 1};
  const float tokens[] = {1, 10, 2, 20, 3, 30};
  float permuted[12];
  std::int32_t indices[6];
  const std::int64_t map_shape[] = {3, 3};
  const std::int64_t tokens_shape[] = {3, 2};
  const std::int64_t permuted_shape[] = {6, 2};
  const moeperm_tensor map_view = moeperm_tensor_contiguous(routes, MOEPERM_INT8, 2, map_shape);
  const moeperm_tensor tokens_view =
      moeperm_tensor_contiguous(tokens, MOEPERM_FLOAT32, 2, tokens_shape);
  const moeperm_tensor permuted_view =
      moeperm_tensor_contiguous(permuted, MOEPERM_FLOAT32, 2, permuted_shape);
  const moeperm_tensor indices_view =
      moeperm_tensor_contiguous(indices, MOEPERM_INT32, 1, permuted_shape);
  moeperm_permute_with_routing_map_args args = MOEPERM_PERMUTE_WITH_ROUTING_MAP_ARGS_INIT;
  args.tokens = &tokens_view;
  args.routing_map = &map_view;
  args.num_out_tokens = 6;
  args.top_k = 2;
  args.permuted_tokens = &permuted_view;
  args.sorted_indices = &indices_view;
  moeperm_permute_with_routing_map_args wrong_args = args;
  wrong_args.top_k = 1;
  moeperm_permute_with_routing_map_args newer_args = args;
  newer_args.struct_size = 1;

  // What is made once in a process is made here.
  if (moeperm_context_status(nullptr) != MOEPERM_OK || moeperm_available_isas()[0] == nullptr ||
      moeperm_permute_with_routing_map(&args, nullptr) != MOEPERM_OK) {
    return 1;
  }

  bool good = Survives("context", MOEPERM_OK, [] {
    moeperm_context* context = nullptr;
    moeperm_context_options options = MOEPERM_CONTEXT_OPTIONS_INIT;
    options.num_threads = 2;
    const moeperm_code code = moeperm_context_create(&options, &context);
    moeperm_context_destroy(context);
    return code;
  });
  good &= Survives("row map", MOEPERM_OK, [&] {
    moeperm_row_map* row_map = nullptr;
    const moeperm_code code = moeperm_row_map_create(&map_view, nullptr, nullptr, &row_map);
    moeperm_row_map_destroy(row_map);
    return code;
  });
  good &= Survives("infer", MOEPERM_OK, [&] {
    moeperm_permute_with_routing_map_specs specs = MOEPERM_PERMUTE_WITH_ROUTING_MAP_SPECS_INIT;
    return moeperm_infer_permute_with_routing_map(&args, &specs);
  });
  good &= Survives("wrong top_k", MOEPERM_INVALID_ARGUMENT,
                   [&] { return moeperm_permute_with_routing_map(&wrong_args, nullptr); });
  good &= Survives("wrong struct_size", MOEPERM_INVALID_ARGUMENT,
                   [&] { return moeperm_permute_with_routing_map(&newer_args, nullptr); });
  return good ? 0 : 1;
}
