// SPDX-License-Identifier: Apache-2.0
// tiling and ops: the host side of the aclnn operators. The numbers themselves are tested in
// tests/cann/host; here, that options get there and results get out.
#include <set>

#include "support.hpp"

namespace moeperm::cli_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kGrad = "moe_token_permute_with_routing_map_grad";
constexpr const char* kForward = "moe_token_permute_with_routing_map";

class Tiling : public CliTest {
 protected:
  static std::int64_t Field(const Json& json, const std::string& name) {
    for (const Json& field : json["fields"]) {
      if (field["name"] == name) return field["value"];
    }
    ADD_FAILURE() << "no field " << name;
    return -1;
  }
  // Runs with the arguments and expects exit status 2 and a message.
  std::string Error(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "tiling");
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("moeperm: error: "));
    return outcome.err;
  }
};

// The published case of the gradient, by its sizes.
TEST_F(Tiling, OfSizes) {
  const Json json = RunJson({"tiling", kGrad, "--tokens", "512", "--hidden", "7168", "--experts",
                             "512", "--top-k", "2", "--cores", "64", "--ub", "262144"});
  EXPECT_EQ(json["tiling_key"], 0);
  EXPECT_EQ(json["block_dim"], 64);
  EXPECT_EQ(json["workspace_bytes"], 16777216);
  EXPECT_EQ(json["ub_bytes"], 261888);
  EXPECT_EQ(json["soc"], nullptr);
  std::vector<std::int64_t> values;
  for (const Json& field : json["fields"]) {
    values.push_back(field["value"]);
    EXPECT_NE(field["meaning"], "");
  }
  EXPECT_EQ(values, (std::vector<std::int64_t>{7168, 2, 1024, 7168, 1, 0, 8, 0, 8, 1, 0, 4, 0, 0, 0,
                                               0, 0}));
  EXPECT_EQ(json["inputs"][0]["shape"], Json({1024, 7168}));
  EXPECT_EQ(json["outputs"][1]["shape"], Json({512, 512}));
  EXPECT_EQ(json["stages"][0]["cores"], Json::parse(R"([{"count": 64, "each": 8}])"));
}

TEST_F(Tiling, OfShapes) {
  const Json json = RunJson({"tiling",   kForward,
                             "--input",  "tokens=2x5:fp32",
                             "--input",  "routing_map=3x2",
                             "--input",  "probs=none",
                             "--output", "permute_tokens=6x5:fp32",
                             "--output", "permute_probs=6",
                             "--output", "sorted_indices=6",
                             "--attr",   "num_out_tokens=6",
                             "--attr",   "drop_and_pad=false",
                             "--cores",  "40",
                             "--ub",     "262144"});
  EXPECT_EQ(json["tiling_key"], 1);
  EXPECT_EQ(json["block_dim"], 3);
  EXPECT_EQ(Field(json, "hasProb"), 0);
  EXPECT_EQ(Field(json, "indicesUB"), 71424);
  EXPECT_EQ(json["inputs"].size(), 2U);
  EXPECT_EQ(json["inputs"][0]["dtype"], "float32");
  EXPECT_EQ(json["attrs"], Json::parse(R"({"num_out_tokens": 6, "drop_and_pad": false})"));
}

TEST_F(Tiling, DropAndPad) {
  const Json grad = RunJson({"tiling", kGrad, "--tokens", "512", "--experts", "512", "--capacity",
                             "2", "--drop-and-pad", "--cores", "64"});
  EXPECT_EQ(grad["tiling_key"], 1000);
  EXPECT_EQ(Field(grad, "capacity"), 2);
  EXPECT_EQ(Field(grad, "singleCoreLen"), 16);
  const Json forward =
      RunJson({"tiling", kForward, "--drop-and-pad", "--capacity", "8", "--soc", "Ascend950"});
  EXPECT_EQ(Field(forward, "capacity"), 8);
  EXPECT_EQ(forward["tiling_key"], 9);
  EXPECT_EQ(forward["family"], "ascend950");
}

