// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

namespace moeperm::cli_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Check : public CliTest {
 protected:
  // What was compared, as "operator: tensor".
  static std::vector<std::string> Outputs(const Json& result) {
    std::vector<std::string> names;
    for (const Json& output : result["outputs"]) {
      names.push_back(output["operator"].get<std::string>() + ": " +
                      output["tensor"].get<std::string>());
    }
    return names;
  }
  static std::vector<std::string> OutputsOfCase(bool index_form, bool probs) {
    std::vector<std::string> names = {"permute: permuted_tokens"};
    const auto add = [&](const char* name, bool there) {
      if (there) names.emplace_back(name);
    };
    add("permute: permuted_probs", probs);
    add("permute: sorted_indices", true);
    add("permute: tokens_per_expert", true);
    add("permute: expert_offsets", !index_form);
    add("grad: tokens_grad", true);
    add("grad: probs_grad", probs);
    add("unpermute: tokens", true);
    add("unpermute: gathered_probs", probs && !index_form);
    add("unpermute-grad: permuted_tokens_grad", true);
    add("unpermute-grad: probs_grad", probs);
    return names;
  }
  // Changes one byte of a tensor in a file.
  void FlipBit(const std::string& name, const std::string& tensor, std::size_t byte) const {
    std::string bytes = ReadBytes(name);
    const Json header = ReadHeader(name);
    const std::uint64_t length = As<std::uint64_t>(bytes.substr(0, 8))[0];
    const std::uint64_t begin = header[tensor]["data_offsets"][0];
    bytes[8 + length + begin + byte] ^= 1;
    WriteBytes(name, bytes);
  }
};

TEST_F(Check, AllKindsOfCasesAreEqual) {
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"--dtype", "bfloat16", "--probs-dtype", "float32"},
      {"--dtype", "float16", "--ragged"},
      {"--probs-dtype", "none"},
      {"--num-out-tokens", "50"},
      {"--num-out-tokens", "5000"},
      {"--drop-and-pad", "--capacity", "40", "--routing", "zipf"},
      {"--drop-and-pad", "--capacity", "3", "--dtype", "bfloat16", "--map-dtype", "int8"},
      {"--index"},
      {"--index", "--duplicates", "--dtype", "bfloat16", "--probs-dtype", "float32"},
      {"--index", "--num-out-tokens", "50", "--probs-dtype", "none"},
  };
  for (const auto& options : cases) {
    std::vector<std::string> make = {"make-case", "c",  "--tokens",  "211",
                                     "--hidden",  "65", "--experts", "16"};
    make.insert(make.end(), options.begin(), options.end());
    RunOk(make);
    const Json result = RunJson({"check", "c"});
    EXPECT_EQ(result["equal"], true) << result;
    const Json header = ReadHeader("c");
    EXPECT_EQ(Outputs(result), OutputsOfCase(header.contains("indices"), header.contains("probs")));
    const Json rows = header["permuted_tokens_grad"]["shape"][0];
    EXPECT_EQ(result["outputs"][0]["elements"], 65 * rows.get<int>());
  }
}

TEST_F(Check, ADifferenceIsShown) {
  RunOk({"make-case", "c", "--tokens", "10", "--hidden", "5", "--experts", "4", "--top-k", "2"});
  RunOk({"permute", "c", "p"});
  RunOk({"grad", "c", "p", "g"});
  for (const char* const file : {"p", "g"}) RunOk({"check", "c", "--against", file});

  FlipBit("p", "permuted_tokens", 4 * (3 * 5 + 2));
  FlipBit("p", "permuted_tokens", 4 * (7 * 5));
  const Json json = RunJson({"check", "c", "--against", "p"}, 1);
  EXPECT_EQ(json["equal"], false);
  const Json& output = json["outputs"][0];
  EXPECT_EQ(output["tensor"], "permuted_tokens");
  EXPECT_EQ(output["different"], 2);
  EXPECT_EQ(output["first"]["index"], Json({3, 2}));
  EXPECT_NE(output["first"]["got_bits"], output["first"]["expected_bits"]);
  for (std::size_t i = 1; i < json["outputs"].size(); ++i) {
    EXPECT_EQ(json["outputs"][i]["different"], 0);
  }
  const Outcome text = Run({"check", "c", "--against", "p"});
  EXPECT_EQ(text.status, 1);
  EXPECT_THAT(text.out, HasSubstr("2 of 100 elements differ"));
  EXPECT_THAT(text.out, HasSubstr("first at [3, 2]"));
  EXPECT_THAT(text.out, StartsWith("p against the plain reference on c, bit for bit:\n"));
  EXPECT_THAT(text.out, EndsWith("\np is WRONG in permuted_tokens\n"));

  FlipBit("g", "probs_grad", 0);
  EXPECT_EQ(Run({"check", "c", "--against", "g"}).status, 1);
  FlipBit("p", "sorted_indices", 8);
  EXPECT_THAT(Run({"check", "c", "--against", "p"}).out,
              HasSubstr("1 of 20 elements differ, by up to 1"));
}

