// SPDX-License-Identifier: Apache-2.0
#include "cli/judge.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "io/error.hpp"

namespace moeperm::cli {

namespace ref = moeperm_reference;

namespace {

struct OutputsOf {
  std::string_view operation;
  std::vector<std::string> names;
};
// In the order they are shown.
const std::vector<OutputsOf>& AllOutputs() {
  static const std::vector<OutputsOf> all = {
      {"permute",
       {"permuted_tokens", "permuted_probs", "sorted_indices", "tokens_per_expert",
        "expert_offsets"}},
      {"grad", {"tokens_grad", "probs_grad"}},
      {"unpermute", {"tokens", "gathered_probs"}},
      {"unpermute-grad", {"permuted_tokens_grad", "probs_grad"}}};
  return all;
}

}  // namespace

std::vector<std::string> JudgedOperators() {
  std::vector<std::string> names;
  for (const OutputsOf& outputs : AllOutputs()) names.emplace_back(outputs.operation);
  return names;
}

std::vector<std::uint8_t> BytesOf(const InputTensor& tensor) {
  const auto* const data = reinterpret_cast<const std::uint8_t*>(tensor.bytes().data());
  return {data, data + tensor.bytes().size()};
}

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

std::optional<ref::Matrix> MatrixOf(const std::string& path, const char* name,
                                    const std::optional<InputTensor>& tensor) {
  if (!tensor) return std::nullopt;
  return MatrixOf(path, name, *tensor);
}

std::vector<std::int64_t> IntegersOf(const std::string& path, const char* name,
                                     const InputTensor& tensor) {
  const auto copy = [&]<class T>(T) {
    std::vector<T> values(tensor.bytes().size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), tensor.bytes().data(), tensor.bytes().size());
    return std::vector<std::int64_t>(values.begin(), values.end());
  };
  switch (tensor.view().dtype()) {
    case DType::kInt32:
      return copy(std::int32_t{});
    case DType::kInt64:
      return copy(std::int64_t{});
    default:
      io::Fail("{}: tensor '{}' is {}, neither int32 nor int64", path, name,
               Name(tensor.view().dtype()));
  }
}

ConstTensorView ViewOf(const ref::Matrix& matrix) {
  const DType dtype = matrix.type == ref::Type::kFloat32   ? DType::kFloat32
                      : matrix.type == ref::Type::kFloat16 ? DType::kFloat16
                                                           : DType::kBFloat16;
  return {matrix.bytes.data(), dtype, std::array{matrix.rows, matrix.cols}};
}

ConstTensorView ViewOf(const std::vector<std::int64_t>& integers) {
  return ConstTensorView(integers.data(), {static_cast<std::int64_t>(integers.size())});
}

Judge::Judge(const std::string& against, std::vector<std::string> of) : of_(std::move(of)) {
  if (!against.empty()) file_.emplace(against);
}

bool Judge::Begin(const char* operation) {
  operation_ = operation;
  tensors_.clear();
  return !file_ || std::ranges::find(of_, operation_) != of_.end();
}

std::optional<ConstTensorView> Judge::Find(std::string_view name) {
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

void Judge::Add(Json comparison) {
  comparison["operator"] = operation_;
  comparisons_.push_back(std::move(comparison));
}

std::vector<std::string> Judge::Outputs() const {
  std::vector<std::string> names;
  for (const OutputsOf& outputs : AllOutputs()) {
    if (file_ && std::ranges::find(of_, outputs.operation) == of_.end()) continue;
    names.insert(names.end(), outputs.names.begin(), outputs.names.end());
  }
  return names;
}

std::vector<std::string> Judge::NotChecked() const {
  std::vector<std::string> names;
  if (!file_) return names;
  for (const io::TensorInfo& tensor : file_->tensors()) {
    const auto is_it = [&](const Json& comparison) { return comparison["tensor"] == tensor.name; };
    if (std::ranges::none_of(comparisons_, is_it)) names.push_back(tensor.name);
  }
  return names;
}

void Judge::Matrix(const char* name, const ref::Matrix& expected, Equality equality, int rank) {
  if (const auto got = Find(name)) {
    std::vector<std::int64_t> shape = {expected.rows};
    if (rank == 2) shape.push_back(expected.cols);
    Add(Compare(name, *got, expected, equality, std::move(shape)));
  }
}

void Judge::Integers(const char* name, const std::vector<std::int64_t>& expected) {
  if (const auto got = Find(name)) Add(Compare(name, *got, expected));
}

}  // namespace moeperm::cli
