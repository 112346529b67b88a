// SPDX-License-Identifier: Apache-2.0
// permute and grad on files, with results small enough to work out by hand.
#include "support.hpp"

namespace moeperm::cli_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Three tokens, three experts, two routes each; a number says where it came from.
class Operators : public CliTest {
 protected:
  static constexpr const char* kMetadata =
      R"("__metadata__": {"top_k": "2", "num_out_tokens": "6", "drop_and_pad": "false"})";

  void WriteCase(const std::string& name, const std::string& metadata = kMetadata,
                 const std::string& map_dtype = "BOOL", const std::string& padding = "") const {
    const std::string header =
        "{" + metadata + (metadata.empty() ? "" : ", ") +
        R"("tokens": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]},
           "probs": {"dtype": "F32", "shape": [3, 3], "data_offsets": [24, 60]},
           "permuted_tokens_grad": {"dtype": "F32", "shape": [6, 2], "data_offsets": [60, 108]},
           "permuted_probs_grad": {"dtype": "F32", "shape": [6], "data_offsets": [108, 132]},
           "routing_map": {"dtype": ")" +
        map_dtype + R"(", "shape": [3, 3], "data_offsets": [132, 141]}})" + padding;
    WriteRaw(name, header,
             BytesOf<float>({0, 1, 10, 11, 20, 21}) +
                 BytesOf<float>({.5, 1.5, 2.5, 10.5, 11.5, 12.5, 20.5, 21.5, 22.5}) +
                 BytesOf<float>({1, 2, 10, 20, 100, 200, 1000, 2000, 1e4F, 2e4F, 1e5F, 2e5F}) +
                 BytesOf<float>({1, 2, 3, 4, 5, 6}) +
                 BytesOf<std::uint8_t>({1, 0, 1, 1, 1, 0, 0, 1, 1}));
  }
  void ExpectForward(const std::string& name) const {
    EXPECT_THAT(As<float>(ReadTensor(name, "permuted_tokens")),
                ElementsAre(0, 1, 10, 11, 10, 11, 20, 21, 0, 1, 20, 21));
    EXPECT_THAT(As<float>(ReadTensor(name, "permuted_probs")),
                ElementsAre(.5, 10.5, 11.5, 21.5, 2.5, 22.5));
    EXPECT_THAT(As<std::int32_t>(ReadTensor(name, "sorted_indices")),
                ElementsAre(0, 4, 1, 2, 3, 5));
    EXPECT_THAT(As<std::int64_t>(ReadTensor(name, "tokens_per_expert")), ElementsAre(2, 2, 2));
    EXPECT_THAT(As<std::int64_t>(ReadTensor(name, "expert_offsets")), ElementsAre(0, 2, 4, 6));
  }
};

TEST_F(Operators, ForwardAndGradient) {
  WriteCase("c");
  RunOk({"permute", "c", "p"});
  ExpectForward("p");
  RunOk({"grad", "c", "p", "g"});
  EXPECT_THAT(As<float>(ReadTensor("g", "tokens_grad")),
              ElementsAre(10001, 20002, 110, 220, 101000, 202000));
  // The trap: not [[1, 0, 2], [3, 4, 0], [0, 5, 6]].
  EXPECT_THAT(As<float>(ReadTensor("g", "probs_grad")), ElementsAre(1, 0, 5, 2, 3, 0, 0, 4, 6));
}

TEST_F(Operators, OneGradientOnly) {
  WriteCase("c");
  RunOk({"permute", "c", "p"});
  RunOk({"grad", "c", "p", "g", "--only", "tokens"});
  EXPECT_FALSE(ReadHeader("g").contains("probs_grad"));
  RunOk({"grad", "c", "p", "g", "--only", "probs"});
  EXPECT_FALSE(ReadHeader("g").contains("tokens_grad"));
}

TEST_F(Operators, GradientsFromAnotherFile) {
  WriteCase("c");
  RunOk({"permute", "c", "p"});
  WriteRaw("other",
           R"({"permuted_probs_grad": {"dtype": "F32", "shape": [6], "data_offsets": [0, 24]}})",
           BytesOf<float>({6, 5, 4, 3, 2, 1}));
  RunOk({"grad", "c", "p", "g", "--grads", "other"});
  EXPECT_THAT(As<float>(ReadTensor("g", "probs_grad")), ElementsAre(6, 0, 2, 5, 4, 0, 0, 3, 1));
  const Outcome missing = Run({"grad", "c", "p", "g", "--grads", "other", "--only", "tokens"});
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.err, HasSubstr("other: has no tensor 'permuted_tokens_grad'"));
  const Outcome none = Run({"grad", "c", "p", "g", "--grads", "p"});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("neither"));
}

// The file with the indices says what they mean; another mode would make row numbers of tokens.
TEST_F(Operators, TheGradientFollowsTheFileWithTheIndices) {
  WriteCase("c");
  RunOk({"permute", "c", "p", "--drop-and-pad", "--capacity", "2"});
  RunOk({"grad", "c", "p", "g"});
  // Capacity 2 is what each expert has here: the same rows in the other mode.
  EXPECT_THAT(As<float>(ReadTensor("g", "tokens_grad")),
              ElementsAre(10001, 20002, 110, 220, 101000, 202000));
  EXPECT_EQ(ReadHeader("g")["__metadata__"]["drop_and_pad"], "true");

  RunOk({"permute", "c", "cut", "--num-out-tokens", "4"});
  const Outcome rows = Run({"grad", "c", "cut", "g"});
  EXPECT_EQ(rows.status, 2);
  EXPECT_THAT(rows.err, HasSubstr("cut: has 4 permuted rows, but tensor 'permuted_tokens_grad' of "
                                  "c has 6"));
  WriteRaw("other",
           R"({"permuted_probs_grad": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})",
           BytesOf<float>({1, 2, 3, 4}));
  RunOk({"grad", "c", "cut", "g", "--grads", "other"});
  EXPECT_THAT(As<float>(ReadTensor("g", "probs_grad")), ElementsAre(1, 0, 0, 2, 3, 0, 0, 4, 0));
}

