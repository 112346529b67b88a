// SPDX-License-Identifier: Apache-2.0
// check: the operators, or another implementation's results, against the plain reference.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/attributes.hpp"
#include "cli/command.hpp"
#include "cli/compare.hpp"
#include "cli/operators.hpp"
#include "cli/output.hpp"
#include "io/error.hpp"
#include "reference/reference.hpp"

namespace moeperm::cli {
namespace {

namespace ref = moeperm_reference;

struct Options {
  std::string input;
  std::string against;
  AttributeOptions attributes;
};

std::vector<std::uint8_t> BytesOf(const InputTensor& tensor) {
  const auto* const data = reinterpret_cast<const std::uint8_t*>(tensor.bytes().data());
  return {data, data + tensor.bytes().size()};
}

// The outputs of both operators, in the order they are shown.
constexpr std::array<const char*, 7> kOutputs = {
    "permuted_tokens", "permuted_probs", "sorted_indices", "tokens_per_expert",
    "expert_offsets",  "tokens_grad",    "probs_grad"};

// A vector is one column. `path`: the file it is from.
ref::Matrix MatrixOf(const std::string& path, const char* name, const InputTensor& tensor) {
  const ConstTensorView& view = tensor.view();
  ref::Matrix matrix;
  switch (view.dtype()) {
    case DType::kFloat32:
      matrix.type = ref::Type::kFloat32;
      break;
    case DType::kFloat16:
      matrix.type = ref::Type::kFloat16;
      break;
    case DType::kBFloat16:
      matrix.type = ref::Type::kBFloat16;
      break;
    default:
      io::Fail("{}: tensor '{}' is {}, not a floating-point type", path, name, Name(view.dtype()));
  }
  if (view.rank() != 1 && view.rank() != 2) {
    io::Fail("{}: tensor '{}' has {} dims but must have 1 or 2", path, name, view.rank());
  }
  matrix.rows = view.shape(0);
  matrix.cols = view.rank() == 2 ? view.shape(1) : 1;
  matrix.bytes = BytesOf(tensor);
  return matrix;
}

// Where the outputs to judge come from: the operators, or a file.
class Results {
 public:
  // Absent: this output is not to be judged.
  [[nodiscard]] std::optional<ConstTensorView> Find(std::string_view name) const {
    if (file_) {
      if (const io::TensorInfo* const info = file_->Find(name)) {
        loaded_.push_back(std::make_unique<InputTensor>(*file_, *info, info->type->dtype));
        return loaded_.back()->view();
      }
    }
    for (const OwnedTensor& tensor : tensors_) {
      if (tensor.name() == name) return tensor.view();
    }
    return std::nullopt;
  }

  void Open(const std::string& path) { file_.emplace(path); }
  void Take(std::vector<OwnedTensor> tensors) { tensors_ = std::move(tensors); }
  // Null where the operators made the outputs.
  [[nodiscard]] const io::SafetensorsFile* file() const { return file_ ? &*file_ : nullptr; }

 private:
  std::optional<io::SafetensorsFile> file_;
  std::vector<OwnedTensor> tensors_;
  mutable std::vector<std::unique_ptr<InputTensor>> loaded_;
};

class Check {
 public:
  Check(const Options& options, const Globals& globals)
      : context_(MakeContext(globals)),
        file_(options.input),
        inputs_(file_, options.attributes),
        map_{inputs_.routing_map.view().shape(0), inputs_.routing_map.view().shape(1),
             BytesOf(inputs_.routing_map)} {
    if (!options.against.empty()) results_.Open(options.against);
  }

  // Compares every output there is.
  void Run() {
    Forward();
    Gradient();
    if (comparisons_.empty()) {
      io::Fail("{}: there is no output to check, none of {}",
               results_.file() != nullptr ? results_.file()->path() : file_.path(),
               fmt::join(kOutputs, ", "));
    }
  }
  // One an output.
  [[nodiscard]] const Json& comparisons() const { return comparisons_; }
  // Tensors of the file with the results that no comparison was about.
  [[nodiscard]] std::vector<std::string> NotChecked() const {
    std::vector<std::string> names;
    if (results_.file() == nullptr) return names;
    for (const io::TensorInfo& tensor : results_.file()->tensors()) {
      const auto is_it = [&](const Json& comparison) {
        return comparison["tensor"] == tensor.name;
      };
      if (std::ranges::none_of(comparisons_, is_it)) names.push_back(tensor.name);
    }
    return names;
  }

