// SPDX-License-Identifier: Apache-2.0
// `moeperm replay`: the examples pass, what a file says wrongly is named, no file is a crash.
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "cli/support.hpp"

namespace moeperm::cli_test {
namespace {

using testing::HasSubstr;

class Replay : public CliTest {
 protected:
  Replay() { examples_ = Json::parse(ReadExamples()); }

  static std::string ReadExamples() {
    std::ifstream file(MOEPERM_CASES);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // The gradient case with probs that most tests change a little.
  [[nodiscard]] Json Grad() const { return examples_[0]; }
  [[nodiscard]] Json Padded() const { return Find(7); }
  [[nodiscard]] Json Permute() const { return Find(21); }
  [[nodiscard]] Json Find(int id) const {
    for (const Json& one : examples_) {
      if (one["id"] == id) return one;
    }
    ADD_FAILURE() << "no example " << id;
    return {};
  }

  void Write(const Json& one) const { WriteBytes("cases.json", Json::array({one}).dump()); }
  void ExpectRefused(const Json& one, const std::string& text) const {
    Write(one);
    const Outcome outcome = Run({"replay", "cases.json"});
    EXPECT_EQ(outcome.status, 2) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(text));
    EXPECT_EQ(outcome.out, "");
  }
  [[nodiscard]] Json Only(const Json& one, int status = 0) const {
    Write(one);
    const Json result = RunJson({"replay", "cases.json"}, status);
    return result.at("results").at(0);
  }

