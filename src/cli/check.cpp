// SPDX-License-Identifier: Apache-2.0
// check: the operators, or another implementation's results, against the plain reference. Each
// operator gets what the reference made before, so that a wrong one does not make the next wrong.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cli/attributes.hpp"
#include "cli/calls.hpp"
#include "cli/command.hpp"
#include "cli/judge.hpp"
#include "cli/operators.hpp"
#include "cli/output.hpp"
#include "io/error.hpp"
#include "reference/family.hpp"
#include "reference/reference.hpp"

namespace moeperm::cli {
namespace {

namespace ref = moeperm_reference;

struct Options {
  std::string input;
  std::string against;
  std::vector<std::string> of = {"permute", "grad"};
  AttributeOptions attributes;
};

template <class T>
const T* PointerTo(const std::optional<T>& value) {
  return value ? &*value : nullptr;
}

// A gradient of copies keeps every bit; products and sums may turn one NaN into another.
Equality OfProducts(const std::optional<ref::Matrix>& weights) {
  return weights ? Equality::kSums : Equality::kBits;
}

// What the ways back of both forms have in common.
struct WayBack {
  const std::string& path;  // of the case
  const ref::Matrix& rows;
  const std::vector<ref::Slot>& slots;
  const std::optional<ref::Matrix>& probs;
  std::int64_t tokens;
  bool skip_zero_weights;
};

// `args` without tensors: both operators' with the index, the weights and the mode.
template <class Args, class GradArgs>
void CheckWayBack(const WayBack& way, Args args, GradArgs grad_args,
                  const std::optional<ref::Matrix>& tokens_grad, const Context& context,
                  Judge& judge) {
  if (judge.Begin("unpermute")) {
    args.permuted_tokens = ViewOf(way.rows);
    Called called = Call(args, way.tokens, context, way.path);  // also for its words for bad input
    if (!judge.from_file()) judge.Take(std::move(called.tensors));
    const Progress progress("the reference brings rows back");
    judge.Matrix("tokens",
                 ref::SumSlots(way.rows, way.slots, way.tokens, PointerTo(way.probs),
                               {.skip_zero_weights = way.skip_zero_weights}),
                 Equality::kSums, 2);
    if (way.probs) {
      judge.Matrix("gathered_probs", ref::WeightsOfSlots(*way.probs, way.slots), Equality::kBits,
                   1);
    }
  }
  if (tokens_grad && judge.Begin("unpermute-grad")) {
    grad_args.tokens_grad = ViewOf(*tokens_grad);
    grad_args.permuted_tokens = ViewOf(way.rows);
    Called called = Call(grad_args, way.rows.rows, Only::kBoth, context, way.path);
    if (!judge.from_file()) judge.Take(std::move(called.tensors));
    const Progress progress("the reference brings gradients to the experts");
    judge.Matrix("permuted_tokens_grad",
                 ref::SpreadSlots(*tokens_grad, way.slots, way.rows.rows, PointerTo(way.probs)),
                 OfProducts(way.probs), 2);
    if (way.probs) {
      judge.Matrix(
          "probs_grad",
          ref::DotSlots(way.rows, *tokens_grad, way.slots, way.probs->type, way.probs->cols),
          Equality::kSums, 2);
    }
  }
}

// What the file has to be brought back and forth: a gradient each way. tokens_grad is what `grad`
// gives where the file has none.
struct Gradients {
  explicit Gradients(const io::SafetensorsFile& file)
      : permuted_tokens(LoadTensorIfThere(file, "permuted_tokens_grad")),
        permuted_probs(LoadTensorIfThere(file, "permuted_probs_grad")),
        tokens(MatrixOf(file.path(), "tokens_grad", LoadTensorIfThere(file, "tokens_grad"))) {}

