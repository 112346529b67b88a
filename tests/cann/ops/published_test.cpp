// SPDX-License-Identifier: Apache-2.0
// The published interface cases of the two operators: phase 1 gives the published code. Where a
// case publishes none, it gives ours, which stands below and follows the newer checks.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "door.hpp"

namespace moeperm::test {
namespace {

using nlohmann::json;

json Load() {
  std::ifstream file(MOEPERM_PUBLISHED_CASES);
  return json::parse(file).at("op_api");
}

int DTypeOf(const std::string& name) {
  static const std::map<std::string, int> dtypes = {{"fp32", ACL_FLOAT},  {"fp16", ACL_FLOAT16},
                                                    {"bf16", ACL_BF16},   {"int8", ACL_INT8},
                                                    {"int32", ACL_INT32}, {"bool", ACL_BOOL}};
  return dtypes.at(name);
}

char g_memory[64];  // phase 1 does not look at it

class Arguments {
 public:
  explicit Arguments(const json& item) {
    for (const char* const list : {"inputs", "outputs"}) {
      for (const json& entry : item.at(list)) all_[entry.at("name")] = entry;
    }
  }
  [[nodiscard]] Spec Tensor(const std::string& name) const {
    const json& entry = all_.at(name);
    if (!entry.contains("shape")) return NotGiven();
    Spec spec;
    spec.dims = entry.at("shape").get<std::vector<std::int64_t>>();
    spec.dtype = DTypeOf(entry.at("dtype"));
    spec.data = g_memory;
    if (entry.value("format", "ND") == "FRACTAL_NZ") spec.format = ACL_FORMAT_FRACTAL_NZ;
    return spec;
  }
  template <class T>
  [[nodiscard]] T Value(const std::string& name) const {
    return all_.at(name).at("value").get<T>();
  }

 private:
  std::map<std::string, json> all_;
};

int RunForwardCase(const Arguments& arguments) {
  ForwardCall call;
  call.tokens = arguments.Tensor("tokens");
  call.map = arguments.Tensor("routingMap");
  call.probs = arguments.Tensor("probsOptional");
  call.num_out_tokens = arguments.Value<std::int64_t>("numOutTokens");
  call.drop_and_pad = arguments.Value<bool>("dropAndPad");
  call.tokens_out = arguments.Tensor("permuteTokensOut");
  call.probs_out = arguments.Tensor("permuteProbsOutOptional");
  call.indices_out = arguments.Tensor("sortedIndicesOut");
  return Phase1(call);
}

int RunGradCase(const Arguments& arguments) {
  GradCall call;
  call.rows = arguments.Tensor("permutedTokenOutputGrad");
  call.probs = arguments.Tensor("permutedProbsOutputGradOptional");
  call.indices = arguments.Tensor("sortedIndices");
  call.map = arguments.Tensor("routingMapOptional");
  call.num_experts = arguments.Value<std::int64_t>("numExperts");
  call.num_tokens = arguments.Value<std::int64_t>("tokensNum");
  call.drop_and_pad = arguments.Value<bool>("dropAndPad");
  call.tokens_out = arguments.Tensor("tokensGradOut");
  call.probs_out = arguments.Tensor("probsGradOutOptional");
  return Phase1(call);
}

// Of cases that publish no code.
int OurCode(const std::string& name) {
  static const std::map<std::string, int> codes = {
      {"Ascend910B2_moe_token_permute_with_routing_map", 0},
      {"Ascend910B2_moe_token_permute_with_routing_map_prob_error_1", 161002},  // int32 tokens
      {"Ascend910B2_moe_token_permute_with_routing_map_prob_error_2", 161002},  // int32 map
      {"Ascend910B2_moe_token_permute_with_routing_map_prob_error_4", 161002},  // int32 probs out
      {"Ascend910B2_moe_token_permute_with_routing_map_prob_error_5", 161002},  // int32 tokens out
      {"Ascend910B2_moe_token_permute_with_routing_map_prob_error_7", 161002},  // map of rank 3
      {"Ascend910B2_moe_token_permute_with_routing_map_prob_error_8", 161002},  // probs of rank 3
      {"ascend910_95_moe_token_permute_with_routing_map_pad_prob", 0},
      {"Ascend910B2_moe_token_permute_with_routing_map_pad_prob", 0},
      {"Ascend910B2_moe_token_permute_with_routing_map_pad_mix", 161002},  // float16 with float32
  };
  return codes.at(name);
}

// No case of the two has different codes in the two snapshots, so all of both must hold.
TEST(CannPublished, InterfaceCases) {
  const Stream stream;
  std::map<std::string, int> seen;
  int published = 0;
  for (const json& item : Load()) {
    const std::string op = item.at("op");
    const bool forward = op == "moe_token_permute_with_routing_map";
    if (!forward && op != "moe_token_permute_with_routing_map_grad") continue;
    const std::string name = item.at("case");
    const json& expected = item.at("expected_code");
    published += expected.is_null() ? 0 : 1;
    const int want = expected.is_null() ? OurCode(name) : expected.get<int>();
    const Arguments arguments(item);
    EXPECT_EQ(forward ? RunForwardCase(arguments) : RunGradCase(arguments), want)
        << item.at("snapshot") << ' ' << name << '\n'
        << TakeError();
    ++seen[item.at("snapshot").get<std::string>() + (forward ? " forward" : " gradient")];
  }
  EXPECT_EQ(seen, (std::map<std::string, int>{
                      {"J forward", 9}, {"J gradient", 8}, {"N forward", 8}, {"N gradient", 3}}));
  EXPECT_EQ(published, 11);
}

}  // namespace
}  // namespace moeperm::test
