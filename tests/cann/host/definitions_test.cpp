// SPDX-License-Identifier: Apache-2.0
// The table of operators and the SoCs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "cann/host/op_def.hpp"
#include "cann/host/soc.hpp"
#include "problems.hpp"

namespace moeperm::cann::host_test {
namespace {

using host::DType;
using testing::ElementsAre;

TEST(Definitions, FoundByTypeNameAndApi) {
  for (const host::OpDef& op : host::Ops()) {
    EXPECT_EQ(host::FindOp(op.type), &op);
    EXPECT_EQ(host::FindOp(op.name), &op);
    EXPECT_EQ(host::FindOp(op.api), &op);
    EXPECT_EQ(op.api, "aclnn" + std::string(op.type));
  }
  EXPECT_EQ(host::FindOp("MoeTokenPermuteWithRoutingMapGra"), nullptr);
  EXPECT_EQ(host::FindOp(""), nullptr);
}

// What must hold of every definition.
TEST(Definitions, AreConsistent) {
  EXPECT_EQ(host::Ops().size(), 12U);
  for (const host::OpDef& op : host::Ops()) {
    SCOPED_TRACE(op.name);
    std::set<std::string_view> names;
    const std::size_t combinations = op.inputs[0].dtypes.size();
    EXPECT_GT(combinations, 0U);
    for (const auto& tensors : {op.inputs, op.outputs}) {
      for (const host::TensorDef& tensor : tensors) {
        EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
        EXPECT_EQ(tensor.dtypes.size(), combinations) << tensor.name;
      }
    }
    for (const host::AttrDef& attr : op.attrs) {
      EXPECT_TRUE(names.insert(attr.name).second) << attr.name;
      EXPECT_EQ(attr.default_value.index(), attr.type == host::AttrType::kBool  ? 0U
                                            : attr.type == host::AttrType::kInt ? 1U
                                                                                : 2U);
    }
    std::set<std::string_view> suffixes;
    for (const host::Binary& binary : op.binaries) {
      EXPECT_TRUE(suffixes.insert(binary.suffix).second) << binary.suffix;
      EXPECT_LT(binary.combination, combinations);
    }
    EXPECT_NE(op.compute_tiling, nullptr);
    for (const host::SocSupport& soc : op.socs) EXPECT_EQ(soc.op_file, op.name);
  }
}

TEST(Definitions, Grad) {
  const host::OpDef& op = *host::FindOp(kGrad);
  ASSERT_EQ(op.inputs.size(), 4U);
  EXPECT_EQ(op.inputs[0].name, "permuted_token_output_grad");
  EXPECT_EQ(op.inputs[1].name, "permuted_probs_output_grad_optional");
  EXPECT_EQ(op.inputs[2].name, "sorted_indices");
  EXPECT_EQ(op.inputs[3].name, "routing_map_optional");
  EXPECT_TRUE(op.inputs[0].required && !op.inputs[1].required && op.inputs[2].required &&
              !op.inputs[3].required);
  EXPECT_THAT(op.inputs[0].dtypes,
              ElementsAre(DType::kBFloat16, DType::kFloat16, DType::kFloat32, DType::kBFloat16,
                          DType::kFloat16, DType::kFloat32, DType::kBFloat16, DType::kBFloat16));
  EXPECT_THAT(op.inputs[1].dtypes,
              ElementsAre(DType::kBFloat16, DType::kFloat16, DType::kFloat32, DType::kBFloat16,
                          DType::kFloat16, DType::kFloat32, DType::kFloat32, DType::kFloat32));
  EXPECT_THAT(op.inputs[3].dtypes,
              ElementsAre(DType::kInt8, DType::kInt8, DType::kInt8, DType::kBool, DType::kBool,
                          DType::kBool, DType::kInt8, DType::kBool));
  ASSERT_EQ(op.outputs.size(), 2U);
  EXPECT_EQ(op.outputs[0].name, "tokens_grad_out");
  EXPECT_EQ(op.outputs[1].name, "probs_grad_out_optional");
  ASSERT_EQ(op.attrs.size(), 3U);
  EXPECT_EQ(op.attrs[0].name, "num_experts");
  EXPECT_EQ(op.attrs[1].name, "tokens_num");
  EXPECT_EQ(op.attrs[2].name, "padded_mode");
  EXPECT_TRUE(op.attrs[0].required && op.attrs[1].required && !op.attrs[2].required);
  ASSERT_EQ(op.socs.size(), 3U);
  EXPECT_EQ(op.socs[0].soc, "ascend910b");
  EXPECT_EQ(op.socs[1].soc, "ascend910_93");
  EXPECT_EQ(op.socs[2].soc, "ascend950");
  for (const host::SocSupport& soc : op.socs) {
    EXPECT_TRUE(soc.dynamic_compile_static && soc.dynamic_rank_support &&
                soc.dynamic_shape_support);
    EXPECT_FALSE(soc.dynamic_format || soc.need_check_support);
  }
  ASSERT_EQ(op.binaries.size(), 8U);
  EXPECT_EQ(op.binaries[0].suffix, "bf16_routing_int8");
  EXPECT_EQ(op.binaries[7].suffix, "bf16_routing_bool_mix");
}

// The suffix of a binary says the dtypes of its combination.
TEST(Definitions, GradBinariesAreTheirCombinations) {
  const host::OpDef& op = *host::FindOp(kGrad);
  for (const host::Binary& binary : op.binaries) {
    const auto dtype = [&](std::size_t input) {
      return op.inputs[input].dtypes[binary.combination];
    };
    std::string name = dtype(0) == DType::kBFloat16  ? "bf16"
                       : dtype(0) == DType::kFloat16 ? "fp16"
                                                     : "fp32";
    name += dtype(3) == DType::kInt8 ? "_routing_int8" : "_routing_bool";
    if (dtype(0) != dtype(1)) name += "_mix";
    EXPECT_EQ(name, binary.suffix);
  }
}

TEST(Definitions, Forward) {
  const host::OpDef& op = *host::FindOp(kForward);
  ASSERT_EQ(op.inputs.size(), 3U);
  EXPECT_EQ(op.inputs[0].name, "tokens");
  EXPECT_EQ(op.inputs[1].name, "routing_map");
  EXPECT_EQ(op.inputs[2].name, "probs");
  EXPECT_FALSE(op.inputs[2].required);
  ASSERT_EQ(op.outputs.size(), 3U);
  EXPECT_EQ(op.outputs[2].name, "sorted_indices");
  ASSERT_EQ(op.attrs.size(), 2U);
  EXPECT_EQ(op.attrs[0].name, "num_out_tokens");
  EXPECT_EQ(op.attrs[1].name, "drop_and_pad");
  EXPECT_EQ(op.infer_shape, nullptr);
  EXPECT_EQ(op.infer_dtype, nullptr);
}

// The eight combinations are the eight that are allowed, each once.
TEST(Definitions, CombinationsAreDistinct) {
  for (const host::OpDef& op : host::Ops()) {
    std::set<std::vector<DType>> seen;
    for (std::size_t i = 0; i < op.inputs[0].dtypes.size(); ++i) {
      std::vector<DType> dtypes;
      for (const host::TensorDef& input : op.inputs) dtypes.push_back(input.dtypes[i]);
      EXPECT_TRUE(seen.insert(dtypes).second) << op.name << " " << i;
    }
  }
}

TEST(DTypes, HaveNames) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat16, DType::kInt8, DType::kInt32, DType::kUInt8, DType::kInt16,
        DType::kUInt16, DType::kUInt32, DType::kInt64, DType::kUInt64, DType::kFloat64,
        DType::kBool, DType::kBFloat16}) {
    EXPECT_EQ(host::DTypeFromName(host::Name(dtype)), dtype);
  }
  EXPECT_EQ(host::DTypeFromName("bf16"), DType::kBFloat16);
  EXPECT_EQ(host::DTypeFromName("undefined"), std::nullopt);
  EXPECT_EQ(host::Name(DType::kUndefined), "undefined");
}

