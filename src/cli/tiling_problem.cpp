// SPDX-License-Identifier: Apache-2.0
#include "cli/tiling_problem.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "io/error.hpp"

namespace moeperm::cli {
namespace {

namespace host = cann::host;
using host::DType;
using host::TensorDesc;

constexpr std::int64_t kDefaultTopK = 8;

DType DTypeOrThrow(std::string_view option, std::string_view name) {
  if (const auto dtype = host::DTypeFromName(name)) return *dtype;
  io::Fail("{}: there is no dtype {}", option, io::Quote(name));
}

std::int64_t Product(std::string_view what, std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) io::Fail("{} = {} * {} is too large", what, a, b);
  return product;
}

std::int64_t RowsOf(const TilingOptions& options) {
  if (options.capacity) {
    if (!options.drop_and_pad) io::Fail("--capacity is an attribute of drop-and-pad only");
    return Product("capacity * experts", *options.capacity, options.experts);
  }
  if (options.num_out_tokens) return *options.num_out_tokens;
  const std::int64_t slots =
      Product("tokens * top_k", options.tokens, options.top_k.value_or(kDefaultTopK));
  if (!options.drop_and_pad || options.experts == 0) return slots;
  return slots / options.experts * options.experts;
}

host::CallSizes SizesOf(const TilingOptions& options) {
  host::CallSizes sizes;
  sizes.tokens = options.tokens;
  sizes.hidden = options.hidden;
  sizes.experts = options.experts;
  sizes.top_k = options.top_k.value_or(kDefaultTopK);
  sizes.rows = RowsOf(options);
  // Not every operator has slots; of one that has, so many are refused by the tiling.
  if (__builtin_mul_overflow(sizes.tokens, sizes.top_k, &sizes.slots)) {
    sizes.slots = std::numeric_limits<std::int64_t>::max();
  }
  sizes.drop_and_pad = options.drop_and_pad;
  sizes.dtype = DTypeOrThrow("--dtype", options.dtype);
  if (options.probs_dtype.empty()) {
    sizes.probs = sizes.dtype;
  } else if (options.probs_dtype != "none") {
    sizes.probs = DTypeOrThrow("--probs-dtype", options.probs_dtype);
  }
  return sizes;
}

// "NAME=VALUE"
std::pair<std::string_view, std::string_view> Split(std::string_view option,
                                                    std::string_view text) {
  const std::size_t at = text.find('=');
  if (at == std::string_view::npos) {
    io::Fail("{} {}: it has to be NAME=VALUE", option, io::Quote(text));
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

std::int64_t Number(std::string_view option, std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range) {
    io::Fail("{}: {} does not fit 64 bits", option, io::Quote(text));
  }
  if (error != std::errc() || stop != end) {
    io::Fail("{}: {} is not a number", option, io::Quote(text));
  }
  return value;
}

// Numbers between separators; none in an empty text.
std::vector<std::int64_t> Numbers(std::string_view option, std::string_view text, char separator) {
  std::vector<std::int64_t> numbers;
  while (!text.empty()) {
    const std::size_t at = text.find(separator);
    numbers.push_back(Number(option, text.substr(0, at)));
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
    if (text.empty()) io::Fail("{}: a number is missing after the last '{}'", option, separator);
  }
  return numbers;
}

// The place of `name` among definitions.
template <class Def>
std::size_t IndexOf(const host::OpDef& op, std::string_view option, std::span<const Def> defs,
                    std::string_view name) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < defs.size(); ++i) {
    if (defs[i].name == name) return i;
    names.push_back(defs[i].name);
  }
  io::Fail("{} {}: {} has {}", option, io::Quote(name), op.name, fmt::join(names, ", "));
}

void SetTensors(const host::OpDef& op, std::string_view option,
                const std::vector<std::string>& texts, std::span<const host::TensorDef> defs,
                std::vector<std::optional<TensorDesc>>* tensors) {
  for (const std::string& text : texts) {
    const auto [name, value] = Split(option, text);
    const std::size_t i = IndexOf(op, option, defs, name);
    std::optional<TensorDesc>& tensor = (*tensors)[i];
    if (value == "none") {
      tensor.reset();
      continue;
    }
    const std::size_t colon = value.find(':');
    const DType otherwise = tensor ? tensor->dtype : defs[i].dtypes[0];
    const std::string where = fmt::format("{} {}", option, name);
    tensor = TensorDesc{
        colon == std::string_view::npos ? otherwise : DTypeOrThrow(where, value.substr(colon + 1)),
        Numbers(where, value.substr(0, colon), 'x')};
  }
}

host::Attr AttrOf(std::string_view where, host::AttrType type, std::string_view value) {
  switch (type) {
    case host::AttrType::kBool:
      if (value == "true" || value == "1") return true;
      if (value == "false" || value == "0") return false;
      io::Fail("{}: {} is neither true nor false", where, io::Quote(value));
    case host::AttrType::kInt:
      return Number(where, value);
    case host::AttrType::kIntList:
      return Numbers(where, value, ',');
  }
  io::Fail("{} has an unknown type", where);
}

}  // namespace

host::Problem BuildProblem(const host::OpDef& op, const TilingOptions& options) {
  host::Problem problem = op.problem_of(SizesOf(options));
  SetTensors(op, "--input", options.inputs, op.inputs, &problem.inputs);
  SetTensors(op, "--output", options.outputs, op.outputs, &problem.outputs);
  for (const std::string& text : options.attrs) {
    const auto [name, value] = Split("--attr", text);
    const std::size_t i = IndexOf(op, "--attr", op.attrs, name);
    if (value == "none") {
      problem.attrs[i].reset();
    } else {
      problem.attrs[i] = AttrOf(fmt::format("--attr {}", name), op.attrs[i].type, value);
    }
  }
  return problem;
}

}  // namespace moeperm::cli
