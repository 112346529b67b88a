// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/signals.hpp"

namespace moeperm::cli {
namespace {

constexpr const char* kDescription =
    "Moves Mixture-of-Experts tokens to their experts and back, exactly and fast.\n"
    "\n"
    "A router sends each token to some experts. `permute` lays the tokens out expert by\n"
    "expert, so that each expert finds its tokens in one piece; `unpermute` brings the\n"
    "experts' rows back, weighted. `grad` and `unpermute-grad` are their gradients. Files\n"
    "are .safetensors; tensors in them have the names of the C++ arguments, and attributes\n"
    "(top_k, num_out_tokens, first_row, drop_and_pad) are metadata.\n";

constexpr const char* kFooter =
    "From nothing to a gradient, and back:\n"
    "  moeperm make-case case.safetensors --tokens 4096 --experts 64 --top-k 4 --hidden 1024\n"
    "  moeperm permute case.safetensors permuted.safetensors\n"
    "  moeperm grad case.safetensors permuted.safetensors grads.safetensors\n"
    "  moeperm unpermute permuted.safetensors tokens.safetensors --probs-from case.safetensors\n"
    "\n"
    "Is it right?          moeperm check case.safetensors\n"
    "Is it fast?           moeperm bench case.safetensors\n"
    "Where do tokens go?   moeperm routes case.safetensors --svg load.svg\n"
    "A fixed capacity:     moeperm make-case case.safetensors --drop-and-pad --capacity 64\n"
    "A table of experts:   moeperm make-case case.safetensors --index --drop-rate 0.1\n"
    "Some of the rows:     moeperm permute case.safetensors part.safetensors --rows 0:4096\n"
    "Results elsewhere:    moeperm check case.safetensors --against other.safetensors\n"
#ifdef MOEPERM_HAVE_CANN
    "Cut for a chip:       moeperm tiling permute_with_routing_map_grad --svg tiling.svg\n"
    "aclnn operators:      moeperm ops\n"
#endif
    "\n"
    "`moeperm COMMAND --help` has the options of a command.\n"
    "Exit status: 0 fine, 1 a check failed, 2 bad input or bad arguments.";

// What went wrong, in the tool's only voice for it.
int Complain(const char* message) {
  std::fprintf(stderr, "moeperm: error: %s\n", message);
  return kBadInput;
}

// CLI11's words, and better ones for a misspelt command.
std::string WhatIsWrong(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining();
  if (app.get_subcommands().empty() && !unknown.empty() && unknown.front().front() != '-') {
    std::string text = "there is no command '" + unknown.front() + "'; the commands are";
    const char* separator = " ";
    for (const CLI::App* const command : app.get_subcommands({})) {
      text += separator + command->get_name();
      separator = ", ";
    }
    return text;
  }
  return std::string(error.what()) + " (--help lists the options)";
}

int Main(int argc, char** argv) {
  InstallSignalHandlers();
  Globals globals;
  CLI::App app(kDescription, "moeperm");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(Version()));
  AddGlobalOptions(app, globals);
  std::vector<Command> commands = {AddMakeCase(app, globals),      AddPermute(app, globals),
                                   AddGrad(app, globals),          AddUnpermute(app, globals),
                                   AddUnpermuteGrad(app, globals), AddCheck(app, globals),
                                   AddRoutes(app, globals),        AddBench(app, globals),
                                   AddReplay(app, globals),        AddInfo(app, globals)};
#ifdef MOEPERM_HAVE_CANN
  commands.push_back(AddTiling(app, globals));
  commands.push_back(AddOps(app, globals));
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // for help or the version
    app.exit(request);
    if (std::cout.flush()) return kSuccess;
    return Complain("writing to standard output failed");
  } catch (const CLI::ParseError& error) {
    return Complain(WhatIsWrong(app, error).c_str());
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return kBadInput;
}

}  // namespace
}  // namespace moeperm::cli

int main(int argc, char** argv) {
  using moeperm::cli::Complain;
  try {
    return moeperm::cli::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    return Complain("out of memory");
  } catch (const std::exception& error) {
    return Complain(error.what());
  } catch (...) {
    return Complain("of an unknown kind");
  }
}