TEST(Socs, AreFoundByName) {
  std::set<std::string_view> names;
  for (const host::Soc& soc : host::Socs()) {
    EXPECT_TRUE(names.insert(soc.name).second) << soc.name;
    EXPECT_EQ(host::FindSoc(soc.name), &soc);
    EXPECT_GE(soc.vector_cores, soc.ai_cores);
    EXPECT_EQ(soc.ub_bytes % 32, 0);
    const host::Platform platform = host::PlatformOf(soc);
    EXPECT_EQ(platform.ub_bytes, soc.ub_bytes - 256);
    EXPECT_EQ(platform.vector_cores, soc.vector_cores);
    EXPECT_EQ(platform.soc, soc.family);
  }
  EXPECT_EQ(host::FindSoc("ascend910b2"), host::FindSoc("Ascend910B2"));
  EXPECT_EQ(host::FindSoc("Ascend910B"), nullptr);
  EXPECT_EQ(host::FindSoc(""), nullptr);
}

// Every family that a definition names has a SoC.
TEST(Socs, CoverTheDefinitions) {
  std::set<std::string_view> families;
  for (const host::Soc& soc : host::Socs()) families.insert(soc.family);
  for (const host::OpDef& op : host::Ops()) {
    for (const host::SocSupport& soc : op.socs) EXPECT_TRUE(families.contains(soc.soc)) << soc.soc;
  }
}

}  // namespace
}  // namespace moeperm::cann::host_test
