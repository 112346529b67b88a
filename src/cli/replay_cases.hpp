// SPDX-License-Identifier: Apache-2.0
// Files of end-to-end cases, as the operators' test kit writes them: a JSON list, an element a
// call. Only shapes, dtypes, attributes and ranges of values are in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "moeperm/dtype.hpp"

namespace moeperm::cli {

struct ValueRange {
  double low = 0;
  double high = 0;
};

struct CaseTensor {
  DType dtype = DType::kInvalid;
  std::vector<std::int64_t> shape;
  ValueRange range;  // of float tensors
};

struct CaseInput {
  std::string name;
  std::optional<CaseTensor> tensor;  // absent: an attribute, or an optional tensor not given
  std::int64_t attr = 0;
};

enum class CaseOperator { kPermute, kPermuteGrad, kOther };

struct Case {
  std::int64_t id = 0;
  std::string name;
  std::string api;  // "aclnnMoeTokenPermuteWithRoutingMapGrad"
  CaseOperator op = CaseOperator::kOther;
  std::optional<std::string> expected_error;
  std::vector<CaseInput> inputs;  // in the API's order; none for kOther
};

// Throws io::Error where the file is not such a list; the message names the case, the field and
// the value.
std::vector<Case> ReadCases(const std::string& path);

// A case with all that follows from it.
struct CaseProblem {
  CaseOperator op = CaseOperator::kOther;
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t experts = 0;
  std::int64_t rows = 0;
  std::int64_t top_k = 0;     // not padded
  std::int64_t capacity = 0;  // padded
  bool padded = false;
  DType dtype = DType::kFloat32;
  std::optional<DType> probs_dtype;  // absent: no probs
  DType map_dtype = DType::kBool;
  ValueRange token_range;
  ValueRange probs_range;
};

// Throws io::Error where shapes and attributes do not fit together.
CaseProblem ResolveCase(const Case& from);

}  // namespace moeperm::cli
