// SPDX-License-Identifier: Apache-2.0
// replay: end-to-end cases of the operators' test kit, through the library, against the plain
// reference.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.hpp"
#include "cli/compare.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/replay_cases.hpp"
#include "cli/replay_inputs.hpp"
#include "cli/tensors.hpp"
#include "io/error.hpp"
#include "reference/reference.hpp"

namespace moeperm::cli {
namespace {

namespace ref = moeperm_reference;

struct Options {
  std::string path;
  std::string filter;
  std::uint64_t seed = 0;
  bool ragged = false;
};

ConstTensorView ViewOf(const ref::Matrix& matrix, DType dtype) {
  return {matrix.bytes.data(), dtype, std::array{matrix.rows, matrix.cols}};
}
ConstTensorView VectorOf(const ref::Matrix& matrix, DType dtype) {
  return {matrix.bytes.data(), dtype, std::array{matrix.rows}};
}

// One case through the library and the reference.
class Replay {
 public:
  Replay(const CaseProblem& problem, CaseData data, const Context& context)
      : problem_(problem), data_(std::move(data)), context_(context) {}

  // {"outputs": comparisons, "seconds"}; throws io::Error where the library refuses.
  Json Run() {
    if (problem_.op == CaseOperator::kPermute) {
      Permute();
    } else {
      PermuteGrad();
    }
    return {{"outputs", std::move(comparisons_)}, {"seconds", seconds_}};
  }