  Json examples_;
};

TEST_F(Replay, TheExamplesPass) {
  for (const bool ragged : {false, true}) {
    for (const char* const seed : {"0", "1", "2"}) {
      std::vector<std::string> arguments = {"replay", MOEPERM_CASES, "--seed", seed};
      if (ragged) arguments.emplace_back("--ragged");
      const Json result = RunJson(arguments);
      EXPECT_EQ(result["cases"], examples_.size());
      EXPECT_EQ(result["passed"], examples_.size()) << result;
      EXPECT_EQ(result["failed"], 0);
      EXPECT_EQ(result["skipped"], 0);
    }
  }
}

TEST_F(Replay, TheExamplesHaveBothOperatorsModesAndAllTypes) {
  const Json result = RunJson({"replay", MOEPERM_CASES});
  std::set<std::string> kinds;
  for (const Json& one : result["results"]) {
    if (!one.contains("dtype")) continue;
    kinds.insert(one["operator"].get<std::string>() + (one["drop_and_pad"] ? " padded" : ""));
    kinds.insert(one["dtype"]);
    if (!one["probs_dtype"].is_null() && one["probs_dtype"] != one["dtype"]) kinds.insert("mixed");
    // Probs stay out where the id is even, and are checked where it is odd.
    EXPECT_EQ(one["probs_dtype"].is_null(), one["id"].get<int>() % 2 == 0);
    const bool grad = one["operator"] == "aclnnMoeTokenPermuteWithRoutingMapGrad";
    const std::size_t outputs = (grad ? 1 : 2) + (one["probs_dtype"].is_null() ? 0 : 1);
    EXPECT_EQ(one["outputs"].size(), outputs) << one;
    for (const Json& output : one["outputs"]) EXPECT_GT(output["elements"], 0);
  }
  EXPECT_EQ(kinds.size(), 8U);
}

TEST_F(Replay, TextForPeople) {
  const Outcome outcome = Run({"replay", MOEPERM_CASES});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("15 cases: 15 passed, 0 failed, 0 skipped"));
  EXPECT_THAT(outcome.out, HasSubstr("grad_padded_bf16"));
}

TEST_F(Replay, FilterByIdAndName) {
  EXPECT_EQ(RunJson({"replay", MOEPERM_CASES, "--filter", "5"})["cases"], 1);
  EXPECT_EQ(RunJson({"replay", MOEPERM_CASES, "--filter", "permute_padded"})["cases"], 2);
  const Outcome outcome = Run({"replay", MOEPERM_CASES, "--filter", "nothing"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("'nothing'"));
}

TEST_F(Replay, AnEmptyListPasses) {
  WriteBytes("cases.json", "[]");
  EXPECT_EQ(RunJson({"replay", "cases.json"})["cases"], 0);
}

TEST_F(Replay, OtherOperatorsAreSkipped) {
  Json one = Grad();
  one["aclnn_name"] = "aclnnMoeTokenUnpermute";
  one["inputs"] = Json::array();
  const Json result = Only(one);
  EXPECT_EQ(result["status"], "skipped");
  EXPECT_THAT(result["reason"].get<std::string>(), HasSubstr("aclnnMoeTokenUnpermute"));
}

TEST_F(Replay, CasesAboveTheMemoryAreSkipped) {
  Json one = Permute();
  one["inputs"][0]["shape"] = {2147483647, 2147483647};
  one["inputs"][1]["shape"] = {2147483647, 2147483647};
  one["inputs"][2]["shape"] = {2147483647, 2147483647};
  one["inputs"][3]["range_values"] = 2147483647;
  const Json result = Only(one);
  EXPECT_EQ(result["status"], "skipped");
  EXPECT_THAT(result["reason"].get<std::string>(), HasSubstr("of memory"));
}

TEST_F(Replay, AnExpectedErrorThatDoesNotComeIsNoPass) {
  Json one = Grad();
  one["expected_error_msg"] = "something else";
  EXPECT_EQ(Only(one)["status"], "skipped");
}

TEST_F(Replay, EmptyTensorsAreCases) {
  Json one = Permute();
  one["inputs"][0]["shape"] = {0, 8};
  one["inputs"][1]["shape"] = {0, 4};
  one["inputs"][2]["shape"] = {0, 4};
  one["inputs"][3]["range_values"] = 0;
  EXPECT_EQ(Only(one)["status"], "passed");
  one = Grad();
  one["inputs"][0]["shape"] = {0, 8};
  one["inputs"][1]["shape"] = {0};
  one["inputs"][2]["shape"] = {0};
  EXPECT_EQ(Only(one)["status"], "passed");
}

TEST_F(Replay, AnAttributeMayStandInAList) {
  Json one = Padded();
  one["inputs"][6]["range_values"] = Json::array({true});
  EXPECT_EQ(Only(one)["drop_and_pad"], true);
}

TEST_F(Replay, WhatDoesNotFitIsNamed) {
  Json one = Grad();
  one["inputs"][2]["shape"] = {1000};
  ExpectRefused(one, "case 1: sortedIndices is [1000] but must be [1024]");
  one = Grad();
  one["inputs"][5]["range_values"] = 100;
  one["inputs"][3]["shape"] = {100, 64};
  ExpectRefused(one, "case 1: tokensNum = 100 but must be a divisor of the 1024 rows");
  one = Grad();
  one["inputs"][4]["range_values"] = 0;
  ExpectRefused(one, "case 1: numExperts = 0 but must be 1 to 2147483647");
  one["inputs"][4]["range_values"] = 4;
  one["inputs"][3]["shape"] = {128, 4};
  ExpectRefused(one, "case 1: numExperts = 4 but must be at least the 8 rows of a token");
  one = Grad();
  one["inputs"][3] = nullptr;
  ExpectRefused(one, "case 1: permutedProbsOutputGradOptional is given, and so routingMapOptional");
  one = Grad();
  one["inputs"][0]["dtype"] = "int8";
  ExpectRefused(one, "case 1: permutedTokenOutputGrad is int8 but must be fp16, bf16 or fp32");
  one = Padded();
  one["inputs"][5]["range_values"] = 3;
  one["inputs"][3]["shape"] = {3, 16};
  ExpectRefused(one, "case 7: tokensNum = 3 but must be at least the 4 rows of an expert");
  one = Permute();
  one["inputs"][3]["range_values"] = -1;
  ExpectRefused(one, "case 21: numOutTokens = -1 but must be 0 to tokens * experts = 8192");
}

TEST_F(Replay, WrongTypesAndValuesAreNamed) {
  Json one = Grad();
  one["id"] = "seven";
  ExpectRefused(one, "the case at [0]: id = ");
  one = Grad();
  one.erase("name");
  ExpectRefused(one, "case 1: there is no 'name'");
  one = Grad();
  one["aclnn_name"] = 5;
  ExpectRefused(one, "case 1: aclnn_name = '5' but must be a text");
  one = Grad();
  one["inputs"].erase(6);
  ExpectRefused(one, "case 1: inputs has 6 elements but");
  one = Grad();
  one["inputs"] = "none";
  ExpectRefused(one, "case 1: inputs = ");
  one = Grad();
  one["inputs"][0]["shape"] = {-4, 8};
  ExpectRefused(one, "case 1: inputs[0] (permutedTokenOutputGrad): shape[0] = '-4' but must be");
  one["inputs"][0]["shape"] = {4.5, 8};
  ExpectRefused(one, "shape[0] = '4.5'");
  one["inputs"][0]["shape"] = {4611686018427387904, 8};
  ExpectRefused(one, "shape[0] = '4611686018427387904'");
  one["inputs"][0]["shape"] = {18446744073709551615U, 8};
  ExpectRefused(one, "shape[0] = '18446744073709551615'");
  one["inputs"][0]["shape"] = {{"a", 1}};
  ExpectRefused(one, "shape = an object but must be a list");
  one = Grad();
  one["inputs"][0]["dtype"] = "complex";
  ExpectRefused(one, "dtype = ");
  one = Grad();
  one["inputs"][0]["range_values"] = {5, -5};
  ExpectRefused(one, "the smaller one first");
  one = Grad();
  one["inputs"][4]["range_values"] = true;
  ExpectRefused(one, "(numExperts): range_values = 'true' but must be an integer");
  one = Grad();
  one["inputs"][6]["range_values"] = 1;
  ExpectRefused(one, "must be true or false");
  one = Grad();
  one["inputs"][1]["type"] = "attr";
  ExpectRefused(one, "must be \"tensor\"");
  ExpectRefused(Json(7), "the case at [0] = '7' but must be an object");
}

TEST_F(Replay, FilesThatAreNoLists) {
  const std::string deep(200'000, '[');
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("nul"), std::string("[1"), deep,
        deep + std::string(200'000, ']'), std::string("\xFF\xFE\0[", 4),
        "[{\"id\": " + deep + std::string(200'000, ']') + "}]"}) {
    WriteBytes("cases.json", text);
    const Outcome outcome = Run({"replay", "cases.json"});
    EXPECT_EQ(outcome.status, 2) << text.substr(0, 20) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("cases.json"));
  }
  EXPECT_EQ(Run({"replay", "missing.json"}).status, 2);
  EXPECT_EQ(Run({"replay", "."}).status, 2);
}

// Every value of a case replaced by others: an answer, never a crash.
TEST_F(Replay, EveryValueReplaced) {
  const Json one = Padded();
  const Json flat = one.flatten();
  int runs = 0;
  for (const auto& [path, unused] : flat.items()) {
    for (const Json& value : {Json(nullptr), Json(-1), Json(0), Json(1e300), Json("x"), Json(true),
                              Json::array(), Json::object(), Json(INT64_MIN)}) {
      Json changed = one;
      changed[Json::json_pointer(path)] = value;
      Write(changed);
      const Outcome outcome = Run({"replay", "cases.json"});
      EXPECT_TRUE(outcome.status == 0 || outcome.status == 2)
          << path << " = " << value << ": " << outcome.status << outcome.out << outcome.err;
      ++runs;
    }
  }
  EXPECT_GT(runs, 200);
}

}  // namespace
}  // namespace moeperm::cli_test
