// SPDX-License-Identifier: Apache-2.0
// Whether numbers come out, not whether they are good.
#include "support.hpp"

namespace moeperm::cli_test {
namespace {

class Bench : public CliTest {};

TEST_F(Bench, AFile) {
  RunOk({"make-case", "c", "--tokens", "100", "--hidden", "64", "--experts", "8", "--top-k", "2",
         "--dtype", "bfloat16", "--probs-dtype", "float32"});
  const Json json = RunJson({"bench", "c", "--quick", "--threads", "1"});
  EXPECT_EQ(json["threads"], 1);
  EXPECT_GT(json["read_gb_per_s"], 0.1);
  EXPECT_GT(json["write_gb_per_s"], 0.1);
  std::vector<std::string> ops;
  for (const Json& result : json["results"]) ops.push_back(result["op"]);
  ASSERT_THAT(ops,
              testing::ElementsAre("forward", "tokens-grad", "probs-grad", "row-map", "unpermute",
                                   "unpermute-grad", "index-permute", "sort-chunks"));
  const Json& forward = json["results"][0];
  // tokens + routing_map + probs; permuted_tokens + permuted_probs + sorted_indices.
  EXPECT_EQ(forward["bytes_read"], 100 * 64 * 2 + 100 * 8 + 100 * 8 * 4);
  EXPECT_EQ(forward["bytes_written"], 200 * 64 * 2 + 200 * 4 + 200 * 4);
  EXPECT_EQ(json["results"][1]["bytes_read"], 200 * 64 * 2 + 200 * 4);
  EXPECT_EQ(json["results"][1]["bytes_written"], 100 * 64 * 2);
  EXPECT_EQ(json["results"][2]["bytes_read"], 200 * 4 + 100 * 8);
  EXPECT_EQ(json["results"][2]["bytes_written"], 100 * 8 * 4);
  // The way back: a weight and a row number a slot.
  EXPECT_EQ(json["results"][4]["bytes_read"], 200 * 64 * 2 + 200 * 4 + 200 * 4);
  EXPECT_EQ(json["results"][4]["bytes_written"], 100 * 64 * 2);
  EXPECT_EQ(json["results"][5]["bytes_read"], 100 * 64 * 2 + 200 * 64 * 2 + 200 * 4 + 200 * 4);
  EXPECT_EQ(json["results"][5]["bytes_written"], 200 * 64 * 2 + 200 * 4);
  EXPECT_EQ(json["results"][6]["bytes_read"], 100 * 64 * 2 + 200 * 4);
  EXPECT_EQ(json["results"][6]["bytes_written"], 200 * 64 * 2 + 200 * 4);
  EXPECT_EQ(json["results"][7]["bytes_read"], 200 * 64 * 2);
  for (const Json& result : json["results"]) {
    EXPECT_GT(result["seconds"], 0);
    EXPECT_GE(result["samples"], 7);
    EXPECT_GT(result["seconds_best"], 0);
    EXPECT_LE(result["seconds_best"], result["seconds"]);
    EXPECT_GE(result["seconds_mad"], 0);
    const double spread = result["seconds_mad"].get<double>() / result["seconds"].get<double>();
    EXPECT_EQ(result["noisy"], spread > 0.05) << spread;
  }
}

TEST_F(Bench, TheTable) {
  const Json json =
      RunJson({"bench", "--quick", "--filter", "capacity=16 float32", "--op", "row-map"});
  ASSERT_EQ(json["results"].size(), 1U);
  EXPECT_EQ(json["results"][0]["op"], "row-map");
}

TEST_F(Bench, TheTextExplainsItsColumns) {
  RunOk({"make-case", "c", "--tokens", "10", "--hidden", "8", "--experts", "4", "--top-k", "2"});
  const Outcome outcome = Run({"bench", "c", "--quick", "--threads", "1"});
  EXPECT_EQ(outcome.status, 0);
  for (const char* const column : {"time", "spread", "possible", "floor/time"}) {
    EXPECT_THAT(outcome.out, testing::HasSubstr(std::string("\n") + column + " "));
  }
  // A mark is explained where there is one, and only there.
  const std::size_t explained = outcome.out.find("\nnoisy ");
  EXPECT_EQ(outcome.out.find("noisy\n") < explained, explained != std::string::npos);
}

}  // namespace
}  // namespace moeperm::cli_test
