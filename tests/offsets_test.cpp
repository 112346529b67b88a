// SPDX-License-Identifier: Apache-2.0
// Offsets past 2^31 and 2^32 elements and bytes, cheaply: strides so large that the few elements
// lie far apart in an address space that has no memory behind it. Every operand in turn.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/mapping.hpp"

namespace moeperm::test {
namespace {

using Floats = std::vector<float>;

// A [rows, cols] view of T whose elements lie `row_stride` and `col_stride` apart, negative ones
// included, all of it inside one mapping.
template <class T>
class FarApart {
 public:
  FarApart(std::int64_t rows, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride)
      : rows_(rows),
        cols_(cols),
        row_stride_(row_stride),
        col_stride_(col_stride),
        mapping_((Reach(rows, row_stride) + Reach(cols, col_stride) + 1) *
                 static_cast<std::int64_t>(sizeof(T))),
        first_(mapping_.template as<T>() + (row_stride < 0 ? Reach(rows, row_stride) : 0) +
               (col_stride < 0 ? Reach(cols, col_stride) : 0)) {}

  [[nodiscard]] T& At(std::int64_t row, std::int64_t col) const {
    return first_[row * row_stride_ + col * col_stride_];
  }
  void Set(const std::vector<T>& values) {
    for (std::int64_t i = 0; i < rows_ * cols_; ++i) {
      At(i / cols_, i % cols_) = values[static_cast<std::size_t>(i)];
    }
  }
  [[nodiscard]] std::vector<T> Get() const {
    std::vector<T> values;
    for (std::int64_t i = 0; i < rows_ * cols_; ++i) {
      values.push_back(At(i / cols_, i % cols_));
    }
    return values;
  }
  [[nodiscard]] ConstTensorView in() const {
    return ConstTensorView(first_, {rows_, cols_}, {row_stride_, col_stride_});
  }
  [[nodiscard]] TensorView out() const {
    return TensorView(first_, {rows_, cols_}, {row_stride_, col_stride_});
  }
  [[nodiscard]] TensorView column() const { return TensorView(first_, {rows_}, {row_stride_}); }