 private:
  [[nodiscard]] ConstTensorView MapView() const {
    return {data_.map.bytes.data(), problem_.map_dtype,
            std::array{problem_.tokens, problem_.experts}};
  }
  OwnedTensor& Output(const char* name, const TensorSpec& spec) {
    outputs_.push_back(std::make_unique<OwnedTensor>(name, spec));
    return *outputs_.back();
  }
  template <class Call>
  void Time(const Call& call) {
    const auto start = std::chrono::steady_clock::now();
    ThrowUnlessOk(call());
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  void Permute() {
    PermuteWithRoutingMapArgs args;
    args.tokens = ViewOf(data_.tokens, problem_.dtype);
    args.routing_map = MapView();
    if (data_.probs) args.probs = ViewOf(*data_.probs, *problem_.probs_dtype);
    args.num_out_tokens = problem_.rows;
    args.top_k = problem_.top_k;
    args.drop_and_pad = problem_.padded;
    PermuteWithRoutingMapSpecs specs;
    ThrowUnlessOk(InferPermuteWithRoutingMap(args, &specs));
    const OwnedTensor& tokens = Output("permuted_tokens", specs.permuted_tokens);
    const OwnedTensor& indices = Output("sorted_indices", specs.sorted_indices);
    args.permuted_tokens = tokens.view();
    args.sorted_indices = indices.view();
    const OwnedTensor* probs = nullptr;
    if (specs.permuted_probs) {
      probs = &Output("permuted_probs", *specs.permuted_probs);
      args.permuted_probs = probs->view();
    }
    Time([&] { return PermuteWithRoutingMap(args, context_); });
    const ref::Permuted expected =
        ref::Permute(data_.tokens, data_.map, data_.probs ? &*data_.probs : nullptr, problem_.rows,
                     problem_.top_k, problem_.padded);
    Add(Compare(tokens.name(), tokens.view(), expected.tokens, Equality::kBits,
                {problem_.rows, problem_.hidden}));
    if (probs != nullptr) {
      Add(Compare(probs->name(), probs->view(), expected.probs, Equality::kBits, {problem_.rows}));
    }
    Add(Compare(indices.name(), indices.view(), expected.sorted_indices));
  }

  void PermuteGrad() {
    PermuteWithRoutingMapGradArgs args;
    args.permuted_tokens_grad = ViewOf(data_.tokens, problem_.dtype);
    args.sorted_indices = ConstTensorView(data_.sorted_indices.data(),
                                          {static_cast<std::int64_t>(data_.sorted_indices.size())});
    args.num_tokens = problem_.tokens;
    args.num_experts = problem_.experts;
    args.drop_and_pad = problem_.padded;
    if (data_.probs) {
      args.permuted_probs_grad = VectorOf(*data_.probs, *problem_.probs_dtype);
      args.routing_map = MapView();
    }
    PermuteWithRoutingMapGradSpecs specs;
    ThrowUnlessOk(InferPermuteWithRoutingMapGrad(args, &specs));
    const OwnedTensor& tokens = Output("tokens_grad", specs.tokens_grad.value());
    args.tokens_grad = tokens.view();
    const OwnedTensor* probs = nullptr;
    if (specs.probs_grad) {
      probs = &Output("probs_grad", *specs.probs_grad);
      args.probs_grad = probs->view();
    }
    Time([&] { return PermuteWithRoutingMapGrad(args, context_); });
    const std::vector<std::int64_t> indices(data_.sorted_indices.begin(),
                                            data_.sorted_indices.end());
    Add(Compare(tokens.name(), tokens.view(),
                ref::TokensGrad(data_.tokens, indices, problem_.tokens, problem_.padded),
                Equality::kSums, {problem_.tokens, problem_.hidden}));
    if (probs != nullptr) {
      const ref::Matrix expected =
          problem_.padded
              ? ref::ProbsGradByIndex(*data_.probs, indices, problem_.tokens, problem_.experts)
              : ref::ProbsGradByMap(*data_.probs, data_.map);
      Add(Compare(probs->name(), probs->view(), expected, Equality::kBits,
                  {problem_.tokens, problem_.experts}));
    }
  }

  void Add(Json comparison) { comparisons_.push_back(std::move(comparison)); }

  const CaseProblem& problem_;
  CaseData data_;
  const Context& context_;
  std::vector<std::unique_ptr<OwnedTensor>> outputs_;
  Json comparisons_ = Json::array();
  double seconds_ = 0;
};

Json Outcome(const char* status, const std::string& why) {
  return {{"status", status}, {"reason", why}};
}

// The shapes and dtypes of a case as they stand in the file. Nothing looks at the data.
std::optional<ConstTensorView> RawView(const CaseInput& input) {
  static constexpr std::int64_t kAnything = 0;
  if (!input.tensor) return std::nullopt;
  return ConstTensorView(&kAnything, input.tensor->dtype, input.tensor->shape);
}

Status Infer(const Case& from) {
  const std::vector<CaseInput>& inputs = from.inputs;
  if (from.op == CaseOperator::kPermute) {
    PermuteWithRoutingMapArgs args;
    args.tokens = *RawView(inputs[0]);
    args.routing_map = *RawView(inputs[1]);
    args.probs = RawView(inputs[2]);
    args.num_out_tokens = inputs[3].attr;
    args.drop_and_pad = inputs[4].attr != 0;
    const std::int64_t tokens = args.tokens.rank() > 0 ? args.tokens.shape(0) : 0;
    args.top_k = args.drop_and_pad || tokens == 0 ? 0 : args.num_out_tokens / tokens;
    PermuteWithRoutingMapSpecs specs;
    return InferPermuteWithRoutingMap(args, &specs);
  }
  PermuteWithRoutingMapGradArgs args;
  args.permuted_tokens_grad = RawView(inputs[0]);
  args.permuted_probs_grad = RawView(inputs[1]);
  args.sorted_indices = *RawView(inputs[2]);
  args.routing_map = RawView(inputs[3]);
  args.num_experts = inputs[4].attr;
  args.num_tokens = inputs[5].attr;
  args.drop_and_pad = inputs[6].attr != 0;
  PermuteWithRoutingMapGradSpecs specs;
  return InferPermuteWithRoutingMapGrad(args, &specs);
}

// A case that must be refused. Where it is not its shapes that are wrong, the file does not say
// enough to try it.
Json RunRefused(const Case& from) {
  if (const Status status = Infer(from); !status.ok()) {
    return Outcome("passed", fmt::format("refused: {}", status.message()));
  }
  return Outcome("skipped", fmt::format("an error is expected ({}), but not one of the shapes",
                                        io::Quote(*from.expected_error)));
}

Json RunCase(const Case& from, const CaseProblem* problem, const Options& options,
             const Context& context) {
  if (from.op == CaseOperator::kOther) {
    return Outcome("skipped", fmt::format("{} is no operator of this tool", io::Quote(from.api)));
  }
  if (problem == nullptr) return RunRefused(from);
  const std::uint64_t bytes = CaseBytes(*problem);
  const std::uint64_t available = AvailableMemory();
  if (bytes > available / 10 * 9) {
    return Outcome("skipped", fmt::format("needs {} of memory, {} are free", FormatBytes(bytes),
                                          FormatBytes(available)));
  }
  try {
    Json result =
        Replay(*problem, MakeCaseData(*problem, options.seed, from.id, options.ragged), context)
            .Run();
    const bool equal = std::ranges::all_of(result["outputs"], AllEqual);
    result["status"] = equal ? "passed" : "failed";
    if (!equal) result["reason"] = "differs from the plain reference";
    return result;
  } catch (const std::bad_alloc&) {
    return Outcome("skipped", fmt::format("needs {} of memory", FormatBytes(bytes)));
  } catch (const io::Error& error) {
    return Outcome("failed", fmt::format("refused: {}", error.what()));
  } catch (const std::invalid_argument& error) {
    return Outcome("failed", fmt::format("the plain reference refuses it: {}", error.what()));
  }
}

bool Selected(const Case& from, const std::string& filter) {
  return filter.empty() || fmt::format("{}", from.id) == filter ||
         from.name.find(filter) != std::string::npos;
}

Json Describe(const Case& from, const CaseProblem* problem) {
  Json result = {{"id", from.id}, {"name", from.name}, {"operator", from.api}};
  if (problem == nullptr) return result;
  result["dtype"] = Name(problem->dtype);
  result["probs_dtype"] = problem->probs_dtype ? Json(Name(*problem->probs_dtype)) : Json(nullptr);
  result["drop_and_pad"] = problem->padded;
  result["tokens"] = problem->tokens;
  result["hidden"] = problem->hidden;
  result["experts"] = problem->experts;
  result["rows"] = problem->rows;
  return result;
}

std::string Text(const Json& cases, const Json& summary) {
  TextTable table({">id", "name", "tokens, rows, hidden, experts", "dtypes", "mode", "result"});
  std::string details;
  for (const Json& one : cases) {
    const std::string id = fmt::format("{}", one["id"].get<std::int64_t>());
    std::string sizes = "-";
    std::string dtypes = "-";
    std::string mode = "-";
    if (one.contains("dtype")) {
      sizes = fmt::format("{}, {}, {}, {}", one["tokens"].get<std::int64_t>(),
                          one["rows"].get<std::int64_t>(), one["hidden"].get<std::int64_t>(),
                          one["experts"].get<std::int64_t>());
      dtypes = one["dtype"].get<std::string>();
      dtypes += one["probs_dtype"].is_null() ? "" : " " + one["probs_dtype"].get<std::string>();
      mode = one["drop_and_pad"].get<bool>() ? "padded" : "not padded";
    }
    const std::string status = one["status"];
    std::string result = status == "failed" ? "FAILED" : status;
    if (one.contains("reason")) result += ": " + one["reason"].get<std::string>();
    const std::string name = io::Quote(one["name"].get<std::string>());
    table.AddRow({id, name.substr(1, name.size() - 2), sizes, dtypes, mode, result});
    if (status != "failed" || !one.contains("outputs")) continue;
    details += fmt::format("\ncase {}:\n", id);
    for (const Json& comparison : one["outputs"]) details += ComparisonText(comparison);
  }
  return fmt::format("{}{}\n{} cases: {} passed, {} failed, {} skipped\n", table.Text(), details,
                     summary["cases"].get<std::size_t>(), summary["passed"].get<std::size_t>(),
                     summary["failed"].get<std::size_t>(), summary["skipped"].get<std::size_t>());
}

int Run(const Options& options, const Globals& globals) {
  const Context context = MakeContext(globals);
  std::vector<Case> cases = ReadCases(options.path);
  const std::size_t in_file = cases.size();
  std::erase_if(cases, [&](const Case& one) { return !Selected(one, options.filter); });
  if (cases.empty() && in_file > 0) {
    io::Fail("{}: none of the {} cases has the id, or the name, {}", options.path, in_file,
             io::Quote(options.filter));
  }
  // Bad input shows before anything has run.
  std::vector<std::optional<CaseProblem>> problems;
  for (const Case& one : cases) {
    const bool runs = one.op != CaseOperator::kOther && !one.expected_error;
    try {
      problems.push_back(runs ? std::optional(ResolveCase(one)) : std::nullopt);
    } catch (const io::Error& error) {
      io::Fail("{}: {}", options.path, error.what());
    }
  }

  Json results = Json::array();
  {
    Progress progress("replaying", cases.size());
    for (std::size_t i = 0; i < cases.size(); ++i) {
      progress.SetLabel(fmt::format("case {}", cases[i].id));
      progress.Set(i);
      const CaseProblem* const problem = problems[i] ? &*problems[i] : nullptr;
      Json result = Describe(cases[i], problem);
      result.update(RunCase(cases[i], problem, options, context));
      results.push_back(std::move(result));
    }
  }
  const auto count = [&](const char* status) {
    return static_cast<std::size_t>(
        std::ranges::count_if(results, [&](const Json& one) { return one["status"] == status; }));
  };
  Json summary = {{"command", "replay"},        {"file", options.path},
                  {"seed", options.seed},       {"cases", results.size()},
                  {"passed", count("passed")},  {"failed", count("failed")},
                  {"skipped", count("skipped")}};
  if (globals.json) {
    summary["results"] = results;
    PrintJson(summary);
  } else {
    PrintText(Text(results, summary));
  }
  return count("failed") == 0 ? kSuccess : kCheckFailed;
}

}  // namespace

Command AddReplay(CLI::App& root, Globals& globals) {
  CLI::App* const app =
      AddSubcommand(root, globals, "replay",
                    "Run end-to-end cases of the operators' test kit and check the results");
  const auto options = std::make_shared<Options>();
  app->add_option("FILE", options->path, "A JSON list of cases")->required();
  app->add_option("--filter", options->filter, "Only the case with this id, or with it in its name")
      ->type_name("ID|NAME");
  app->add_option("--seed", options->seed, "Of the routing and the values, with each case's id [0]")
      ->check(Range(0, std::numeric_limits<std::int64_t>::max() - 1))
      ->type_name("N");
  app->add_flag("--ragged", options->ragged,
                "One to top-k routes a token instead of top-k, where not padded");
  return {app, [options, &globals] { return Run(*options, globals); }};
}

}  // namespace moeperm::cli
