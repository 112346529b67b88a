// SPDX-License-Identifier: Apache-2.0
// Every published case of tiling and inference (177, 48 and 29). How the cases are to
// be read stands in their file's "meta".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cann/host/op_def.hpp"

namespace moeperm::cann::host_test {
namespace {

using host::DType;
using Json = nlohmann::ordered_json;  // attributes are read by position

// Where the later descriptions, which we follow, differ from the earlier ones that a case is from.
struct KnownDifference {
  std::string op;
  std::string case_name;
  std::vector<std::string> fields;
  bool workspace;
  bool key = false;
  std::string snapshot = "N";
};
const std::vector<KnownDifference>& KnownDifferences() {
  // Earlier, expertNum was never set and the workspace did not hold the masked select's lists.
  static const std::vector<KnownDifference> differences = {
      {"moe_token_permute_with_routing_map",
       "MoeTokenPermuteWithRoutingMap_tiling_float",
       {"expertNum"},
       true},
      {"moe_token_permute_with_routing_map",
       "MoeTokenPermuteWithRoutingMap_tiling_long_h",
       {"expertNum"},
       true},
      // The case supplies a third input, which the operator does not have.
      {"moe_token_permute_grad", "test_tiling_with_probs_bf16", {}, false, true, "J"},
  };
  return differences;
}

const KnownDifference* FindDifference(const Json& published) {
  for (const KnownDifference& difference : KnownDifferences()) {
    if (published["op"] == difference.op && published["case"] == difference.case_name &&
        published["snapshot"] == difference.snapshot) {
      return &difference;
    }
  }
  return nullptr;
}

const Json& Published() {
  static const Json json = Json::parse(std::ifstream(MOEPERM_PUBLISHED_CASES));
  return json;
}

// The cases of one section whose operator is here.
std::vector<Json> CasesOf(const std::string& section) {
  std::vector<Json> cases;
  for (const Json& published : Published().at(section)) {
    if (host::FindOp(published["op"].get<std::string>()) != nullptr) cases.push_back(published);
  }
  return cases;
}

std::optional<host::TensorDesc> TensorOf(const Json& tensor) {
  const host::Shape shape = tensor["shape"].get<host::Shape>();
  if (shape.empty()) return std::nullopt;  // not supplied
  // A dtype that nobody knows is published by a number.
  return host::TensorDesc{
      host::DTypeFromName(tensor["dtype"].get<std::string>()).value_or(DType::kUndefined), shape};
}

host::Attr AttrOf(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_array()) return value.get<std::vector<std::int64_t>>();
  return value.get<std::int64_t>();
}

host::Problem ProblemOf(const Json& published) {
  host::Problem problem;
  for (const Json& tensor : published["inputs"]) problem.inputs.push_back(TensorOf(tensor));
  if (published.contains("outputs")) {
    for (const Json& tensor : published["outputs"]) problem.outputs.push_back(TensorOf(tensor));
  }
  for (const Json& value : published["attrs"]) problem.attrs.emplace_back(AttrOf(value));
  return problem;
}

host::Platform PlatformOf(const Json& published) {
  static const std::map<std::string, std::string_view> families = {
      {"Ascend910B", "ascend910b"}, {"Ascend950", "ascend950"}, {"Ascend310P", "ascend310p"}};
  host::Platform platform;
  platform.soc = families.at(published["soc"].get<std::string>());
  platform.vector_cores = published["core_num"];
  platform.ub_bytes = published["ub_size"].get<std::int64_t>() - 256;
  // Of other operators it is a list, which they do not look at.
  if (published.contains("compile_info") && published["compile_info"].is_object()) {
    platform.compiled_cores = published["compile_info"]["aivNum"];
  }
  return platform;
}

std::vector<std::int64_t> Values(const host::Tiling& tiling) {
  std::vector<std::int64_t> values;
  values.reserve(tiling.fields.size());
  for (const host::TilingField& field : tiling.fields) values.push_back(field.value);
  return values;
}

void ExpectData(const Json& expected, const host::Tiling& tiling,
                const KnownDifference* difference) {
  auto data = expected.get<std::vector<std::int64_t>>();
  const std::vector<std::int64_t> values = Values(tiling);
  ASSERT_EQ(data.size(), values.size());
  if (difference != nullptr) {
    for (std::size_t i = 0; i < data.size(); ++i) {
      const std::string name(tiling.fields[i].name);
      if (std::ranges::find(difference->fields, name) == difference->fields.end()) continue;
      EXPECT_NE(data[i], values[i]) << name << " does not differ; it can leave the list";
      data[i] = values[i];
    }
  }
  for (std::size_t i = 0; i < data.size(); ++i) {
    EXPECT_EQ(data[i], values[i]) << tiling.fields[i].name << ", number " << i;
  }
}

void ExpectWorkspace(std::int64_t expected, const host::Tiling& tiling,
                     const KnownDifference* difference) {
  if (difference != nullptr && difference->workspace) {
    EXPECT_NE(expected, tiling.workspace_bytes) << "it can leave the list";
  } else {
    EXPECT_EQ(expected, tiling.workspace_bytes);
  }
}

// What of a case was compared.
struct Asserted {
  int failures = 0, successes = 0, keys = 0, data = 0, workspaces = 0, computed_data = 0,
      block_dims = 0;
  bool operator==(const Asserted&) const = default;
};

void CheckTiling(const Json& published, Asserted* asserted) {
  SCOPED_TRACE(published["snapshot"].get<std::string>() + " " +
               published["case"].get<std::string>());
  const host::OpDef& op = *host::FindOp(published["op"].get<std::string>());
  host::Tiling tiling;
  const Status status = op.compute_tiling(ProblemOf(published), PlatformOf(published), &tiling);
  const Json& expected = published["expected"];
  if (expected["status"] != "success") {
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message(), "");
    ++asserted->failures;
    return;
  }
  ASSERT_TRUE(status.ok()) << status.message();
  ++asserted->successes;
  const KnownDifference* const difference = FindDifference(published);
  if (expected.contains("tiling_key")) {
    const bool differs = difference != nullptr && difference->key;
    EXPECT_EQ(tiling.key == expected["tiling_key"], !differs) << tiling.key;
    ++asserted->keys;
  }
  if (expected.contains("tiling_data")) {
    ExpectData(expected["tiling_data"], tiling, difference);
    ++asserted->data;
  }
  if (expected.contains("workspaces")) {
    ASSERT_EQ(expected["workspaces"].size(), 1U);
    ExpectWorkspace(expected["workspaces"][0], tiling, difference);
    ++asserted->workspaces;
  }
  if (published.contains("tiling_data_computed")) {
    ExpectData(published["tiling_data_computed"], tiling, nullptr);
    ++asserted->computed_data;
  }
  if (published.contains("block_dim_computed")) {
    EXPECT_EQ(tiling.block_dim, published["block_dim_computed"]);
    ++asserted->block_dims;
  }
}

