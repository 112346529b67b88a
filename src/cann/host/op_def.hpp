// SPDX-License-Identifier: Apache-2.0
// The host side of the operators: what each takes and gives, on which SoCs, and the functions that
// infer its outputs and cut its work for the vector cores. One table, one row an operator; nothing
// here touches data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "cann/host/tiling.hpp"
#include "moeperm/status.hpp"

namespace moeperm::cann::host {

// The values are those of aclDataType.
enum class DType : std::int32_t {
  kUndefined = -1,
  kFloat32 = 0,
  kFloat16 = 1,
  kInt8 = 2,
  kInt32 = 3,
  kUInt8 = 4,
  kInt16 = 6,
  kUInt16 = 7,
  kUInt32 = 8,
  kInt64 = 9,
  kUInt64 = 10,
  kFloat64 = 11,
  kBool = 12,
  kBFloat16 = 27,
};
std::string_view Name(DType dtype);                         // "float32", "bfloat16", ...
std::optional<DType> DTypeFromName(std::string_view name);  // also "fp32", "fp16", "bf16"

using Shape = std::vector<std::int64_t>;

struct TensorDesc {
  DType dtype = DType::kUndefined;
  Shape shape;
};

using Attr = std::variant<bool, std::int64_t, std::vector<std::int64_t>>;

// A call as shape inference and tiling see it. Inputs, outputs and attributes stand in the order of
// the definition; attributes are read by position. An optional input that is not given is nullopt.
struct Problem {
  std::vector<std::optional<TensorDesc>> inputs;
  std::vector<std::optional<TensorDesc>> outputs;
  std::vector<std::optional<Attr>> attrs;
};

// Sizes that make a call, for `moeperm tiling` and for tests.
struct CallSizes {
  std::int64_t tokens = 4096;
  std::int64_t hidden = 1024;
  std::int64_t experts = 64;
  std::int64_t top_k = 8;
  std::int64_t slots = 32768;  // tokens * top_k
  std::int64_t rows = 32768;   // permuted rows
  bool drop_and_pad = false;
  DType dtype = DType::kBFloat16;
  std::optional<DType> probs;  // nullopt: no probs
};

struct TensorDef {
  std::string_view name;
  bool required;
  std::span<const DType> dtypes;  // element i belongs to combination i
};

enum class AttrType { kInt, kBool, kIntList };

struct AttrDef {
  std::string_view name;
  AttrType type;
  bool required;
  Attr default_value;  // what the definition writes; of a required one only informative
};

// What a SoC's configuration says of an operator.
struct SocSupport {
  std::string_view soc;  // "ascend910b", "ascend910_93", "ascend950"
  bool dynamic_compile_static;
  bool dynamic_format;
  bool dynamic_rank_support;
  bool dynamic_shape_support;
  bool need_check_support;
  std::string_view op_file;
};

// A prebuilt combination of dtypes: one column of the definition.
struct Binary {
  std::string_view suffix;  // "bf16_routing_int8", ...
  std::size_t combination;
};

struct Layout;  // layout.hpp

struct OpDef {
  std::string_view type;  // "MoeTokenPermuteWithRoutingMapGrad"
  std::string_view name;  // "moe_token_permute_with_routing_map_grad"
  std::string_view api;   // "aclnnMoeTokenPermuteWithRoutingMapGrad"
  std::span<const TensorDef> inputs;
  std::span<const TensorDef> outputs;
  std::span<const AttrDef> attrs;
  std::span<const SocSupport> socs;
  std::span<const Binary> binaries;
  // Null where the original registers none.
  Status (*infer_shape)(const Problem&, std::vector<Shape>*);
  Status (*infer_dtype)(const Problem&, std::vector<DType>*);
  Status (*compute_tiling)(const Problem&, const Platform&, Tiling*);
  // What a tiling that compute_tiling() gave for these means.
  void (*describe)(const Problem&, const Platform&, const Tiling&, Layout*);
  // The call of these sizes, as the API makes it.
  Problem (*problem_of)(const CallSizes&);
};

std::span<const OpDef> Ops();
// By type, name or api; null where there is none.
const OpDef* FindOp(std::string_view name);

}  // namespace moeperm::cann::host