  std::optional<InputTensor> permuted_tokens;
  std::optional<InputTensor> permuted_probs;
  std::optional<ref::Matrix> tokens;
};

void CheckMapForm(const io::SafetensorsFile& file, const Options& options, const Context& context,
                  Judge& judge) {
  const ForwardInputs inputs(file, options.attributes);
  const Attributes& attributes = inputs.attributes;
  const ref::RoutingMap map{inputs.routing_map.view().shape(0), inputs.routing_map.view().shape(1),
                            BytesOf(inputs.routing_map)};
  // The operator's words for bad input are better than the reference's.
  PermuteWithRoutingMapSpecs specs;
  ThrowUnlessOk(InferPermuteWithRoutingMap(ForwardArgs(inputs), &specs), file.path());
  const bool forward = judge.Begin("permute");
  if (!judge.from_file()) {
    ForwardOutputs outputs(inputs, DType::kInt32);
    outputs.Run(context);
    judge.Take(std::move(outputs.tensors()));
  }
  const auto probs = MatrixOf(file.path(), "probs", inputs.probs);
  const ref::Permuted expected = [&] {
    const Progress progress("the reference permutes");
    return ref::Permute(MatrixOf(file.path(), "tokens", inputs.tokens), map, PointerTo(probs),
                        attributes.num_out_tokens, attributes.top_k, attributes.drop_and_pad);
  }();
  if (forward) {
    judge.Matrix("permuted_tokens", expected.tokens, Equality::kBits, 2);
    if (probs) judge.Matrix("permuted_probs", expected.probs, Equality::kBits, 1);
    judge.Integers("sorted_indices", expected.sorted_indices);
    judge.Integers("tokens_per_expert", expected.tokens_per_expert);
    judge.Integers("expert_offsets", expected.expert_offsets);
  }

  Gradients gradients(file);
  if (gradients.permuted_tokens || gradients.permuted_probs) {
    PermuteWithRoutingMapGradArgs args;
    args.permuted_tokens_grad = ViewOf(gradients.permuted_tokens);
    args.permuted_probs_grad = ViewOf(gradients.permuted_probs);
    args.routing_map = inputs.routing_map.view();
    args.sorted_indices = ViewOf(expected.sorted_indices);
    args.num_tokens = map.tokens;
    args.num_experts = map.experts;
    args.drop_and_pad = attributes.drop_and_pad;
    PermuteWithRoutingMapGradSpecs grad_specs;
    ThrowUnlessOk(InferPermuteWithRoutingMapGrad(args, &grad_specs), file.path());
    const bool backward = judge.Begin("grad");
    if (!judge.from_file()) {
      GradOutputs outputs(args);
      outputs.Run(context);
      judge.Take(std::move(outputs.tensors()));
    }
    const Progress progress("the reference brings gradients back");
    if (gradients.permuted_tokens) {
      const ref::Matrix tokens_grad =
          ref::TokensGrad(MatrixOf(file.path(), "permuted_tokens_grad", *gradients.permuted_tokens),
                          expected.sorted_indices, map.tokens, args.drop_and_pad);
      if (backward) judge.Matrix("tokens_grad", tokens_grad, Equality::kSums, 2);
      if (!gradients.tokens) gradients.tokens = tokens_grad;
    }
    if (gradients.permuted_probs && backward) {
      const ref::Matrix grads =
          MatrixOf(file.path(), "permuted_probs_grad", *gradients.permuted_probs);
      judge.Matrix("probs_grad",
                   args.drop_and_pad ? ref::ProbsGradByIndex(grads, expected.sorted_indices,
                                                             map.tokens, map.experts)
                                     : ref::ProbsGradByMap(grads, map),
                   Equality::kBits, 2);
    }
  }

  const std::vector<std::int64_t>& sorted_indices = expected.sorted_indices;
  const std::vector<ref::Slot> slots =
      attributes.drop_and_pad
          ? ref::SlotsOfRows(sorted_indices, map.tokens, probs ? map.experts : 0)
      : probs ? ref::SlotsOfMap(sorted_indices, map, expected.tokens.rows)
              : ref::SlotsOfTable(sorted_indices, map.tokens, expected.tokens.rows, 0);
  const auto fill = [&](auto args) {
    args.sorted_indices = ViewOf(sorted_indices);
    args.routing_map = inputs.routing_map.view();
    args.probs = ViewOf(inputs.probs);
    args.drop_and_pad = attributes.drop_and_pad;
    return args;
  };
  CheckWayBack({file.path(), expected.tokens, slots, probs, map.tokens, !attributes.drop_and_pad},
               fill(UnpermuteWithRoutingMapArgs()), fill(UnpermuteWithRoutingMapGradArgs()),
               gradients.tokens, context, judge);
}

void CheckIndexForm(const io::SafetensorsFile& file, const Options& options, const Context& context,
                    Judge& judge) {
  const IndexInputs inputs(file, options.attributes);
  const Attributes& attributes = inputs.attributes;
  const bool forward = judge.Begin("permute");
  Called permuted = Call(inputs, DType::kInt32, context);
  if (!judge.from_file()) judge.Take(std::move(permuted.tensors));
  const auto probs = MatrixOf(file.path(), "probs", inputs.probs);
  const std::int64_t tokens = inputs.tokens.view().shape(0);
  const ref::TablePermuted expected = [&] {
    const Progress progress("the reference permutes");
    return ref::PermuteByTable(MatrixOf(file.path(), "tokens", inputs.tokens),
                               IntegersOf(file.path(), "indices", inputs.indices),
                               attributes.num_experts, PointerTo(probs), attributes.num_out_tokens,
                               attributes.first_row);
  }();
  if (forward) {
    judge.Matrix("permuted_tokens", expected.tokens, Equality::kBits, 2);
    if (probs) judge.Matrix("permuted_probs", expected.probs, Equality::kBits, 1);
    judge.Integers("sorted_indices", expected.sorted_indices);
    judge.Integers("tokens_per_expert", expected.tokens_per_expert);
  }

  const std::vector<ref::Slot> slots = ref::SlotsOfTable(
      expected.sorted_indices, tokens, expected.tokens.rows, attributes.first_row);
  Gradients gradients(file);
  if (gradients.permuted_tokens || gradients.permuted_probs) {
    const auto check_rows = [&](const char* name, const std::optional<InputTensor>& tensor) {
      if (tensor && tensor->view().shape(0) != attributes.num_out_tokens) {
        io::Fail("{}: tensor '{}' has {} rows but the case makes {}", file.path(), name,
                 tensor->view().shape(0), attributes.num_out_tokens);
      }
    };
    check_rows("permuted_tokens_grad", gradients.permuted_tokens);
    check_rows("permuted_probs_grad", gradients.permuted_probs);
    PermuteGradArgs args;
    args.permuted_tokens_grad = ViewOf(gradients.permuted_tokens);
    args.permuted_probs_grad = ViewOf(gradients.permuted_probs);
    args.sorted_indices = ViewOf(expected.sorted_indices);
    args.num_tokens = tokens;
    args.first_row = attributes.first_row;
    const bool backward = judge.Begin("grad");
    Called called = Call(args, context, file.path());
    if (!judge.from_file()) judge.Take(std::move(called.tensors));
    const Progress progress("the reference brings gradients back");
    if (gradients.permuted_tokens) {
      const ref::Matrix tokens_grad =
          ref::SumSlots(MatrixOf(file.path(), "permuted_tokens_grad", *gradients.permuted_tokens),
                        slots, tokens, nullptr, {});
      if (backward) judge.Matrix("tokens_grad", tokens_grad, Equality::kSums, 2);
      if (!gradients.tokens) gradients.tokens = tokens_grad;
    }
    if (gradients.permuted_probs && backward) {
      judge.Matrix(
          "probs_grad",
          ref::GatherRows(MatrixOf(file.path(), "permuted_probs_grad", *gradients.permuted_probs),
                          slots, tokens, attributes.top_k),
          Equality::kBits, 2);
    }
  }

  const auto fill = [&](auto args) {
    args.sorted_indices = ViewOf(expected.sorted_indices);
    args.probs = ViewOf(inputs.probs);
    args.first_row = attributes.first_row;
    return args;
  };
  CheckWayBack({file.path(), expected.tokens, slots, probs, tokens, true}, fill(UnpermuteArgs()),
               fill(UnpermuteGradArgs()), gradients.tokens, context, judge);
}

// The first few, as they may be shown.
std::string ListOfNames(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : ", ") + io::Quote(names[i]);
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

int Run(const Options& options, const Globals& globals) {
  const Context context = MakeContext(globals);
  const io::SafetensorsFile file(options.input);
  Judge judge(options.against, options.of);
  try {
    (IsIndexForm(file) ? CheckIndexForm : CheckMapForm)(file, options, context, judge);
  } catch (const std::invalid_argument& error) {
    const std::string text =
        fmt::format("{}: the plain reference refuses this case: {}", options.input, error.what());
    if (!options.against.empty()) throw io::Error(text);
    PrintText(text + "\nbut moeperm does not\n");  // which is a defect
    return kCheckFailed;
  }
  const Json& comparisons = judge.comparisons();
  if (comparisons.empty()) {
    io::Fail("{}: there is no output to check, none of {}",
             options.against.empty() ? options.input : options.against,
             fmt::join(judge.Outputs(), ", "));
  }
  const std::vector<std::string> not_checked = judge.NotChecked();
  std::vector<std::string> wrong;
  for (const Json& comparison : comparisons) {
    if (!AllEqual(comparison)) wrong.push_back(comparison["tensor"]);
  }
  const std::string subject = options.against.empty() ? "moeperm" : options.against;
  if (globals.json) {
    PrintJson({{"command", "check"},
               {"file", options.input},
               {"checked", subject},
               {"equal", wrong.empty()},
               {"outputs", comparisons},
               {"not_checked", not_checked}});
  } else {
    std::string text =
        fmt::format("{} against the plain reference on {}, bit for bit:\n", subject, options.input);
    std::string operation;
    for (const Json& comparison : comparisons) {
      if (comparison["operator"] != operation) {
        operation = comparison["operator"];
        text += operation + '\n';
      }
      text += ComparisonText(comparison);
    }
    if (!not_checked.empty()) {
      text += fmt::format("not checked, for they are no outputs of this case: {}\n",
                          ListOfNames(not_checked));
    }
    if (!wrong.empty()) {
      text += fmt::format("{} is WRONG in {}\n", subject, fmt::join(wrong, ", "));
    }
    PrintText(text);
  }
  return wrong.empty() ? kSuccess : kCheckFailed;
}

}  // namespace

Command AddCheck(CLI::App& root, Globals& globals) {
  CLI::App* const app = AddSubcommand(
      root, globals, "check", "Compare all operators with a plain reference, element by element");
  const auto options = std::make_shared<Options>();
  const std::vector<std::string> operators = JudgedOperators();
  app->add_option("CASE", options->input, "File with the inputs")->required();
  CLI::Option* const against =
      app->add_option("--against", options->against,
                      "Judge the outputs in this file (of another implementation) instead")
          ->type_name("FILE");
  app->add_option("--of", options->of,
                  "The operation that made them [permute, grad]; may be given several times")
      ->check(OneOf(operators))
      ->type_name(fmt::format("{}", fmt::join(operators, "|")))
      ->expected(1)
      ->take_all()
      ->needs(against);
  options->attributes.AddTo(*app);
  return {app, [options, &globals] { return Run(*options, globals); }};
}

}  // namespace moeperm::cli
