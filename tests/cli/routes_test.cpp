// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

namespace moeperm::cli_test {
namespace {

using testing::HasSubstr;

// Five tokens, four experts that get 4, 0, 1 and 3 tokens.
class Routes : public CliTest {
 protected:
  void WriteMap(const std::string& name, const std::string& metadata) const {
    WriteRaw(
        name,
        R"({"__metadata__": {)" + metadata +
            R"(}, "routing_map": {"dtype": "BOOL", "shape": [5, 4], "data_offsets": [0, 20]}})",
        BytesOf<std::uint8_t>({1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0}));
  }
};

TEST_F(Routes, Numbers) {
  WriteMap("c", "");
  const Json json = RunJson({"routes", "c"});
  EXPECT_EQ(json["tokens_per_expert"], Json({4, 0, 1, 3}));
  EXPECT_EQ(json["routes"], 8);
  EXPECT_EQ(json["min"], 0);
  EXPECT_EQ(json["mean"], 2.0);
  EXPECT_EQ(json["max"], 4);
  EXPECT_EQ(json["imbalance"], 2.0);
  EXPECT_EQ(json["empty_experts"], 1);
  EXPECT_FALSE(json.contains("capacity"));
}

TEST_F(Routes, Capacity) {
  WriteMap("c", R"("drop_and_pad": "true", "num_out_tokens": "8")");
  const Json json = RunJson({"routes", "c"});
  EXPECT_EQ(json["capacity"], 2);
  EXPECT_EQ(json["dropped"], 3);
  EXPECT_EQ(json["drop_rate"], 3.0 / 8);
  EXPECT_EQ(json["pad_rows"], 3);
  EXPECT_EQ(RunJson({"routes", "c", "--capacity", "3"})["dropped"], 1);
  EXPECT_FALSE(RunJson({"routes", "c", "--no-drop-and-pad"}).contains("capacity"));
}

TEST_F(Routes, Tables) {
  WriteMap("c", "");
  const std::string top = Run({"routes", "c", "--top", "2"}).out;
  EXPECT_THAT(top, HasSubstr("\n     0       4     2.00  █"));
  EXPECT_THAT(top, HasSubstr("\n     3       3     1.50  █"));
  EXPECT_THAT(top, testing::Not(HasSubstr("\n     2       1")));
  const std::string all = Run({"routes", "c", "--all"}).out;
  EXPECT_THAT(all, HasSubstr("\n     1       0     0.00\n     2       1     0.50  █"));
}

TEST_F(Routes, Picture) {
  WriteMap("<a & b>", R"("drop_and_pad": "true", "num_out_tokens": "8")");
  RunOk({"routes", "<a & b>", "--svg", "s.svg"});
  const std::string svg = ReadBytes("s.svg");
  EXPECT_THAT(svg, testing::StartsWith("<svg "));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  for (const char* const part : {"&lt;a &amp; b&gt;", "mean 2.0", "capacity 2", "dropped (37.5 %)",
                                 ">expert<", ">tokens<"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
}

TEST_F(Routes, NothingToShow) {
  RunOk({"make-case", "c", "--tokens", "0"});
  RunOk({"routes", "c", "--svg", "s.svg"});
  WriteRaw("e", R"({"routing_map": {"dtype": "I8", "shape": [3, 0], "data_offsets": [0, 0]}})", "");
  RunOk({"routes", "e", "--svg", "s.svg"});
  RunOk({"routes", "e", "--json"});
}

}  // namespace
}  // namespace moeperm::cli_test
