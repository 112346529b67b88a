// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include "io/error.hpp"

namespace moeperm::cli {

void AddGlobalOptions(CLI::App& app, Globals& globals) {
  app.add_flag("--json", globals.json, "Print the result as JSON");
  app.add_option("--threads", globals.threads,
                 "Threads of the operators (default: MOEPERM_NUM_THREADS, else all processors)")
      ->check(Range(1, 4096))
      ->type_name("N");
  app.add_option("--isa", globals.isa,
                 "Instruction set (default: MOEPERM_ISA, else the best; `moeperm info` lists them)")
      ->type_name("NAME");
}

CLI::App* AddSubcommand(CLI::App& root, Globals& globals, const std::string& name,
                        const std::string& description) {
  CLI::App* const app = root.add_subcommand(name, description);
  app->footer("");  // not the root's examples again
  AddGlobalOptions(*app, globals);
  return app;
}

CLI::Validator Range(std::int64_t least, std::int64_t most) {
  return CLI::Range(least, most).description("");
}

CLI::Validator OneOf(const std::vector<std::string>& choices) {
  return CLI::IsMember(choices).description("");
}

Context MakeContext(const Globals& globals) {
  ContextOptions options;
  options.num_threads = globals.threads;
  options.isa = globals.isa;
  Context context(options);
  ThrowUnlessOk(context.status());
  return context;
}

void ThrowUnlessOk(const Status& status, std::string_view path) {
  if (status.ok()) return;
  const bool arguments =
      status.code() == Code::kInvalidArgument || status.code() == Code::kIndexOutOfRange;
  if (path.empty() || !arguments) throw io::Error(status.message());
  io::Fail("{}: {}", path, status.message());
}

}  // namespace moeperm::cli
