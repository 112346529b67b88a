// SPDX-License-Identifier: Apache-2.0
#include "cli/replay_cases.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "io/error.hpp"

namespace moeperm::cli {
namespace {

enum class Kind { kTensor, kOptionalTensor, kInt, kBool };

struct Parameter {
  std::string_view name;
  Kind kind;
};

constexpr std::array kPermuteParameters = {
    Parameter{"tokens", Kind::kTensor}, Parameter{"routingMap", Kind::kTensor},
    Parameter{"probsOptional", Kind::kOptionalTensor}, Parameter{"numOutTokens", Kind::kInt},
    Parameter{"dropAndPad", Kind::kBool}};
constexpr std::array kGradParameters = {
    Parameter{"permutedTokenOutputGrad", Kind::kTensor},
    Parameter{"permutedProbsOutputGradOptional", Kind::kOptionalTensor},
    Parameter{"sortedIndices", Kind::kTensor},
    Parameter{"routingMapOptional", Kind::kOptionalTensor},
    Parameter{"numExperts", Kind::kInt},
    Parameter{"tokensNum", Kind::kInt},
    Parameter{"paddedMode", Kind::kBool}};

struct Api {
  std::string_view name;
  CaseOperator op;
  std::span<const Parameter> parameters;
};
constexpr Api kApis[] = {
    {"aclnnMoeTokenPermuteWithRoutingMap", CaseOperator::kPermute, kPermuteParameters},
    {"aclnnMoeTokenPermuteWithRoutingMapGrad", CaseOperator::kPermuteGrad, kGradParameters}};

constexpr std::pair<std::string_view, DType> kDTypes[] = {
    {"fp16", DType::kFloat16},      {"float16", DType::kFloat16}, {"bf16", DType::kBFloat16},
    {"bfloat16", DType::kBFloat16}, {"fp32", DType::kFloat32},    {"float32", DType::kFloat32},
    {"int32", DType::kInt32},       {"int8", DType::kInt8},       {"bool", DType::kBool}};

// A value of the file and the way to it, for messages.
class Node {
 public:
  Node(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  [[nodiscard]] const Json& json() const { return json_; }
  [[noreturn]] void Refuse(std::string_view must) const {
    io::Fail("{} = {} but must be {}", where_, Shown(), must);
  }

  [[nodiscard]] Node At(const char* key) const {
    if (!json_.is_object()) Refuse("an object");
    const auto found = json_.find(key);
    if (found == json_.end()) io::Fail("{}: there is no '{}'", where_, key);
    return {*found, fmt::format("{}: {}", where_, key)};
  }
  // Absent and null are the same.
  [[nodiscard]] std::optional<Node> Find(const char* key) const {
    if (!json_.is_object()) Refuse("an object");
    const auto found = json_.find(key);
    if (found == json_.end() || found->is_null()) return std::nullopt;
    return Node(*found, fmt::format("{}: {}", where_, key));
  }
  [[nodiscard]] Node At(std::size_t i) const {
    return {json_.at(i), fmt::format("{}[{}]", where_, i)};
  }
  [[nodiscard]] std::size_t Size() const {
    if (!json_.is_array()) Refuse("a list");
    return json_.size();
  }
  [[nodiscard]] std::string Text() const {
    if (!json_.is_string()) Refuse("a text");
    return json_.get<std::string>();
  }
  [[nodiscard]] std::int64_t Integer(std::int64_t least, std::int64_t most) const {
    const std::string must = fmt::format("an integer from {} to {}", least, most);
    if (!json_.is_number_integer()) Refuse(must);
    if (json_.is_number_unsigned() && json_.get<std::uint64_t>() > INT64_MAX) Refuse(must);
    const auto value = json_.get<std::int64_t>();
    if (value < least || value > most) Refuse(must);
    return value;
  }
  [[nodiscard]] double Number() const {
    if (!json_.is_number()) Refuse("a number");
    const auto value = json_.get<double>();
    if (!std::isfinite(value)) Refuse("a finite number");
    return value;
  }
  // One value may stand alone or as the only one of a list.
  [[nodiscard]] Node Single() const {
    if (!json_.is_array()) return *this;
    if (json_.size() != 1) Refuse("one value");
    return At(std::size_t{0});
  }
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  // Not what is nested: the file decides how deeply, and writing it out is recursive.
  [[nodiscard]] std::string Shown() const {
    if (json_.is_object()) return "an object";
    if (json_.is_array()) {
      for (const Json& element : json_) {
        if (element.is_structured()) return "a nested list";
      }
    }
    return io::Quote(json_.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  const Json& json_;
  std::string where_;
};

DType ReadDType(const Node& node) {
  const std::string text = node.Text();
  for (const auto& [name, dtype] : kDTypes) {
    if (name == text) return dtype;
  }
  node.Refuse("fp16, bf16, fp32, int32, int8 or bool");
}

ValueRange ReadRange(const Node& node) {
  if (node.Size() != 2) node.Refuse("two numbers");
  const ValueRange range = {node.At(std::size_t{0}).Number(), node.At(std::size_t{1}).Number()};
  if (range.low > range.high) node.Refuse("two numbers, the smaller one first");
  return range;
}

CaseTensor ReadTensor(const Node& node) {
  CaseTensor tensor;
  tensor.dtype = ReadDType(node.At("dtype"));
  const Node shape = node.At("shape");
  for (std::size_t i = 0; i < shape.Size(); ++i) {
    tensor.shape.push_back(shape.At(i).Integer(0, kMaxCount));
  }
  const bool is_float = tensor.dtype == DType::kFloat32 || tensor.dtype == DType::kFloat16 ||
                        tensor.dtype == DType::kBFloat16;
  if (is_float) {
    const auto range = node.Find("range_values");
    tensor.range = range ? ReadRange(*range) : ValueRange{-5, 5};
  }
  return tensor;
}

// An optional tensor that is not given is null, or has no shape.
bool IsAbsent(const Node& node) {
  if (node.json().is_null()) return true;
  const auto shape = node.Find("shape");
  return !shape || (shape->json().is_array() && shape->json().empty());
}

CaseInput ReadInput(const Node& node, const Parameter& parameter) {
  CaseInput input;
  input.name = parameter.name;
  if (parameter.kind == Kind::kOptionalTensor && IsAbsent(node)) return input;
  const bool is_tensor = parameter.kind == Kind::kTensor || parameter.kind == Kind::kOptionalTensor;
  const Node type = node.At("type");
  if (type.Text() != (is_tensor ? "tensor" : "attr")) {
    type.Refuse(is_tensor ? "\"tensor\"" : "\"attr\"");
  }
  if (is_tensor) {
    input.tensor = ReadTensor(node);
    return input;
  }
  const Node value = node.At("range_values").Single();
  if (parameter.kind == Kind::kInt) {
    input.attr = value.Integer(INT64_MIN, INT64_MAX);
  } else if (value.json().is_boolean()) {
    input.attr = value.json().get<bool>() ? 1 : 0;
  } else {
    value.Refuse("true or false");
  }
  return input;
}

Case ReadCase(const Node& node) {
  Case result;
  result.id = node.At("id").Integer(0, INT64_MAX);
  const Node named(node.json(), fmt::format("case {}", result.id));
  result.name = named.At("name").Text();
  result.api = named.At("aclnn_name").Text();
  if (const auto error = named.Find("expected_error_msg")) result.expected_error = error->Text();
  const Node inputs = named.At("inputs");
  const std::size_t count = inputs.Size();
  for (const Api& api : kApis) {
    if (api.name != result.api) continue;
    result.op = api.op;
    if (count != api.parameters.size()) {
      io::Fail("{} has {} elements but {} has {} inputs", inputs.where(), count, api.name,
               api.parameters.size());
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Parameter& parameter = api.parameters[i];
      const Node input(inputs.json().at(i),
                       fmt::format("{}[{}] ({})", inputs.where(), i, parameter.name));
      result.inputs.push_back(ReadInput(input, parameter));
    }
  }
  return result;
}

std::string ReadFile(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 28;
  std::ifstream file(path, std::ios::binary);
  if (!file) io::FailErrno(path, "opening", errno);
  std::string text;
  std::array<char, 65536> piece{};
  do {
    file.read(piece.data(), piece.size());
    text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMostBytes) io::Fail("{}: is larger than {} bytes", path, kMostBytes);
  } while (file);
  if (file.bad()) io::FailErrno(path, "reading", errno);
  return text;
}

}  // namespace

std::vector<Case> ReadCases(const std::string& path) {
  Json json;
  try {
    json = Json::parse(ReadFile(path));
  } catch (const Json::parse_error& error) {
    io::Fail("{}: is not JSON: {}", path, error.what());
  }
  if (!json.is_array()) io::Fail("{}: must be a list of cases", path);
  std::vector<Case> cases;
  cases.reserve(json.size());
  try {
    for (std::size_t i = 0; i < json.size(); ++i) {
      cases.push_back(ReadCase(Node(json[i], fmt::format("the case at [{}]", i))));
    }
  } catch (const io::Error& error) {
    throw io::Error(fmt::format("{}: {}", path, error.what()));
  }
  return cases;
}

}  // namespace moeperm::cli
