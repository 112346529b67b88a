// SPDX-License-Identifier: Apache-2.0
// The functions of moeperm/moeperm.h: structs in, a status out, and nothing else.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capi/convert.hpp"
#include "capi/last_error.hpp"

struct moeperm_context {
  moeperm::Context context;
};
struct moeperm_row_map {
  moeperm::RowMap map;
};

namespace moeperm::capi {
namespace {

#define MOEPERM_SAME(c_value, cpp_value) \
  static_assert((c_value) == static_cast<std::int32_t>(cpp_value))
MOEPERM_SAME(MOEPERM_OK, Code::kOk);
MOEPERM_SAME(MOEPERM_INVALID_ARGUMENT, Code::kInvalidArgument);
MOEPERM_SAME(MOEPERM_INDEX_OUT_OF_RANGE, Code::kIndexOutOfRange);
MOEPERM_SAME(MOEPERM_OUT_OF_MEMORY, Code::kOutOfMemory);
MOEPERM_SAME(MOEPERM_INTERNAL, Code::kInternal);
MOEPERM_SAME(MOEPERM_DTYPE_INVALID, DType::kInvalid);
MOEPERM_SAME(MOEPERM_FLOAT32, DType::kFloat32);
MOEPERM_SAME(MOEPERM_FLOAT16, DType::kFloat16);
MOEPERM_SAME(MOEPERM_BFLOAT16, DType::kBFloat16);
MOEPERM_SAME(MOEPERM_INT8, DType::kInt8);
MOEPERM_SAME(MOEPERM_BOOL, DType::kBool);
MOEPERM_SAME(MOEPERM_INT32, DType::kInt32);
MOEPERM_SAME(MOEPERM_INT64, DType::kInt64);
MOEPERM_SAME(MOEPERM_MAX_RANK, kMaxRank);
#undef MOEPERM_SAME

#define MOEPERM_TEXT_OF(value) #value
#define MOEPERM_VERSION_OF(major, minor, patch) \
  MOEPERM_TEXT_OF(major) "." MOEPERM_TEXT_OF(minor) "." MOEPERM_TEXT_OF(patch)
static_assert(std::string_view(MOEPERM_VERSION) == MOEPERM_VERSION_OF(MOEPERM_VERSION_MAJOR,
                                                                      MOEPERM_VERSION_MINOR,
                                                                      MOEPERM_VERSION_PATCH),
              "moeperm/moeperm.h and CMakeLists.txt name different versions");

const Context& Of(const moeperm_context* context) {
  return context == nullptr ? Context::Default() : context->context;
}

// The names as C strings. Made once and never destroyed, so that they are valid forever.
struct IsaNames {
  std::vector<std::string> names = AvailableIsas();
  std::vector<const char*> pointers;