TEST_F(Tiling, Names) {
  for (const char* const name :
       {kGrad, "permute_with_routing_map_grad", "MoeTokenPermuteWithRoutingMapGrad",
        "aclnnMoeTokenPermuteWithRoutingMapGrad"}) {
    EXPECT_EQ(RunJson({"tiling", name})["op"], kGrad);
  }
}

TEST_F(Tiling, Platforms) {
  EXPECT_EQ(RunJson({"tiling", kGrad})["soc"], "Ascend910B2");
  const Outcome outcome = Run({"tiling", kGrad, "--json"}, "MOEPERM_SOC=Ascend910B4");
  EXPECT_EQ(Json::parse(outcome.out)["soc"], "Ascend910B4");
  const Json json = RunJson({"tiling", kGrad, "--soc", "ascend910b1"});
  EXPECT_EQ(json["soc"], "Ascend910B1");
  EXPECT_EQ(json["vector_cores"], 50);
  EXPECT_EQ(json["ub_bytes"], 196352);
}

TEST_F(Tiling, Text) {
  const std::string text = Run({"tiling", kGrad, "--hidden", "20000"}).out;
  for (const char* const part :
       {"tiling key  0", "block dim   48", "workspace   16 777 216 bytes",
        "hidden_splited_length  13 312  elements of a hidden tile", "16 x 86, 32 x 85 tokens",
        "1 x 13 312, 1 x 6 688 elements", "input rows"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(Run({"tiling", kGrad, "--tokens", "4", "--num-out-tokens", "10"}).out,
              HasSubstr("note: tokens_num does not divide the rows"));
}

TEST_F(Tiling, Picture) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {kGrad},
           {kForward},
           {kGrad, "--drop-and-pad"},
           {kForward, "--drop-and-pad"},
           {kGrad, "--tokens", "4611686018427387904", "--top-k", "1", "--cores", "65536"},
           {kGrad, "--tokens", "5", "--num-out-tokens", "4"},
           {kGrad, "--ub", "256"},
           {kForward, "--hidden", "100000000"},
           {kForward, "--tokens", "16777214", "--top-k", "1"}}) {
    std::vector<std::string> all = {"tiling", "--svg", "s.svg"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    RunOk(all);
    const std::string svg = ReadBytes("s.svg");
    EXPECT_THAT(svg, StartsWith("<svg "));
    EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
    EXPECT_LT(svg.size(), 8U << 20);
    for (const char* const bad : {"nan", "inf", "=\"-"}) {
      EXPECT_THAT(svg, testing::Not(HasSubstr(bad)));
    }
  }
  RunOk({"tiling", kGrad, "--svg", "s.svg"});
  const std::string svg = ReadBytes("s.svg");
  for (const char* const part : {"add up each token's rows", "48 of 48 cores work", "who has what",
                                 "unified buffer", "float32 rows"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
}

TEST_F(Tiling, SaysWhatIsWrong) {
  EXPECT_THAT(Error({}), HasSubstr("OP is required"));
  EXPECT_THAT(Error({"permutation"}), HasSubstr(kGrad));
  EXPECT_THAT(Error({kGrad, "--soc", "Ascend310"}), HasSubstr("'Ascend310', which is none of"));
  EXPECT_THAT(Error({kGrad, "--dtype", "fp8"}), HasSubstr("--dtype: there is no dtype 'fp8'"));
  EXPECT_THAT(Error({kGrad, "--probs-dtype", "x"}), HasSubstr("--probs-dtype"));
  EXPECT_THAT(Error({kGrad, "--top-k", "513"}), HasSubstr("top_k = 513"));
  EXPECT_THAT(Error({kGrad, "--capacity", "5"}), HasSubstr("drop-and-pad only"));
  EXPECT_THAT(Error({kGrad, "--ub", "255"}), HasSubstr("--ub 255"));
  EXPECT_THAT(Error({kGrad, "--cores", "0"}), HasSubstr("--cores"));
  EXPECT_THAT(Error({kGrad, "--tokens", "4611686018427387904", "--top-k", "2"}),
              HasSubstr("tokens * top_k = 4611686018427387904 * 2 is too large"));
  EXPECT_THAT(Error({kGrad, "--input", "tokens=4"}), HasSubstr("has permuted_token_output_grad"));
  EXPECT_THAT(Error({kGrad, "--input", "sorted_indices"}), HasSubstr("NAME=VALUE"));
  EXPECT_THAT(Error({kGrad, "--input", "sorted_indices=4xx"}), HasSubstr("not a number"));
  EXPECT_THAT(Error({kGrad, "--input", "sorted_indices=4x"}), HasSubstr("a number is missing"));
  EXPECT_THAT(Error({kGrad, "--input", "sorted_indices=9223372036854775808"}),
              HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(Error({kGrad, "--input", "permuted_token_output_grad=-4x8"}),
              HasSubstr("dimension 0 is negative (-4)"));
  EXPECT_THAT(Error({kGrad, "--attr", "padded_mode=maybe"}),
              HasSubstr("'maybe' is neither true nor false"));
  EXPECT_THAT(Error({kGrad, "--attr", "padded_mode=none"}), HasSubstr("padded_mode is missing"));
  EXPECT_THAT(Run({"tiling", kGrad}, "MOEPERM_SOC=nonsense").err, HasSubstr("MOEPERM_SOC"));
}

TEST_F(Tiling, APictureThatCannotBeWrittenFails) {
  EXPECT_THAT(Error({kGrad, "--svg", "no/such/place.svg"}), HasSubstr("no/such/place.svg"));
  EXPECT_TRUE(FilesInDirectory().empty());
}

class Ops : public CliTest {};

TEST_F(Ops, List) {
  std::set<std::string> names;
  const Json json = RunJson({"ops"});
  for (const Json& op : json["ops"]) names.insert(op["name"]);
  EXPECT_THAT(names, Contains(kGrad));
  EXPECT_THAT(names, Contains(kForward));
  const std::string text = Run({"ops"}).out;
  for (const std::string& name : names) EXPECT_THAT(text, HasSubstr(name));
}

TEST_F(Ops, One) {
  const Json json = RunJson({"ops", kGrad});
  EXPECT_EQ(json["type"], "MoeTokenPermuteWithRoutingMapGrad");
  EXPECT_EQ(json["inputs"][3]["dtypes"],
            Json({"int8", "int8", "int8", "bool", "bool", "bool", "int8", "bool"}));
  EXPECT_EQ(json["inputs"][1]["required"], false);
  EXPECT_EQ(json["attrs"][2],
            Json::parse(
                R"({"name": "padded_mode", "type": "bool", "required": false, "default": false})"));
  EXPECT_EQ(json["socs"][2]["soc"], "ascend950");
  EXPECT_EQ(json["socs"][2]["DynamicRankSupport"], true);
  EXPECT_EQ(json["binaries"][6]["name"], "MoeTokenPermuteWithRoutingMapGrad_bf16_routing_int8_mix");
  EXPECT_EQ(json["binaries"][6]["combination"], 7);
  const std::string text = Run({"ops", kGrad}).out;
  for (const char* const part :
       {"permuted_token_output_grad", "padded_mode", "ascend910_93", "_fp32_routing_bool"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST_F(Ops, UnknownOnesAreRefused) {
  const Outcome outcome = Run({"ops", "moe_token_bake"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("there is no operator 'moe_token_bake'; there are "));
}

TEST_F(Ops, HelpNamesTheCommands) {
  const std::string help = Run({"--help"}).out;
  EXPECT_THAT(help, HasSubstr("moeperm tiling "));
  EXPECT_THAT(help, HasSubstr("moeperm ops"));
}

}  // namespace
}  // namespace moeperm::cli_test
