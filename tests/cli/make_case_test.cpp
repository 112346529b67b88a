// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "support.hpp"

namespace moeperm::cli_test {
namespace {

class MakeCase : public CliTest {
 protected:
  // FNV-1a of the data, without the header.
  [[nodiscard]] std::uint64_t DataHash(const std::string& name) const {
    const std::string bytes = ReadBytes(name);
    std::uint64_t length = 0;
    std::copy_n(bytes.begin(), 8, reinterpret_cast<char*>(&length));
    std::uint64_t hash = 0xCBF29CE484222325;
    for (std::size_t i = 8 + length; i < bytes.size(); ++i) {
      hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 0x100000001B3;
    }
    return hash;
  }

  // Routes of each token.
  [[nodiscard]] std::vector<std::int64_t> RoutesPerToken(const std::string& name) const {
    const Json shape = ReadHeader(name)["routing_map"]["shape"];
    const std::string map = ReadTensor(name, "routing_map");
    std::vector<std::int64_t> routes;
    const auto experts = shape[1].get<std::ptrdiff_t>();
    for (auto row = map.begin(); row != map.end(); row += experts) {
      routes.push_back(std::accumulate(row, row + experts, std::int64_t{0}));
    }
    return routes;
  }
};

// The same seed gives the same bits on every machine, compiler and version: these are the bits.
TEST_F(MakeCase, BitsOfASeedNeverChange) {
  struct Pinned {
    std::vector<std::string> options;
    std::uint64_t hash;
  };
  const std::vector<Pinned> cases = {
      {{}, 0xB161A1CFF43349EE},
      {{"--seed", "7"}, 0xC403B353E638C3CA},
      {{"--dtype", "float16", "--probs-dtype", "bfloat16", "--map-dtype", "int8"},
       0x6AF0A69E63582002},
      {{"--routing", "zipf", "--skew", "1.3", "--dtype", "bfloat16"}, 0xF92ACBB145845559},
      {{"--routing", "hot", "--ragged"}, 0x3B053768EED12BC1},
      {{"--drop-and-pad", "--capacity", "9", "--routing", "zipf"}, 0xFEDDB6B9EE38800E},
  };
  for (const Pinned& pinned : cases) {
    std::vector<std::string> arguments = {"make-case", "c",  "--tokens",  "37",
                                          "--hidden",  "19", "--experts", "11"};
    arguments.insert(arguments.end(), pinned.options.begin(), pinned.options.end());
    RunOk(arguments);
    EXPECT_EQ(DataHash("c"), pinned.hash) << testing::PrintToString(pinned.options);
  }
}

TEST_F(MakeCase, EveryTokenHasTopKDistinctExperts) {
  for (const char* const routing : {"uniform", "zipf", "hot"}) {
    for (const char* const top_k : {"0", "1", "7", "16"}) {
      RunOk({"make-case", "c", "--tokens", "200", "--hidden", "1", "--experts", "16", "--top-k",
             top_k, "--routing", routing, "--skew", "5"});
      EXPECT_THAT(RoutesPerToken("c"), testing::Each(std::stoi(top_k))) << routing;
    }
  }
}

TEST_F(MakeCase, RaggedTokensHaveUpToTopK) {
  RunOk({"make-case", "c", "--tokens", "500", "--hidden", "1", "--top-k", "3", "--ragged"});
  const std::vector<std::int64_t> routes = RoutesPerToken("c");
  EXPECT_EQ(std::ranges::min(routes), 0);
  EXPECT_EQ(std::ranges::max(routes), 3);
  const std::int64_t all = std::accumulate(routes.begin(), routes.end(), std::int64_t{0});
  EXPECT_EQ(ReadHeader("c")["__metadata__"]["num_out_tokens"], std::to_string(all));
}

TEST_F(MakeCase, TensorsAreAsAsked) {
  RunOk({"make-case", "c", "--tokens", "6", "--hidden", "3", "--experts", "4", "--drop-and-pad",
         "--capacity", "2", "--dtype", "bfloat16", "--probs-dtype", "float32", "--map-dtype",
         "int8"});
  const Json header = ReadHeader("c");
  const auto expect = [&](const char* name, const char* dtype, const Json& shape) {
    EXPECT_EQ(header[name]["dtype"], dtype) << name;
    EXPECT_EQ(header[name]["shape"], shape) << name;
  };
  expect("tokens", "BF16", {6, 3});
  expect("permuted_tokens_grad", "BF16", {8, 3});
  expect("probs", "F32", {6, 4});
  expect("permuted_probs_grad", "F32", Json::array({8}));
  expect("routing_map", "I8", {6, 4});
  EXPECT_EQ(header["__metadata__"]["drop_and_pad"], "true");
  EXPECT_EQ(header["__metadata__"]["num_out_tokens"], "8");
  EXPECT_EQ(header["__metadata__"]["capacity"], "2");

  RunOk({"make-case", "n", "--tokens", "6", "--probs-dtype", "none"});
  EXPECT_FALSE(ReadHeader("n").contains("probs"));
  EXPECT_FALSE(ReadHeader("n").contains("permuted_probs_grad"));
}

// Every tensor starts at a multiple of its element size, and the data at one of 64.
TEST_F(MakeCase, TensorsAreAligned) {
  RunOk({"make-case", "c", "--tokens", "5", "--hidden", "3", "--experts", "7", "--top-k", "3",
         "--dtype", "float16", "--probs-dtype", "float32"});
  const std::string bytes = ReadBytes("c");
  EXPECT_EQ((8 + As<std::uint64_t>(bytes.substr(0, 8))[0]) % 64, 0U);
  const Json header = ReadHeader("c");
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const int size = tensor["dtype"] == "F32" ? 4 : tensor["dtype"] == "F16" ? 2 : 1;
    EXPECT_EQ(tensor["data_offsets"][0].get<int>() % size, 0) << name;
  }
}

TEST_F(MakeCase, EmptyCases) {
  for (const char* const option : {"--tokens", "--hidden", "--top-k"}) {
    RunOk({"make-case", "c", "--experts", "8", option, "0"});
    RunOk({"check", "c"});
  }
}

}  // namespace
}  // namespace moeperm::cli_test