 private:
  static std::int64_t Reach(std::int64_t size, std::int64_t stride) {
    return (size - 1) * std::abs(stride);
  }
  std::int64_t rows_;
  std::int64_t cols_;
  std::int64_t row_stride_;
  std::int64_t col_stride_;
  Mapping mapping_;
  T* first_;
};

struct FarStrides {
  std::int64_t row;
  std::int64_t col;
};
// Row strides past 2^31 and 2^32 elements; column strides (half as far: the product counts); the
// neighbours of 2^31 that 32-bit arithmetic would wrap to 0 or to a negative number.
const FarStrides kFar[] = {{(std::int64_t{1} << 31) + 7, 1}, {(std::int64_t{1} << 32) + 1, 1},
                           {std::int64_t{1} << 32, 1},       {(std::int64_t{1} << 30) + 3, 1},
                           {1, (std::int64_t{1} << 32) + 9}, {-(std::int64_t{1} << 31) - 5, 1},
                           {-(std::int64_t{1} << 32), -1}};

class Offsets : public testing::TestWithParam<FarStrides> {
 protected:
  static std::vector<Context> SomeContexts() { return EveryContext({1, 2}); }
};

// The strides fit every operand: two columns wide and F1's three tokens or six rows.
TEST_P(Offsets, SourceAndDestinationOfTheForward) {
  const auto [row, col] = GetParam();
  const ForwardInputs f1 = NotPadded(F1());
  FarApart<float> tokens(3, 2, row, col);
  tokens.Set(f1.tokens.Floats());
  FarApart<std::int8_t> map(3, 3, row, col);
  map.Set({1, 0, 1, 1, 1, 0, 0, 1, 1});
  FarApart<float> probs(3, 3, row, col);
  probs.Set(f1.probs->Floats());
  for (const Context& context : SomeContexts()) {
    FarApart<float> permuted_tokens(6, 2, row, col);
    FarApart<float> permuted_probs(6, 1, row, col);
    FarApart<std::int32_t> indices(6, 1, row, col);
    ForwardOutputs outputs = MakeOutputs(f1);
    PermuteWithRoutingMapArgs args = ArgsOf(f1, outputs);
    args.tokens = tokens.in();
    args.routing_map = map.in();
    args.probs = probs.in();
    args.permuted_tokens = permuted_tokens.out();
    args.permuted_probs = permuted_probs.column();
    args.sorted_indices = indices.column();
    const Status status = PermuteWithRoutingMap(args, context);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(permuted_tokens.Get(), (Floats{1, 10, 2, 20, 2, 20, 3, 30, 1, 10, 3, 30}));
    EXPECT_EQ(permuted_probs.Get(), (Floats{.5, .75, .125, .375, .25, .625}));
    EXPECT_EQ(indices.Get(), (std::vector<std::int32_t>{0, 4, 1, 2, 3, 5}));
  }
}

TEST_P(Offsets, SourceAndDestinationOfTheGrad) {
  const auto [row, col] = GetParam();
  FarApart<float> permuted_tokens_grad(6, 2, row, col);
  permuted_tokens_grad.Set(kF1TokensGrad);
  FarApart<float> permuted_probs_grad(6, 1, row, col);
  permuted_probs_grad.Set(kF1ProbsGrad);
  FarApart<std::int64_t> indices(6, 1, row, col);
  indices.Set({0, 4, 1, 2, 3, 5});
  FarApart<std::int8_t> map(3, 3, row, col);
  map.Set({1, 0, 1, 1, 1, 0, 0, 1, 1});
  for (const Context& context : SomeContexts()) {
    FarApart<float> tokens_grad(3, 2, row, col);
    FarApart<float> probs_grad(3, 3, row, col);
    PermuteWithRoutingMapGradArgs args;
    args.permuted_tokens_grad = permuted_tokens_grad.in();
    args.permuted_probs_grad = permuted_probs_grad.column();
    args.sorted_indices = indices.column();
    args.routing_map = map.in();
    args.num_tokens = 3;
    args.num_experts = 3;
    args.tokens_grad = tokens_grad.out();
    args.probs_grad = probs_grad.out();
    Status status = PermuteWithRoutingMapGrad(args, context);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(tokens_grad.Get(), (Floats{17, -17, 6, -6, 40, -40}));
    EXPECT_EQ(probs_grad.Get(), (Floats{1, 0, 5, 2, 3, 0, 0, 4, 6}));

    // Drop-and-pad: the same rows by token.
    FarApart<std::int64_t> row_tokens(6, 1, row, col);
    row_tokens.Set({0, 1, 1, 2, 0, 2});
    args.sorted_indices = row_tokens.column();
    args.routing_map.reset();
    args.drop_and_pad = true;
    tokens_grad.Set(Floats(6, -1));
    probs_grad.Set(Floats(9, -1));
    status = PermuteWithRoutingMapGrad(args, context);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(tokens_grad.Get(), (Floats{17, -17, 6, -6, 40, -40}));
    EXPECT_EQ(probs_grad.Get(), (Floats{1, 0, 5, 2, 3, 0, 0, 4, 6}));
  }
}

INSTANTIATE_TEST_SUITE_P(Far, Offsets, testing::ValuesIn(kFar), [](const auto& test) {
  const std::string name =
      "row_" + std::to_string(test.param.row) + "_col_" + std::to_string(test.param.col);
  std::string plain = name;
  std::replace(plain.begin(), plain.end(), '-', 'm');
  return plain;
});

// Rows of ordinary width, far down: row * hidden passes 2^31 while the rows between are never
// touched. The source side of the gradient, which reads only the rows its indices name; an output
// is written whole, so for destinations the strides above stand in.
void CheckFarRow(std::int64_t row, std::int64_t hidden) {
  ASSERT_GT(row * hidden, std::int64_t{1} << 31);
  const Mapping rows((row + 1) * hidden * 2);
  std::uint16_t* const last = rows.as<std::uint16_t>() + row * hidden;
  std::uint16_t* const wrapped = rows.as<std::uint16_t>();  // what a wrapped product could hit
  for (std::int64_t h = 0; h < hidden; ++h) {
    last[h] = static_cast<std::uint16_t>(0x3F80 + h % 100);
    wrapped[h] = 0x7FC0;
  }
  const std::int64_t indices[] = {row, row - 1};
  Tensor tokens_grad(DType::kBFloat16, {2, hidden});
  PermuteWithRoutingMapGradArgs args;
  args.permuted_tokens_grad = ConstTensorView(rows.as<const void>(), DType::kBFloat16,
                                              std::vector<std::int64_t>{row + 1, hidden});
  args.sorted_indices = ConstTensorView(indices, {2});
  args.num_tokens = 2;
  args.tokens_grad = tokens_grad.out();
  for (const Context& context : EveryContext({1, 2})) {
    tokens_grad.FillBytes(0xFF);
    const Status status = PermuteWithRoutingMapGrad(args, context);
    ASSERT_TRUE(status.ok()) << status.message();
    for (std::int64_t h = 0; h < hidden; ++h) {
      ASSERT_EQ(tokens_grad.Bits(0, h), static_cast<std::uint64_t>(0x3F80 + h % 100));
      ASSERT_EQ(tokens_grad.Bits(1, h), 0U);
    }
  }
}

TEST(Probes, P007_RowTimesHiddenPast31Bits) {
  CheckFarRow(299594, 7168);
  CheckFarRow(599187, 7168);  // past 2^32 as well
}

TEST(Probes, P008_RowTimesHiddenPast31Bits) { CheckFarRow(349526, 6144); }

}  // namespace
}  // namespace moeperm::test
