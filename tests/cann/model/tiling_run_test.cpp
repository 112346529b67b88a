// SPDX-License-Identifier: Apache-2.0
// `moeperm tiling --run`: the model's report of a tiling.
#include <string>
#include <vector>

#include "cli/support.hpp"

namespace moeperm::cli_test {
namespace {

using testing::HasSubstr;

class TilingRun : public CliTest {
 protected:
  [[nodiscard]] Json Kernels(std::vector<std::string> options, int status = 0) const {
    options.insert(options.begin(), {"tiling", "permute_with_routing_map_grad", "--run"});
    return RunJson(options, status).at("run");
  }
  [[nodiscard]] Outcome Grad(std::vector<std::string> options) const {
    options.insert(options.begin(), {"tiling", "permute_with_routing_map_grad", "--run"});
    return Run(options);
  }
};

TEST_F(TilingRun, NotPaddedMovesTheFloor) {
  const Json kernels = Kernels(
      {"--tokens", "100", "--hidden", "300", "--top-k", "3", "--cores", "7", "--dtype", "float16"});
  ASSERT_EQ(kernels.size(), 1U);
  const Json& kernel = kernels[0];
  // 300 indices, 300 rows in, 100 rows out.
  constexpr int kBytes = 300 * 4 + 400 * 300 * 2;
  EXPECT_EQ(kernel["bytes"], kBytes);
  EXPECT_EQ(kernel["floor_bytes"], kBytes);
  EXPECT_EQ(kernel["equal"], true);
  EXPECT_EQ(kernel["block_dim"], 7);
  EXPECT_EQ(kernel["cores"].size(), 7U);
  EXPECT_EQ(kernel["cores"][0]["units"], 15);
  EXPECT_EQ(kernel["cores"][6]["units"], 14);
  EXPECT_EQ(kernel["total"]["units"], 100);
  EXPECT_LE(kernel["ub_peak"], kernel["ub_bytes"]);
  EXPECT_GT(kernel["ub_peak"], 0);
  EXPECT_EQ(kernel["idle"], nullptr);
}

TEST_F(TilingRun, PaddedRunsBothKernels) {
  for (const char* const dtype : {"float32", "float16", "bfloat16"}) {
    const Json kernels =
        Kernels({"--tokens", "50", "--hidden", "70", "--experts", "8", "--capacity", "20",
                 "--drop-and-pad", "--cores", "6", "--dtype", dtype, "--seed", "3"});
    ASSERT_EQ(kernels.size(), 2U);
    for (const Json& kernel : kernels) {
      EXPECT_EQ(kernel["equal"], true) << dtype;
      EXPECT_EQ(kernel["total"]["units"], 160);
      EXPECT_LE(kernel["ub_peak"], kernel["ub_bytes"]);
    }
    EXPECT_EQ(kernels[0]["bytes"], kernels[0]["floor_bytes"]);
    // The rows that are added to are read, too.
    EXPECT_GT(kernels[1]["bytes"], kernels[1]["floor_bytes"]);
    EXPECT_EQ(kernels[1]["fields"].size(), 22U);
  }
}

TEST_F(TilingRun, ABufferThatIsTooSmallIsReported) {
  const Json kernels = Kernels({"--ub", "8192", "--tokens", "10"});
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0]["bytes"], 0);
  EXPECT_EQ(kernels[0]["equal"], nullptr);
  EXPECT_EQ(kernels[0]["idle"], "a unified buffer of 7936 bytes has no room for a hidden tile");
  EXPECT_THAT(Grad({"--ub", "8192", "--tokens", "10"}).out, HasSubstr("nothing is written"));
}

TEST_F(TilingRun, TextForPeople) {
  const Outcome outcome = Grad({"--tokens", "10", "--hidden", "64", "--cores", "4"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("1.000 times the floor"));
  EXPECT_THAT(outcome.out, HasSubstr("0 - 1"));
  EXPECT_THAT(outcome.out, HasSubstr("2 - 3"));
  EXPECT_THAT(outcome.out, HasSubstr("equals the library's, bit for bit"));
}

TEST_F(TilingRun, FewerRowsThanTokensAreNothingToDo) {
  const Json kernels = Kernels({"--tokens", "9", "--num-out-tokens", "4", "--hidden", "8"});
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0]["block_dim"], 0);
  EXPECT_EQ(kernels[0]["equal"], nullptr);
}

TEST_F(TilingRun, WhatCannotRunIsRefused) {
  const auto refused = [](const Outcome& outcome, const char* text) {
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(text));
  };
  refused(Run({"tiling", "permute_with_routing_map", "--run"}), "there is no model of");
  // The original writes past its output here.
  refused(Grad({"--num-out-tokens", "10", "--tokens", "4", "--hidden", "5"}), "tokens_grad");
  refused(Grad({"--tokens", "1000000", "--hidden", "1000000"}), "of memory");
  refused(Grad({"--tokens", "4000000000", "--hidden", "4000000000", "--top-k", "1"}), "--run");
  refused(Grad({"--dtype", "int32"}), "no kernel moves");
}

}  // namespace
}  // namespace moeperm::cli_test
