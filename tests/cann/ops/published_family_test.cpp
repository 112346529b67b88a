// SPDX-License-Identifier: Apache-2.0
// The published interface cases of the ten operators beside the pair. Those of one SoC run where
// MOEPERM_SOC names it: the test program is run once more for the Ascend950.
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "aclnnop/aclnn_moe_token_permute.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map.h"
#include "door.hpp"

namespace moeperm::test {
namespace {

using nlohmann::json;

char g_memory[64];  // phase 1 does not look at it

// The arguments of a case by name, as handles.
class Handles {
 public:
  explicit Handles(const json& item) {
    for (const char* const list : {"inputs", "outputs"}) {
      for (const json& entry : item.at(list)) all_[entry.at("name")] = entry;
    }
  }
  ~Handles() {
    for (const aclIntArray* array : arrays_) EXPECT_EQ(aclDestroyIntArray(array), 0);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  aclTensor* Tensor(const std::string& name) {
    static const std::map<std::string, int> dtypes = {
        {"fp32", ACL_FLOAT}, {"fp16", ACL_FLOAT16}, {"bf16", ACL_BF16},
        {"int8", ACL_INT8},  {"int32", ACL_INT32},  {"int64", ACL_INT64},
        {"bool", ACL_BOOL},  {"uint8", ACL_UINT8},  {"int16", ACL_INT16}};
    const json& entry = all_.at(name);
    if (!entry.contains("shape")) return nullptr;
    Spec spec;
    spec.dims = entry.at("shape").get<std::vector<std::int64_t>>();
    spec.dtype = dtypes.at(entry.at("dtype"));
    spec.data = g_memory;
    return tensors_.emplace_back(spec).get();
  }
  const aclIntArray* Ints(const std::string& name) {
    if (all_.at(name).at("value").is_null()) return nullptr;
    const auto values = all_.at(name).at("value").get<std::vector<std::int64_t>>();
    arrays_.push_back(aclCreateIntArray(values.data(), values.size()));
    return arrays_.back();
  }
  std::int64_t Int(const std::string& name) { return all_.at(name).at("value").get<int>(); }
  bool Bool(const std::string& name) { return all_.at(name).at("value").get<bool>(); }

 private:
  std::map<std::string, json> all_;
  std::deque<AclTensor> tensors_;
  std::vector<aclIntArray*> arrays_;
};

using Phase1Of = int (*)(Handles&, std::uint64_t*, aclOpExecutor**);
const std::map<std::string, Phase1Of>& Functions() {
  static const std::map<std::string, Phase1Of> functions = {
      {"aclnnMoeTokenPermute",
       [](Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
         return aclnnMoeTokenPermuteGetWorkspaceSize(
             h.Tensor("tokens"), h.Tensor("indices"), h.Int("numOutTokens"), h.Bool("paddedMode"),
             h.Tensor("permuteTokensOut"), h.Tensor("sortedIndicesOut"), size, executor);
       }},
      {"aclnnMoeTokenPermuteGrad",
       [](Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
         return aclnnMoeTokenPermuteGradGetWorkspaceSize(
             h.Tensor("permutedOutputGrad"), h.Tensor("sortedIndices"), h.Int("numTopk"),
             h.Bool("paddedMode"), h.Tensor("out"), size, executor);
       }},
      {"aclnnMoeTokenUnpermute",
       [](Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
         return aclnnMoeTokenUnpermuteGetWorkspaceSize(
             h.Tensor("permutedTokens"), h.Tensor("sortedIndices"), h.Tensor("probsOptional"),
             h.Bool("paddedMode"), h.Ints("restoreShapeOptional"), h.Tensor("out"), size, executor);
       }},
      {"aclnnMoeTokenUnpermuteGrad",
       [](Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
         return aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
             h.Tensor("permuteTokens"), h.Tensor("unpermutedTokensGrad"), h.Tensor("sortedIndices"),
             h.Tensor("probsOptional"), h.Bool("paddedMode"), h.Ints("restoreShapeOptional"),
             h.Tensor("permutedTokensGradOut"), h.Tensor("probsGradOut"), size, executor);
       }},
      {"aclnnMoeTokenUnpermuteWithRoutingMap",
       [](Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
         return aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
             h.Tensor("permutedTokens"), h.Tensor("sortedIndices"), h.Tensor("routingMapOptional"),
             h.Tensor("probsOptional"), h.Bool("paddedMode"), h.Ints("restoreShapeOptional"),
             h.Tensor("unpermutedTokens"), h.Tensor("outIndex"), h.Tensor("permuteTokenId"),
             h.Tensor("permuteProbs"), size, executor);
       }},
  };
  return functions;
}

int CodeOf(const json& expected) {
  if (expected.is_null()) return 0;  // none is published; good calls, all of them
  return expected.is_string() ? ACLNN_ERR_INNER_NULLPTR : expected.get<int>();
}

TEST(CannPublished, InterfaceCasesOfTheFamily) {
  const Stream stream;
  const char* const soc = std::getenv("MOEPERM_SOC");
  const bool on_950 = soc != nullptr && std::string(soc) == "Ascend950";
  std::ifstream file(MOEPERM_PUBLISHED_CASES);
  int run = 0;
  int of_v2 = 0;  // no interface here
  const json published = json::parse(file);
  for (const json& item : published.at("op_api")) {
    const std::string api = item.at("api");
    if (api.find("PermuteWithRoutingMap") != std::string::npos) continue;  // published_test.cpp
    if ((item.at("soc") == "Ascend950") != on_950) continue;
    if (api == "aclnnMoeTokenPermuteV2") {
      ++of_v2;
      continue;
    }
    Handles handles(item);
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(Functions().at(api)(handles, &size, &executor), CodeOf(item.at("expected_code")))
        << item.at("case") << '\n'
        << TakeError();
    if (executor != nullptr) {
      EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
    }
    ++run;
  }
  EXPECT_EQ(run, on_950 ? 41 : 21);
  EXPECT_EQ(of_v2, on_950 ? 3 : 0);
}

}  // namespace
}  // namespace moeperm::test