TEST_F(Operators, Int64Indices) {
  WriteCase("c");
  RunOk({"permute", "c", "p", "--int64-indices"});
  EXPECT_THAT(As<std::int64_t>(ReadTensor("p", "sorted_indices")), ElementsAre(0, 4, 1, 2, 3, 5));
  RunOk({"grad", "c", "p", "g"});
}

TEST_F(Operators, MapsOfOtherTypes) {
  for (const char* const dtype : {"U8", "I8"}) {
    WriteCase("c", kMetadata, dtype);
    RunOk({"permute", "c", "p"});
    ExpectForward("p");
  }
  WriteCase("c", kMetadata, "F8_E4M3");
  const Outcome outcome = Run({"permute", "c", "p"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("tensor 'routing_map' has dtype F8_E4M3"));
}

// Other writers do not align their data; the operators need aligned elements.
TEST_F(Operators, MisalignedFiles) {
  for (const char* const padding : {"", " ", "  ", "   "}) {
    WriteCase("c", kMetadata, "BOOL", padding);
    RunOk({"permute", "c", "p"});
    ExpectForward("p");
  }
}

TEST_F(Operators, AttributesComeFromOptionsWhereMetadataHaveNone) {
  WriteCase("c", "");
  const Outcome outcome = Run({"permute", "c", "p"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--top-k"));
  RunOk({"permute", "c", "p", "--top-k", "2"});
  ExpectForward("p");
  RunOk({"permute", "c", "p", "--top-k", "2", "--num-out-tokens", "2"});
  EXPECT_THAT(As<std::int32_t>(ReadTensor("p", "sorted_indices")),
              ElementsAre(0, -1, 1, -1, -1, -1));
}

TEST_F(Operators, OptionsOverrideMetadata) {
  WriteCase("c");
  RunOk({"permute", "c", "p", "--drop-and-pad", "--capacity", "1"});
  EXPECT_THAT(As<std::int32_t>(ReadTensor("p", "sorted_indices")), ElementsAre(0, 1, 0));
  EXPECT_EQ(ReadHeader("p")["__metadata__"]["drop_and_pad"], "true");
  RunOk({"permute", "c", "p", "--top-k", "3"});
  EXPECT_THAT(As<std::int32_t>(ReadTensor("p", "sorted_indices")),
              ElementsAre(0, 4, -1, 1, 2, -1, 3, 5, -1));
}

TEST_F(Operators, MetadataThatAreNoNumbers) {
  WriteCase("c", R"("__metadata__": {"top_k": "2x"})");
  EXPECT_THAT(Run({"permute", "c", "p"}).err, HasSubstr("top_k is '2x', not a number"));
  WriteCase("c", R"("__metadata__": {"top_k": "2", "num_out_tokens": "99999999999999999999"})");
  EXPECT_THAT(Run({"permute", "c", "p"}).err, HasSubstr("num_out_tokens is"));
  WriteCase("c", R"("__metadata__": {"top_k": "2", "drop_and_pad": "perhaps"})");
  EXPECT_THAT(Run({"permute", "c", "p"}).err, HasSubstr("'perhaps', neither true nor false"));
  WriteCase("c", R"("__metadata__": {"top_k": "9223372036854775807"})");
  EXPECT_EQ(Run({"permute", "c", "p"}).status, 2);
}

TEST_F(Operators, TheLibrarysWordsReachThePerson) {
  WriteCase("c");
  const Outcome many = Run({"permute", "c", "p", "--top-k", "1"});
  EXPECT_EQ(many.status, 2);
  EXPECT_THAT(many.err, testing::StartsWith("moeperm: error: "));
  WriteRaw("p", R"({"sorted_indices": {"dtype": "I32", "shape": [6], "data_offsets": [0, 24]}})",
           BytesOf<std::int32_t>({0, 4, 1, 2, 3, 9}));
  const Outcome range = Run({"grad", "c", "p", "g"});
  EXPECT_EQ(range.status, 2);
  EXPECT_THAT(range.err, HasSubstr("sorted_indices[5] = 9"));
  RunOk({"grad", "c", "p", "g", "--skip-rows-out-of-range"});
}

TEST_F(Operators, ThreadsAndInstructionSetsGiveTheSameBytes) {
  RunOk({"make-case", "c", "--tokens", "300", "--hidden", "77", "--dtype", "bfloat16"});
  RunOk({"permute", "c", "p"});
  RunOk({"grad", "c", "p", "g"});
  const Json info = RunJson({"info"});
  for (const std::string isa : info["isa_available"]) {
    RunOk({"permute", "c", "p2", "--isa", isa, "--threads", "3"});
    RunOk({"grad", "c", "p", "g2", "--isa", isa, "--threads", "1"});
    EXPECT_TRUE(ReadBytes("p2") == ReadBytes("p")) << isa;
    EXPECT_TRUE(ReadBytes("g2") == ReadBytes("g")) << isa;
  }
}

}  // namespace
}  // namespace moeperm::cli_test
