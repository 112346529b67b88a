// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace moeperm::test {
namespace {

constexpr std::size_t kGuard = 64;
constexpr std::uint8_t kGuardByte = 0xA5;

}  // namespace

host::DType HostType(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return host::DType::kFloat16;
    case DType::kBFloat16:
      return host::DType::kBFloat16;
    default:
      return host::DType::kFloat32;
  }
}

Memory::Memory(std::size_t bytes, std::uint8_t fill)
    : storage_(bytes + 2 * kGuard, kGuardByte), counts_(bytes, 0) {
  std::fill_n(storage_.begin() + kGuard, bytes, fill);
}

Memory Memory::Of(const Tensor& tensor) {
  const std::size_t element = SizeOf(tensor.dtype());
  Memory memory(static_cast<std::size_t>(tensor.size()) * element, 0);
  std::size_t at = kGuard;
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    for (std::int64_t col = 0; col < tensor.cols(); ++col) {
      const std::uint64_t bits = tensor.Bits(row, col);
      for (std::size_t i = 0; i < element; ++i) {
        memory.storage_[at++] = static_cast<std::uint8_t>(bits >> (8 * i));
      }
    }
  }
  return memory;
}

Memory Memory::Of(const std::vector<std::int32_t>& values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return Of(Tensor::OfInts(DType::kInt32, {size}, {values.begin(), values.end()}));
}

model::Input Memory::in() const {
  return {storage_.data() + kGuard, static_cast<std::int64_t>(counts_.size())};
}
model::Output Memory::out() {
  return {storage_.data() + kGuard, static_cast<std::int64_t>(counts_.size()), counts_.data()};
}
std::span<const std::uint8_t> Memory::bytes() const {
  return {storage_.data() + kGuard, counts_.size()};
}

bool Memory::GuardsIntact() const {
  const auto known = [](std::uint8_t byte) { return byte == kGuardByte; };
  return std::all_of(storage_.begin(), storage_.begin() + kGuard, known) &&
         std::all_of(storage_.end() - kGuard, storage_.end(), known);
}

testing::AssertionResult Memory::AllWritten(int times) const {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] != times) {
      return testing::AssertionFailure()
             << "byte " << i << " was written " << int{counts_[i]} << " times, not " << times;
    }
  }
  return testing::AssertionSuccess();
}

host::Problem GradProblem(const GradShape& shape, DType dtype, DType probs_dtype) {
  host::Problem problem;
  problem.inputs = {
      host::TensorDesc{HostType(dtype), {shape.rows, shape.hidden}},
      host::TensorDesc{HostType(probs_dtype), {shape.rows}},
      host::TensorDesc{host::DType::kInt32, {shape.rows}},
      host::TensorDesc{host::DType::kInt8, {shape.tokens, shape.experts}},
  };
  problem.outputs = {
      host::TensorDesc{HostType(dtype), {shape.tokens, shape.hidden}},
      host::TensorDesc{HostType(probs_dtype), {shape.tokens, shape.experts}},
  };
  problem.attrs = {shape.experts, shape.tokens, shape.padded};
  return problem;
}

host::Tiling GradTiling(const GradShape& shape, DType dtype, const host::Platform& platform) {
  const host::OpDef* const op = host::FindOp("moe_token_permute_with_routing_map_grad");
  host::Tiling tiling;
  if (op == nullptr) {
    ADD_FAILURE() << "the operator is not in the table";
    return tiling;
  }
  const Status status = op->compute_tiling(GradProblem(shape, dtype, dtype), platform, &tiling);
  EXPECT_TRUE(status.ok()) << status.message();
  return tiling;
}

host::Platform RandomPlatform(Random& random) {
  host::Platform platform;
  platform.vector_cores = 1 + random.Below(random.Chance(50) ? 64 : 5);
  const std::int64_t kib = random.Chance(60) ? 8 + random.Below(40) : 8 + random.Below(249);
  platform.ub_bytes = kib * 1024 - 256;
  return platform;
}

std::string Describe(const host::Tiling& tiling, const host::Platform& platform) {
  std::string text =
      fmt::format("{} cores, {} bytes a core; key {}, block dim {}", platform.vector_cores,
                  platform.ub_bytes, tiling.key, tiling.block_dim);
  for (const host::TilingField& field : tiling.fields) {
    text += fmt::format(", {} {}", field.name, field.value);
  }
  return text;
}

}  // namespace moeperm::test