  IsaNames() {
    for (const std::string& name : names) pointers.push_back(name.c_str());
    pointers.push_back(nullptr);
  }
};

const char* const* IsaNameList() noexcept {
  try {
    static const IsaNames& isas = *new IsaNames;
    return isas.pointers.data();
  } catch (const std::exception&) {  // no memory; the next call tries again
    static constexpr const char* kNone = nullptr;
    return &kNone;
  }
}

// operation: a callable of the args in C++, returning Status.
template <class Args, class Operation>
moeperm_code Operate(const Args* args, Operation operation) noexcept {
  return Call([&]() -> Status {
    typename Face<Args>::Cpp cpp;
    MOEPERM_TRY(Read("args", args, &cpp));
    return operation(std::as_const(cpp));
  });
}

// operation: a function of the C++ API.
template <class Args>
moeperm_code OperateIn(const moeperm_context* context, const Args* args,
                       Status (*operation)(const typename Face<Args>::Cpp&,
                                           const Context&) noexcept) noexcept {
  return Operate(args, [&](const auto& cpp) { return operation(cpp, Of(context)); });
}

template <class Args, class Operation>
moeperm_code OperateByRowMap(const moeperm_row_map* row_map, const Args* args,
                             const moeperm_context* context, Operation operation) noexcept {
  return Operate(args, [&](const auto& cpp) -> Status {
    if (row_map == nullptr) return msg::Missing("row_map", "it is a null pointer");
    return operation(row_map->map, cpp, Of(context));
  });
}

template <class CppSpecs, class Args, class Specs, class Infer>
moeperm_code InferSpecs(const Args* args, Specs* specs, Infer infer) noexcept {
  return Call([&]() -> Status {
    typename Face<Args>::Cpp cpp;
    MOEPERM_TRY(Read("args", args, &cpp, Outputs::kIgnored));
    MOEPERM_TRY(CheckStruct("specs", specs, kFirstSize<Specs>, sizeof(Specs), Tail::kOutput));
    CppSpecs cpp_specs;
    MOEPERM_TRY(infer(cpp, &cpp_specs));
    Specs known{};
    Give(cpp_specs, &known);
    WriteStruct(known, specs);
    return {};
  });
}

// *out = the object that `make`, a callable of a pointer to its owner, builds; null after an error.
template <class Object, class Make>
moeperm_code Create(std::string_view name, Object** out, Make make) noexcept {
  return Call([&]() -> Status {
    if (out == nullptr) return msg::Missing(name, "it is a null pointer");
    *out = nullptr;
    std::unique_ptr<Object> object;
    MOEPERM_TRY(make(&object));
    *out = object.release();
    return {};
  });
}

template <class Value>
Value Get(const moeperm_row_map* row_map, Value (RowMap::*getter)() const noexcept) noexcept {
  return row_map == nullptr ? Value{} : (row_map->map.*getter)();
}

}  // namespace
}  // namespace moeperm::capi

namespace capi = moeperm::capi;
using moeperm::RowMap;

// The names are string literals, so they end with a NUL.
const char* moeperm_version(void) { return moeperm::Version().data(); }
const char* moeperm_code_name(moeperm_code code) {
  return moeperm::Name(static_cast<moeperm::Code>(code)).data();
}
const char* moeperm_dtype_name(moeperm_dtype dtype) {
  return moeperm::Name(static_cast<moeperm::DType>(dtype)).data();
}
size_t moeperm_dtype_size(moeperm_dtype dtype) {
  return moeperm::SizeOf(static_cast<moeperm::DType>(dtype));
}
const char* moeperm_last_error(void) { return capi::LastError(); }

moeperm_tensor moeperm_tensor_contiguous(const void* data, moeperm_dtype dtype, int32_t rank,
                                         const int64_t* shape) {
  // One type serves inputs and outputs; inputs are not written.
  moeperm_tensor tensor = {const_cast<void*>(data), dtype, rank, {}, {}};
  if (rank < 0 || rank > MOEPERM_MAX_RANK) return tensor;
  const moeperm::ConstTensorView view(data, static_cast<moeperm::DType>(dtype),
                                      std::span(shape, static_cast<std::size_t>(rank)));
  std::ranges::copy(view.shape(), tensor.shape);
  std::ranges::copy(view.strides(), tensor.strides);
  return tensor;
}

moeperm_code moeperm_context_create(const moeperm_context_options* options,
                                    moeperm_context** context) {
  return capi::Create("context", context, [&](auto* made) -> moeperm::Status {
    moeperm::ContextOptions cpp;
    if (options != nullptr) MOEPERM_TRY(capi::Read("options", options, &cpp));
    made->reset(new moeperm_context{moeperm::Context(cpp)});
    return (*made)->context.status();
  });
}
void moeperm_context_destroy(moeperm_context* context) { delete context; }
moeperm_code moeperm_context_status(const moeperm_context* context) {
  return capi::Finish(capi::Of(context).status());
}
int32_t moeperm_context_num_threads(const moeperm_context* context) {
  return capi::Of(context).num_threads();
}
const char* moeperm_context_isa(const moeperm_context* context) {
  const std::string_view isa = capi::Of(context).isa();
  for (const char* const* name = capi::IsaNameList(); *name != nullptr; ++name) {
    if (isa == *name) return *name;
  }
  return "";
}
const char* const* moeperm_available_isas(void) { return capi::IsaNameList(); }

