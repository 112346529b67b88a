// SPDX-License-Identifier: Apache-2.0
// Shape and dtype inference beyond the published cases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "problems.hpp"

namespace moeperm::cann::host_test {
namespace {

using host::DType;
using host::Shape;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

host::Problem Grad(const Shape& shape, std::int64_t tokens_num) {
  host::Problem problem = GradProblem({});
  problem.inputs[0]->shape = shape;
  problem.attrs[1] = tokens_num;
  return problem;
}

std::vector<Shape> ShapesOf(const Shape& shape, std::int64_t tokens_num) {
  std::vector<Shape> shapes;
  const Status status = host::FindOp(kGrad)->infer_shape(Grad(shape, tokens_num), &shapes);
  EXPECT_TRUE(status.ok()) << status.message();
  return shapes;
}

std::string ShapeError(const host::Problem& problem) {
  std::vector<Shape> shapes;
  const Status status = host::FindOp(kGrad)->infer_shape(problem, &shapes);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(shapes.empty());
  return status.message();
}

TEST(InferShape, Grad) {
  EXPECT_THAT(ShapesOf({10, 7}, 4), ElementsAre(Shape{4, 7}, Shape{4, 2}));
  EXPECT_THAT(ShapesOf({3, 7}, 4), ElementsAre(Shape{4, 7}, Shape{4, 0}));
  EXPECT_THAT(ShapesOf({0, 0}, 4), ElementsAre(Shape{4, 0}, Shape{4, 0}));
  // The first two dimensions count.
  EXPECT_THAT(ShapesOf({10, 7, 5}, 5), ElementsAre(Shape{5, 7}, Shape{5, 2}));
}

TEST(InferShape, GradOfUnknownShapes) {
  EXPECT_THAT(ShapesOf({-1, 7}, 4), ElementsAre(Shape{4, 7}, Shape{4, 0}));
  EXPECT_THAT(ShapesOf({-1, -1}, 1), ElementsAre(Shape{1, -1}, Shape{1, -1}));
  EXPECT_THAT(ShapesOf({-2}, 4), ElementsAre(Shape{4, -1}, Shape{4, -1}));
}

TEST(InferShape, GradOfHostileShapes) {
  EXPECT_THAT(ShapesOf({kMost, kMost}, 1), ElementsAre(Shape{1, kMost}, Shape{1, kMost}));
  EXPECT_THAT(ShapesOf({kLeast, 1}, 1), ElementsAre(Shape{1, 1}, Shape{1, kLeast}));
  EXPECT_THAT(ShapeError(Grad({kLeast, 1}, -1)), HasSubstr("rows / tokens_num"));
}

TEST(InferShape, GradRefuses) {
  EXPECT_THAT(ShapeError(Grad({10, 7}, 0)), HasSubstr("tokens_num = 0"));
  EXPECT_THAT(ShapeError(Grad({10}, 1)), HasSubstr("[10], which has 1 dimensions"));
  EXPECT_THAT(ShapeError(Grad({}, 1)), HasSubstr("permuted_token_output_grad has shape []"));
  host::Problem problem = GradProblem({});
  problem.inputs.clear();
  EXPECT_THAT(ShapeError(problem), HasSubstr("permuted_token_output_grad is missing"));
  problem = GradProblem({});
  problem.attrs[1] = std::nullopt;
  EXPECT_THAT(ShapeError(problem), HasSubstr("attribute tokens_num is missing"));
  problem.attrs[1] = true;
  EXPECT_THAT(ShapeError(problem), HasSubstr("attribute tokens_num is not an integer"));
  problem.attrs.resize(1);
  EXPECT_THAT(ShapeError(problem), HasSubstr("attribute tokens_num is missing"));
}

// The probs' gradient is inferred as the tokens' dtype also where it is float32.
TEST(InferDType, GradOfMixedDTypes) {
  host::Problem problem = GradProblem({});
  problem.inputs[1]->dtype = DType::kFloat32;
  std::vector<DType> dtypes;
  ASSERT_TRUE(host::FindOp(kGrad)->infer_dtype(problem, &dtypes).ok());
  EXPECT_THAT(dtypes, ElementsAre(DType::kBFloat16, DType::kBFloat16));
  problem.inputs[0]->dtype = DType::kFloat32;
  ASSERT_TRUE(host::FindOp(kGrad)->infer_dtype(problem, &dtypes).ok());
  EXPECT_THAT(dtypes, ElementsAre(DType::kFloat32, DType::kFloat32));
  problem.inputs[0] = std::nullopt;
  EXPECT_FALSE(host::FindOp(kGrad)->infer_dtype(problem, &dtypes).ok());
}

}  // namespace
}  // namespace moeperm::cann::host_test