// The files of the way back; probs_grad is an output of two operators, so --of says whose it is.
TEST_F(Check, TheWayBackOfAnotherImplementation) {
  for (const bool index : {false, true}) {
    std::vector<std::string> make = {"make-case", "c",         "--tokens", "10",      "--hidden",
                                     "5",         "--experts", "4",        "--top-k", "2"};
    if (index) make.emplace_back("--index");
    RunOk(make);
    RunOk({"permute", "c", "p"});
    RunOk({"unpermute", "p", "u", "--probs-from", "c"});
    RunOk({"grad", "c", "p", "g"});
    RunOk({"unpermute-grad", "p", "g", "b", "--probs-from", "c"});
    RunOk({"check", "c", "--against", "u", "--of", "unpermute"});
    RunOk({"check", "c", "--against", "b", "--of", "unpermute-grad"});
    const Outcome whose = Run({"check", "c", "--against", "b"});
    EXPECT_EQ(whose.status, 1) << "probs_grad is taken for grad's";

    FlipBit("u", "tokens", 4 * (6 * 5 + 1));
    const Json tokens = RunJson({"check", "c", "--against", "u", "--of", "unpermute"}, 1);
    EXPECT_EQ(tokens["outputs"][0]["first"]["index"], Json({6, 1}));
    FlipBit("b", "permuted_tokens_grad", 4 * (19 * 5 + 4));
    const Json rows = RunJson({"check", "c", "--against", "b", "--of", "unpermute-grad"}, 1);
    EXPECT_EQ(rows["outputs"][0]["first"]["index"], Json({19, 4}));
    EXPECT_EQ(rows["outputs"][0]["different"], 1);
    EXPECT_EQ(rows["outputs"][1]["different"], 0);
  }
  const Outcome name = Run({"check", "c", "--against", "u", "--of", "unpermutate"});
  EXPECT_EQ(name.status, 2);
}

TEST_F(Check, ShapesAndTypesOfAnotherImplementation) {
  RunOk({"make-case", "c", "--tokens", "4", "--hidden", "2", "--experts", "2", "--top-k", "1"});
  WriteRaw("p", R"({"permuted_tokens": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]}})",
           std::string(32, '\0'));
  const Outcome shape = Run({"check", "c", "--against", "p"});
  EXPECT_EQ(shape.status, 1);
  EXPECT_THAT(shape.out, HasSubstr("is float32 [8] but must be float32 [4, 2]"));
  WriteRaw("p", R"({"sorted_indices": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})",
           std::string(16, '\0'));
  EXPECT_EQ(Run({"check", "c", "--against", "p"}).status, 1);
  WriteRaw("p", R"({"other": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})",
           std::string(16, '\0'));
  const Outcome none = Run({"check", "c", "--against", "p"});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("p: there is no output to check, none of permuted_tokens, "));
}

// A tensor with another name than its output has is not passed over in silence.
TEST_F(Check, TensorsThatAreNoOutputsAreNamed) {
  RunOk({"make-case", "c", "--tokens", "4", "--hidden", "2", "--experts", "2", "--top-k", "1"});
  WriteRaw("p", R"({"token_grad": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                    "tokens_per_expert": {"dtype": "I32", "shape": [2], "data_offsets": [4, 12]}})",
           std::string(4, '\0') + BytesOf<std::int32_t>({4, 4}));
  const Json json = RunJson({"check", "c", "--against", "p"}, 1);
  EXPECT_EQ(json["file"], "c");
  EXPECT_EQ(json["checked"], "p");
  EXPECT_EQ(json["not_checked"], Json({"token_grad"}));
  const Outcome text = Run({"check", "c", "--against", "p"});
  EXPECT_THAT(text.out, HasSubstr("no outputs of this case: 'token_grad'\n"));
  EXPECT_THAT(text.out, EndsWith("\np is WRONG in tokens_per_expert\n"));
}

// What is wrong with the case is said of the case.
TEST_F(Check, ABadCaseIsNamed) {
  WriteRaw("c",
           R"({"__metadata__": {"top_k": "1"},
               "tokens": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
               "routing_map": {"dtype": "BOOL", "shape": [1, 2], "data_offsets": [8, 10]}})",
           std::string(10, '\0'));
  RunOk({"make-case", "p", "--tokens", "1", "--hidden", "1", "--experts", "1", "--top-k", "1"});
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"check", "c"},
                                             {"check", "c", "--against", "p"},
                                             {"permute", "c", "out"},
                                             {"bench", "c"}}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, StartsWith("moeperm: error: c: tokens.shape[0] = 2 but must be 1"));
  }
}

// A NaN in a sum may come out as another NaN; in a copy it may not.
TEST_F(Check, NansOfSums) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  WriteRaw("c",
           R"({"__metadata__": {"top_k": "2"},
               "tokens": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]},
               "permuted_tokens_grad": {"dtype": "F32", "shape": [2, 1], "data_offsets": [4, 12]},
               "routing_map": {"dtype": "BOOL", "shape": [1, 2], "data_offsets": [12, 14]}})",
           BytesOf<float>({nan, nan, 1}) + BytesOf<std::uint8_t>({1, 1}));
  RunOk({"check", "c"});
  WriteRaw("g", R"({"tokens_grad": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]}})",
           BytesOf<std::uint32_t>({0xFFC12345}));
  RunOk({"check", "c", "--against", "g"});
  WriteRaw("p", R"({"permuted_tokens": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}})",
           BytesOf<std::uint32_t>({0xFFC12345, 0x7FC00000}));
  const Outcome outcome = Run({"check", "c", "--against", "p"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.out, HasSubstr("0xffc12345"));
}

}  // namespace
}  // namespace moeperm::cli_test