 private:
  void Forward() {
    if (results_.file() != nullptr) {
      // The operator's words for bad input are better than the reference's.
      PermuteWithRoutingMapSpecs specs;
      ThrowUnlessOk(InferPermuteWithRoutingMap(ForwardArgs(inputs_), &specs), file_.path());
    } else {
      ForwardOutputs outputs(inputs_, DType::kInt32);
      outputs.Run(context_);
      results_.Take(std::move(outputs.tensors()));
    }

    const Progress progress("the reference permutes");
    const Attributes& attributes = inputs_.attributes;
    std::optional<ref::Matrix> probs;
    if (inputs_.probs) probs = MatrixOf(file_.path(), "probs", *inputs_.probs);
    const ref::Permuted expected = ref::Permute(
        MatrixOf(file_.path(), "tokens", inputs_.tokens), map_, probs ? &*probs : nullptr,
        attributes.num_out_tokens, attributes.top_k, attributes.drop_and_pad);
    CompareMatrix("permuted_tokens", expected.tokens, Equality::kBits, 2);
    if (probs) CompareMatrix("permuted_probs", expected.probs, Equality::kBits, 1);
    CompareIntegers("sorted_indices", expected.sorted_indices);
    CompareIntegers("tokens_per_expert", expected.tokens_per_expert);
    CompareIntegers("expert_offsets", expected.expert_offsets);
    sorted_indices_ = expected.sorted_indices;
  }

  // From the reference's indices, so that a wrong forward does not make the gradient wrong, too.
  void Gradient() {
    const auto tokens_grads = LoadTensorIfThere(file_, "permuted_tokens_grad");
    const auto probs_grads = LoadTensorIfThere(file_, "permuted_probs_grad");
    if (!tokens_grads && !probs_grads) return;
    PermuteWithRoutingMapGradArgs args;
    args.permuted_tokens_grad = ViewOf(tokens_grads);
    args.permuted_probs_grad = ViewOf(probs_grads);
    args.routing_map = inputs_.routing_map.view();
    args.sorted_indices = ConstTensorView(sorted_indices_.data(),
                                          {static_cast<std::int64_t>(sorted_indices_.size())});
    args.num_tokens = map_.tokens;
    args.num_experts = map_.experts;
    args.drop_and_pad = inputs_.attributes.drop_and_pad;
    if (results_.file() != nullptr) {
      PermuteWithRoutingMapGradSpecs specs;
      ThrowUnlessOk(InferPermuteWithRoutingMapGrad(args, &specs), file_.path());
    } else {
      GradOutputs outputs(args);
      outputs.Run(context_);
      results_.Take(std::move(outputs.tensors()));
    }

    const Progress progress("the reference brings gradients back");
    if (tokens_grads) {
      CompareMatrix("tokens_grad",
                    ref::TokensGrad(MatrixOf(file_.path(), "permuted_tokens_grad", *tokens_grads),
                                    sorted_indices_, map_.tokens, args.drop_and_pad),
                    Equality::kSums, 2);
    }
    if (probs_grads) {
      const ref::Matrix grads = MatrixOf(file_.path(), "permuted_probs_grad", *probs_grads);
      CompareMatrix("probs_grad",
                    args.drop_and_pad
                        ? ref::ProbsGradByIndex(grads, sorted_indices_, map_.tokens, map_.experts)
                        : ref::ProbsGradByMap(grads, map_),
                    Equality::kBits, 2);
    }
  }

  void CompareMatrix(const char* name, const ref::Matrix& expected, Equality equality, int rank) {
    if (const auto got = results_.Find(name)) {
      std::vector<std::int64_t> shape = {expected.rows};
      if (rank == 2) shape.push_back(expected.cols);
      comparisons_.push_back(Compare(name, *got, expected, equality, std::move(shape)));
    }
  }
  void CompareIntegers(const char* name, const std::vector<std::int64_t>& expected) {
    if (const auto got = results_.Find(name)) comparisons_.push_back(Compare(name, *got, expected));
  }

  Context context_;
  io::SafetensorsFile file_;
  ForwardInputs inputs_;
  ref::RoutingMap map_;
  Results results_;
  std::vector<std::int64_t> sorted_indices_;
  Json comparisons_ = Json::array();
};

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
  Check check(options, globals);
  try {
    check.Run();
  } catch (const std::invalid_argument& error) {
    const std::string text =
        fmt::format("{}: the plain reference refuses this case: {}", options.input, error.what());
    if (!options.against.empty()) throw io::Error(text);
    PrintText(text + "\nbut moeperm does not\n");  // which is a defect
    return kCheckFailed;
  }
  const Json& comparisons = check.comparisons();
  const std::vector<std::string> not_checked = check.NotChecked();
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
    for (const Json& comparison : comparisons) text += ComparisonText(comparison);
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
      root, globals, "check", "Compare both operators with a plain reference, element by element");
  const auto options = std::make_shared<Options>();
  app->add_option("CASE", options->input, "File with the inputs")->required();
  app->add_option("--against", options->against,
                  "Judge the outputs in this file (of another implementation) instead")
      ->type_name("FILE");
  options->attributes.AddTo(*app);
  return {app, [options, &globals] { return Run(*options, globals); }};
}

}  // namespace moeperm::cli
