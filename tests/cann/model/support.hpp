// SPDX-License-Identifier: Apache-2.0
// What the tests of the model share: memory with guards around it, tilings, the public API's word.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cann/host/op_def.hpp"
#include "cann/model/model.hpp"
#include "support/fixtures.hpp"
#include "support/pair.hpp"
#include "support/random.hpp"

namespace moeperm::test {

namespace host = cann::host;
namespace model = cann::model;

host::DType HostType(DType dtype);

// Memory as the model takes it; between guards, the bytes it holds at first are known.
class Memory {
 public:
  Memory() = default;
  Memory(std::size_t bytes, std::uint8_t fill);
  static Memory Of(const Tensor& tensor);
  static Memory Of(const std::vector<std::int32_t>& values);

  [[nodiscard]] model::Input in() const;
  [[nodiscard]] model::Output out();
  [[nodiscard]] std::span<const std::uint8_t> bytes() const;
  [[nodiscard]] bool GuardsIntact() const;
  // Every byte was written so often.
  [[nodiscard]] testing::AssertionResult AllWritten(int times) const;
  [[nodiscard]] const std::vector<std::uint8_t>& write_counts() const { return counts_; }

 private:
  std::vector<std::uint8_t> storage_;
  std::vector<std::uint8_t> counts_;
};

struct GradShape {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  std::int64_t experts = 1;
  std::int64_t tokens = 1;
  bool padded = false;
};
host::Problem GradProblem(const GradShape& shape, DType dtype, DType probs_dtype);
host::Tiling GradTiling(const GradShape& shape, DType dtype, const host::Platform& platform);

// Cores 1 .. 64, unified buffers from 8 to 256 KiB; small ones often.
host::Platform RandomPlatform(Random& random);

std::string Describe(const host::Tiling& tiling, const host::Platform& platform);

}  // namespace moeperm::test