moeperm_code moeperm_row_map_create(const moeperm_tensor* routing_map,
                                    const moeperm_row_map_options* options,
                                    const moeperm_context* context, moeperm_row_map** row_map) {
  return capi::Create("row_map", row_map, [&](auto* made) -> moeperm::Status {
    if (routing_map == nullptr) {
      return moeperm::msg::Missing("routing_map", "it is a null pointer");
    }
    moeperm::RowMapOptions cpp;
    if (options != nullptr) MOEPERM_TRY(capi::Read("options", options, &cpp));
    made->reset(new moeperm_row_map);
    return RowMap::FromRoutingMap(capi::View(*routing_map), cpp, &(*made)->map, capi::Of(context));
  });
}
void moeperm_row_map_destroy(moeperm_row_map* row_map) { delete row_map; }

int32_t moeperm_row_map_drop_and_pad(const moeperm_row_map* row_map) {
  return capi::Get(row_map, &RowMap::drop_and_pad) ? 1 : 0;
}
int64_t moeperm_row_map_num_tokens(const moeperm_row_map* row_map) {
  return capi::Get(row_map, &RowMap::num_tokens);
}
int64_t moeperm_row_map_num_experts(const moeperm_row_map* row_map) {
  return capi::Get(row_map, &RowMap::num_experts);
}
int64_t moeperm_row_map_num_rows(const moeperm_row_map* row_map) {
  return capi::Get(row_map, &RowMap::num_rows);
}
int64_t moeperm_row_map_num_slots(const moeperm_row_map* row_map) {
  return static_cast<int64_t>(capi::Get(row_map, &RowMap::slot_rows).size());
}
const int32_t* moeperm_row_map_token_offsets(const moeperm_row_map* row_map) {
  return capi::Get(row_map, &RowMap::token_offsets).data();
}
const int32_t* moeperm_row_map_slot_rows(const moeperm_row_map* row_map) {
  return capi::Get(row_map, &RowMap::slot_rows).data();
}
const int32_t* moeperm_row_map_slot_experts(const moeperm_row_map* row_map) {
  return capi::Get(row_map, &RowMap::slot_experts).data();
}
const int32_t* moeperm_row_map_row_tokens(const moeperm_row_map* row_map) {
  return capi::Get(row_map, &RowMap::row_tokens).data();
}
const int64_t* moeperm_row_map_tokens_per_expert(const moeperm_row_map* row_map) {
  return capi::Get(row_map, &RowMap::tokens_per_expert).data();
}
int64_t moeperm_row_map_num_routes(const moeperm_row_map* row_map) {
  return capi::Get(row_map, &RowMap::num_routes);
}
int64_t moeperm_row_map_num_dropped(const moeperm_row_map* row_map) {
  return capi::Get(row_map, &RowMap::num_dropped);
}
const int64_t* moeperm_row_map_kept_per_expert(const moeperm_row_map* row_map) {
  return capi::Get(row_map, &RowMap::kept_per_expert).data();
}
const int64_t* moeperm_row_map_expert_offsets(const moeperm_row_map* row_map) {
  return capi::Get(row_map, &RowMap::expert_offsets).data();
}

