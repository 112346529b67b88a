// SPDX-License-Identifier: Apache-2.0
#include "problems.hpp"

#include <gtest/gtest.h>

namespace moeperm::cann::host_test {

using host::DType;
using host::TensorDesc;

host::Problem ForwardProblem(const Sizes& sizes) {
  const std::int64_t rows = sizes.num_out_tokens;
  host::Problem problem;
  problem.inputs = {TensorDesc{sizes.dtype, {sizes.tokens, sizes.hidden}},
                    TensorDesc{DType::kInt8, {sizes.experts, sizes.tokens}}};
  if (sizes.probs) {
    problem.inputs.emplace_back(TensorDesc{sizes.dtype, {sizes.experts, sizes.tokens}});
  }
  problem.outputs = {TensorDesc{sizes.dtype, {rows, sizes.hidden}}, TensorDesc{sizes.dtype, {rows}},
                     TensorDesc{DType::kInt32, {rows}}};
  problem.attrs = {rows, sizes.drop_and_pad};
  return problem;
}

host::Problem GradProblem(const Sizes& sizes) {
  const std::int64_t rows = sizes.num_out_tokens;
  host::Problem problem;
  problem.inputs = {TensorDesc{sizes.dtype, {rows, sizes.hidden}}, std::nullopt,
                    TensorDesc{DType::kInt32, {rows}}, std::nullopt};
  problem.outputs = {TensorDesc{sizes.dtype, {sizes.tokens, sizes.hidden}}, std::nullopt};
  if (sizes.probs) {
    problem.inputs[1] = TensorDesc{sizes.dtype, {rows}};
    problem.inputs[3] = TensorDesc{DType::kInt8, {sizes.tokens, sizes.experts}};
    problem.outputs[1] = TensorDesc{sizes.dtype, {sizes.tokens, sizes.experts}};
  }
  problem.attrs = {sizes.experts, sizes.tokens, sizes.drop_and_pad};
  return problem;
}

host::Tiling TilingOf(const char* op, const host::Problem& problem,
                      const host::Platform& platform) {
  host::Tiling tiling;
  const Status status = host::FindOp(op)->compute_tiling(problem, platform, &tiling);
  EXPECT_TRUE(status.ok()) << status.message();
  return tiling;
}

std::string TilingError(const char* op, const host::Problem& problem,
                        const host::Platform& platform) {
  host::Tiling tiling;
  const Status status = host::FindOp(op)->compute_tiling(problem, platform, &tiling);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(tiling.fields.empty());
  return status.message();
}

}  // namespace moeperm::cann::host_test