TEST(PublishedCases, Tiling) {
  std::map<std::string, int> counts;
  Asserted asserted;
  for (const Json& published : CasesOf("tiling")) {
    ++counts[published["snapshot"].get<std::string>() + " " + published["op"].get<std::string>()];
    CheckTiling(published, &asserted);
  }
  EXPECT_EQ(counts, (std::map<std::string, int>{{"J moe_token_unpermute_with_routing_map", 5},
                                                {"N moe_token_unpermute_with_routing_map", 1},
                                                {"J moe_token_unpermute_with_routing_map_grad", 7},
                                                {"N moe_token_unpermute_with_routing_map_grad", 2},
                                                {"J moe_token_permute", 11},
                                                {"N moe_token_permute", 3},
                                                {"J moe_token_permute_with_ep", 18},
                                                {"N moe_token_permute_with_ep", 4},
                                                {"J moe_token_permute_grad", 7},
                                                {"J moe_token_permute_with_ep_grad", 11},
                                                {"J moe_token_permute_with_routing_map", 17},
                                                {"J moe_token_permute_with_routing_map_grad", 7},
                                                {"J moe_token_unpermute", 14},
                                                {"J moe_token_unpermute_grad", 8},
                                                {"J moe_token_unpermute_with_ep", 12},
                                                {"J moe_token_unpermute_with_ep_grad", 13},
                                                {"N moe_token_permute_grad", 2},
                                                {"N moe_token_permute_with_routing_map", 3},
                                                {"N moe_token_permute_with_routing_map_grad", 2},
                                                {"N moe_token_unpermute", 8},
                                                {"N moe_token_unpermute_grad", 8},
                                                {"N moe_token_unpermute_with_ep", 5},
                                                {"N moe_token_unpermute_with_ep_grad", 9}}));
  EXPECT_EQ(asserted.failures, 40);
  EXPECT_EQ(asserted.successes, 137);
  EXPECT_EQ(asserted.keys, 137);
  EXPECT_EQ(asserted.data, 101);
  EXPECT_EQ(asserted.workspaces, 101);
  EXPECT_EQ(asserted.computed_data, 31);
  EXPECT_EQ(asserted.block_dims, 134);
}

