// SPDX-License-Identifier: Apache-2.0
// Help, bad arguments, and what all commands share.
#include <array>

#include "support.hpp"

namespace moeperm::cli_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::array kCommands = {"make-case", "permute", "grad",  "unpermute", "unpermute-grad",
                                  "check",     "routes",  "bench", "info"};

class Arguments : public CliTest {};

TEST_F(Arguments, HelpTellsTheWholeWay) {
  const Outcome help = Run({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_EQ(help.err, "");
  for (const char* const command : kCommands) EXPECT_THAT(help.out, HasSubstr(command));
}

// What the help promises works as it stands there.
TEST_F(Arguments, ExamplesOfTheHelpRun) {
  std::string help = Run({"--help"}).out;
  int examples = 0;
  while (true) {
    const std::size_t at = help.find("\n  moeperm ");
    if (at == std::string::npos) break;
    help.erase(0, at + 11);
    std::vector<std::string> words;
    std::string word;
    for (const char c : help.substr(0, help.find('\n')) + " ") {
      if (c != ' ') {
        word += c;
      } else if (!word.empty()) {
        words.push_back(std::exchange(word, ""));
      }
    }
    RunOk(words);
    ++examples;
  }
  EXPECT_EQ(examples, 4);
  EXPECT_THAT(FilesInDirectory(),
              testing::ElementsAre("case.safetensors", "grads.safetensors", "permuted.safetensors",
                                   "tokens.safetensors"));
}

TEST_F(Arguments, EveryCommandHasHelp) {
  for (const char* const command : kCommands) {
    const Outcome help = Run({command, "--help"});
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_THAT(help.out, HasSubstr("--json")) << command;
  }
}

TEST_F(Arguments, AMisspeltCommandIsNamed) {
  const Outcome outcome = Run({"permut", "a", "b"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, StartsWith("moeperm: error: there is no command 'permut'"));
  EXPECT_THAT(outcome.err, HasSubstr("permute"));
  EXPECT_THAT(Run({"permute", "a"}).err, StartsWith("moeperm: error: OUT is required"));
}

TEST_F(Arguments, HelpThatCannotBeWrittenFails) {
  for (const char* const request : {"--help", "--version", "info"}) {
    const Outcome outcome = Run({request}, "exec > /dev/full;");
    EXPECT_EQ(outcome.status, 2) << request;
    EXPECT_THAT(outcome.err, StartsWith("moeperm: error: ")) << request;
  }
}

TEST_F(Arguments, BadArgumentsEndWithTwo) {
  const std::vector<std::vector<std::string>> bad = {
      {},
      {"nonsense"},
      {"permute"},
      {"permute", "a", "b", "c"},
      {"make-case", "x", "--tokens", "many"},
      {"make-case", "x", "--tokens", "-1"},
      {"make-case", "x", "--tokens", "2147483648"},
      {"make-case", "x", "--tokens", "99999999999999999999"},
      {"make-case", "x", "--experts", "0"},
      {"make-case", "x", "--experts", "4", "--top-k", "5"},
      {"make-case", "x", "--dtype", "float64"},
      {"make-case", "x", "--skew", "nan"},
      {"make-case", "x", "--seed", "-1"},
      {"make-case", "x", "--drop-and-pad"},
      {"make-case", "x", "--capacity", "4"},
      {"make-case", "x", "--tokens", "4", "--drop-and-pad", "--capacity", "5"},
      {"grad", "a", "b", "c", "--only", "both"},
      {"bench", "--op", "nothing"},
      {"bench", "--filter", "no such shape", "--quick"},
      {"info", "--threads", "0"},
      {"info", "--isa", "ABACUS"},
  };
  for (const auto& arguments : bad) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, 2) << testing::PrintToString(arguments);
    if (arguments.size() < 3 || arguments[0] != "info") {
      EXPECT_NE(outcome.err, "") << testing::PrintToString(arguments);
    }
  }
  EXPECT_THAT(FilesInDirectory(), testing::IsEmpty());
}

TEST_F(Arguments, UnknownIsaIsNamed) {
  RunOk({"make-case", "c", "--tokens", "4", "--hidden", "4"});
  const Outcome outcome = Run({"permute", "c", "p", "--isa", "ABACUS"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, StartsWith("moeperm: error: "));
  EXPECT_THAT(outcome.err, HasSubstr("ABACUS"));
}

TEST_F(Arguments, InfoNamesWhatItFinds) {
  const Json info = RunJson({"info", "--threads", "1"});
  EXPECT_EQ(info["threads"], 1);
  EXPECT_EQ(info["isa"], info["isa_available"][0]);
  EXPECT_EQ(Run({"--version"}).out, info["version"].get<std::string>() + "\n");
  const Outcome wrong = Run({"info"}, "MOEPERM_ISA=ABACUS");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.out, HasSubstr("ABACUS"));
}

TEST_F(Arguments, GlobalOptionsStandBeforeAndBehindTheCommand) {
  EXPECT_EQ(Run({"--json", "info"}).out, Run({"info", "--json"}).out);
}

TEST_F(Arguments, FullStdoutIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  const Outcome outcome = Run({"info"}, "exec > /dev/full;");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("stdout"));
}

}  // namespace
}  // namespace moeperm::cli_test
