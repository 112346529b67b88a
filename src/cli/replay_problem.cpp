// SPDX-License-Identifier: Apache-2.0
// What follows from the shapes and attributes of a case.
#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/replay_cases.hpp"
#include "io/error.hpp"

namespace moeperm::cli {
namespace {

class Resolver {
 public:
  explicit Resolver(const Case& from) : from_(from) {}

  CaseProblem Resolve() {
    problem_.op = from_.op;
    if (from_.op == CaseOperator::kPermute) {
      Permute();
    } else {
      PermuteGrad();
    }
    // The kit leaves the probs out of every second case.
    if (from_.id % 2 == 0) problem_.probs_dtype.reset();
    return problem_;
  }

 private:
  void Permute() {
    const CaseTensor& tokens = Tensor(0, {-1, -1});
    problem_.tokens = tokens.shape[0];
    problem_.hidden = tokens.shape[1];
    const CaseTensor& map = Tensor(1, {problem_.tokens, -1});
    problem_.experts = map.shape[1];
    Types(0, 2, 1);
    if (from_.inputs[2].tensor) Tensor(2, {problem_.tokens, problem_.experts});
    const std::int64_t rows = from_.inputs[3].attr;
    problem_.padded = from_.inputs[4].attr != 0;
    if (rows < 0 || rows > problem_.tokens * problem_.experts) {
      Fail(3, rows, fmt::format("0 to tokens * experts = {}", problem_.tokens * problem_.experts));
    }
    if (problem_.padded) {
      problem_.capacity = problem_.experts == 0 ? 0 : rows / problem_.experts;
      problem_.rows = problem_.capacity * problem_.experts;
    } else {
      problem_.top_k = problem_.tokens == 0 ? 0 : rows / problem_.tokens;
      problem_.rows = problem_.top_k * problem_.tokens;
    }
  }

  void PermuteGrad() {
    const CaseTensor& rows = Tensor(0, {-1, -1});
    problem_.rows = rows.shape[0];
    problem_.hidden = rows.shape[1];
    problem_.experts = Count(4);
    problem_.tokens = Count(5);
    problem_.padded = from_.inputs[6].attr != 0;
    Types(0, 1, 3);
    if (from_.inputs[1].tensor) Tensor(1, {problem_.rows});
    if (Tensor(2, {problem_.rows}).dtype != DType::kInt32) FailDType(2, "int32");
    if (from_.inputs[3].tensor) Tensor(3, {problem_.tokens, problem_.experts});
    if (problem_.padded) {
      problem_.capacity = Share(4, problem_.experts);
      if (problem_.capacity > problem_.tokens) {
        Fail(5, problem_.tokens,
             fmt::format("at least the {} rows of an expert", problem_.capacity));
      }
    } else {
      problem_.top_k = Share(5, problem_.tokens);
      if (problem_.top_k > problem_.experts) {
        Fail(4, problem_.experts, fmt::format("at least the {} rows of a token", problem_.top_k));
      }
      if (from_.inputs[1].tensor && !from_.inputs[3].tensor) {
        io::Fail("case {}: {} is given, and so {} must be", from_.id, from_.inputs[1].name,
                 from_.inputs[3].name);
      }
    }
  }

  [[noreturn]] void Fail(std::size_t i, std::int64_t value, const std::string& must) const {
    io::Fail("case {}: {} = {} but must be {}", from_.id, from_.inputs[i].name, value, must);
  }
  [[noreturn]] void FailDType(std::size_t i, const char* must) const {
    io::Fail("case {}: {} is {} but must be {}", from_.id, from_.inputs[i].name,
             Name(from_.inputs[i].tensor->dtype), must);
  }

  // A tensor of this shape; -1 stands for any length.
  const CaseTensor& Tensor(std::size_t i, std::vector<std::int64_t> shape) const {
    const CaseTensor& tensor = *from_.inputs[i].tensor;
    bool fits = tensor.shape.size() == shape.size();
    for (std::size_t dim = 0; fits && dim < shape.size(); ++dim) {
      if (shape[dim] < 0) shape[dim] = tensor.shape[dim];
      fits = tensor.shape[dim] == shape[dim];
    }
    if (!fits) {
      io::Fail("case {}: {} is {} but must be {}", from_.id, from_.inputs[i].name,
               FormatShape(tensor.shape), FormatWanted(shape));
    }
    return tensor;
  }
  static std::string FormatWanted(const std::vector<std::int64_t>& shape) {
    std::string text;
    for (const std::int64_t dim : shape) {
      text += (text.empty() ? "" : ", ") + (dim < 0 ? "any" : fmt::format("{}", dim));
    }
    return "[" + text + "]";
  }

  std::int64_t Count(std::size_t i) const {
    const std::int64_t value = from_.inputs[i].attr;
    if (value <= 0 || value > INT32_MAX) Fail(i, value, "1 to 2147483647");
    return value;
  }

  // Rows for each of `parts`.
  std::int64_t Share(std::size_t i, std::int64_t parts) const {
    if (problem_.rows % parts != 0) {
      Fail(i, parts, fmt::format("a divisor of the {} rows", problem_.rows));
    }
    return problem_.rows / parts;
  }

  static bool IsFloat(DType dtype) {
    return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  }

  void Types(std::size_t tokens, std::size_t probs, std::size_t map) {
    problem_.dtype = from_.inputs[tokens].tensor->dtype;
    problem_.token_range = from_.inputs[tokens].tensor->range;
    if (!IsFloat(problem_.dtype)) FailDType(tokens, "fp16, bf16 or fp32");
    if (const auto& tensor = from_.inputs[probs].tensor) {
      if (!IsFloat(tensor->dtype)) FailDType(probs, "fp16, bf16 or fp32");
      problem_.probs_dtype = tensor->dtype;
      problem_.probs_range = tensor->range;
    }
    if (const auto& tensor = from_.inputs[map].tensor) {
      if (tensor->dtype != DType::kInt8 && tensor->dtype != DType::kBool) {
        FailDType(map, "int8 or bool");
      }
      problem_.map_dtype = tensor->dtype;
    }
  }

  const Case& from_;
  CaseProblem problem_;
};

}  // namespace

CaseProblem ResolveCase(const Case& from) { return Resolver(from).Resolve(); }

}  // namespace moeperm::cli