TEST(PublishedCases, EveryKnownDifferenceIsOfACase) {
  for (const KnownDifference& difference : KnownDifferences()) {
    EXPECT_TRUE(std::ranges::any_of(CasesOf("tiling"), [&](const Json& published) {
      return FindDifference(published) == &difference;
    })) << difference.case_name;
  }
}

TEST(PublishedCases, ShapeInference) {
  const std::vector<Json> cases = CasesOf("infershape");
  EXPECT_EQ(cases.size(), 48U);
  for (const Json& published : cases) {
    SCOPED_TRACE(published["case"].get<std::string>());
    const host::OpDef& op = *host::FindOp(published["op"].get<std::string>());
    ASSERT_NE(op.infer_shape, nullptr);
    std::vector<host::Shape> shapes;
    const Status status = op.infer_shape(ProblemOf(published), &shapes);
    ASSERT_EQ(status.ok(), published["expected"]["status"] == "success") << status.message();
    if (!published["expected"].contains("output_shapes")) continue;
    const auto expected = published["expected"]["output_shapes"].get<std::vector<host::Shape>>();
    // The last outputs may be left out where nothing is inferred of them.
    shapes.resize(std::max(shapes.size(), expected.size()));
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      EXPECT_EQ(shapes[i], i < expected.size() ? expected[i] : host::Shape{}) << "output " << i;
    }
  }
}

TEST(PublishedCases, DTypeInference) {
  const std::vector<Json> cases = CasesOf("inferdatatype");
  EXPECT_EQ(cases.size(), 29U);
  for (const Json& published : cases) {
    SCOPED_TRACE(published["case"].get<std::string>());
    const host::OpDef& op = *host::FindOp(published["op"].get<std::string>());
    ASSERT_NE(op.infer_dtype, nullptr);
    host::Problem problem;
    for (const Json& dtype : published["input_dtypes"]) {
      problem.inputs.emplace_back(
          host::TensorDesc{host::DTypeFromName(dtype.get<std::string>()).value(), {}});
    }
    std::vector<DType> dtypes;
    ASSERT_TRUE(op.infer_dtype(problem, &dtypes).ok());
    const Json& expected = published["expected"]["output_dtypes"];
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const std::string name(op.outputs[i].name);
      const DType dtype = expected.contains(name)
                              ? host::DTypeFromName(expected[name].get<std::string>()).value()
                              : DType::kUndefined;
      EXPECT_EQ(dtypes.at(i), dtype) << name;
    }
  }
}

}  // namespace
}  // namespace moeperm::cann::host_test
