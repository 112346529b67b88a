// SPDX-License-Identifier: Apache-2.0
// What every subcommand has: its options, a way to run, the options of all.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "moeperm/moeperm.hpp"

namespace moeperm::cli {

enum ExitCode : int { kSuccess = 0, kCheckFailed = 1, kBadInput = 2 };

struct Globals {
  bool json = false;
  int threads = 0;
  std::string isa;
};

struct Command {
  CLI::App* app;
  std::function<int()> run;  // called after parsing; returns an ExitCode, throws for kBadInput
};

// One in each file of the same name; the gradients of unpermute beside it.
Command AddMakeCase(CLI::App& root, Globals& globals);
Command AddPermute(CLI::App& root, Globals& globals);
Command AddGrad(CLI::App& root, Globals& globals);
Command AddUnpermute(CLI::App& root, Globals& globals);
Command AddUnpermuteGrad(CLI::App& root, Globals& globals);
Command AddCheck(CLI::App& root, Globals& globals);
Command AddRoutes(CLI::App& root, Globals& globals);
Command AddBench(CLI::App& root, Globals& globals);
Command AddReplay(CLI::App& root, Globals& globals);
Command AddInfo(CLI::App& root, Globals& globals);
// Of builds with the aclnn interface.
Command AddTiling(CLI::App& root, Globals& globals);
Command AddOps(CLI::App& root, Globals& globals);

// A subcommand with --json, --threads and --isa, so that they may stand behind its name.
CLI::App* AddSubcommand(CLI::App& root, Globals& globals, const std::string& name,
                        const std::string& description);
void AddGlobalOptions(CLI::App& app, Globals& globals);

// Checks of an option that help texts need not spell out once more.
CLI::Validator Range(std::int64_t least, std::int64_t most);
CLI::Validator OneOf(const std::vector<std::string>& choices);

// The context the options ask for; throws io::Error where they cannot be met.
Context MakeContext(const Globals& globals);

// Throws io::Error with the status' message unless it is ok. `path`: the file that brought the
// arguments, where all came from one; it is named before what is wrong with them.
void ThrowUnlessOk(const Status& status, std::string_view path = {});

// Counts the library takes (its limit is below 2^31).
inline constexpr std::int64_t kMaxCount = (std::int64_t{1} << 31) - 1;

}  // namespace moeperm::cli