moeperm_code moeperm_permute_with_routing_map(const moeperm_permute_with_routing_map_args* args,
                                              const moeperm_context* context) {
  return capi::OperateIn(context, args, moeperm::PermuteWithRoutingMap);
}
moeperm_code moeperm_infer_permute_with_routing_map(
    const moeperm_permute_with_routing_map_args* args,
    moeperm_permute_with_routing_map_specs* specs) {
  return capi::InferSpecs<moeperm::PermuteWithRoutingMapSpecs>(args, specs,
                                                               moeperm::InferPermuteWithRoutingMap);
}
moeperm_code moeperm_permute_with_routing_map_grad(
    const moeperm_permute_with_routing_map_grad_args* args, const moeperm_context* context) {
  return capi::OperateIn(context, args, moeperm::PermuteWithRoutingMapGrad);
}
moeperm_code moeperm_infer_permute_with_routing_map_grad(
    const moeperm_permute_with_routing_map_grad_args* args,
    moeperm_permute_with_routing_map_grad_specs* specs) {
  return capi::InferSpecs<moeperm::PermuteWithRoutingMapGradSpecs>(
      args, specs, moeperm::InferPermuteWithRoutingMapGrad);
}
moeperm_code moeperm_permute_by_row_map(const moeperm_row_map* row_map,
                                        const moeperm_permute_by_row_map_args* args,
                                        const moeperm_context* context) {
  return capi::OperateByRowMap(row_map, args, context, moeperm::PermuteByRowMap);
}
moeperm_code moeperm_permute_by_row_map_grad(const moeperm_row_map* row_map,
                                             const moeperm_permute_by_row_map_grad_args* args,
                                             const moeperm_context* context) {
  return capi::OperateByRowMap(row_map, args, context, moeperm::PermuteByRowMapGrad);
}

moeperm_code moeperm_permute(const moeperm_permute_args* args, const moeperm_context* context) {
  return capi::OperateIn(context, args, moeperm::Permute);
}
moeperm_code moeperm_infer_permute(const moeperm_permute_args* args, moeperm_permute_specs* specs) {
  return capi::InferSpecs<moeperm::PermuteSpecs>(args, specs, moeperm::InferPermute);
}
moeperm_code moeperm_permute_grad(const moeperm_permute_grad_args* args,
                                  const moeperm_context* context) {
  return capi::OperateIn(context, args, moeperm::PermuteGrad);
}
moeperm_code moeperm_unpermute(const moeperm_unpermute_args* args, const moeperm_context* context) {
  return capi::OperateIn(context, args, moeperm::Unpermute);
}
moeperm_code moeperm_unpermute_grad(const moeperm_unpermute_grad_args* args,
                                    const moeperm_context* context) {
  return capi::OperateIn(context, args, moeperm::UnpermuteGrad);
}
moeperm_code moeperm_unpermute_with_routing_map(const moeperm_unpermute_with_routing_map_args* args,
                                                const moeperm_context* context) {
  return capi::OperateIn(context, args, moeperm::UnpermuteWithRoutingMap);
}
moeperm_code moeperm_unpermute_with_routing_map_grad(
    const moeperm_unpermute_with_routing_map_grad_args* args, const moeperm_context* context) {
  return capi::OperateIn(context, args, moeperm::UnpermuteWithRoutingMapGrad);
}
moeperm_code moeperm_unpermute_by_row_map(const moeperm_row_map* row_map,
                                          const moeperm_unpermute_by_row_map_args* args,
                                          const moeperm_context* context) {
  return capi::OperateByRowMap(row_map, args, context, moeperm::UnpermuteByRowMap);
}
moeperm_code moeperm_unpermute_by_row_map_grad(const moeperm_row_map* row_map,
                                               const moeperm_unpermute_by_row_map_grad_args* args,
                                               const moeperm_context* context) {
  return capi::OperateByRowMap(row_map, args, context, moeperm::UnpermuteByRowMapGrad);
}
moeperm_code moeperm_sort_chunks(const moeperm_sort_chunks_args* args,
                                 const moeperm_context* context) {
  return capi::OperateIn(context, args, moeperm::SortChunks);
}
moeperm_code moeperm_sort_chunks_grad(const moeperm_sort_chunks_grad_args* args,
                                      const moeperm_context* context) {
  return capi::OperateIn(context, args, moeperm::SortChunksGrad);
}
