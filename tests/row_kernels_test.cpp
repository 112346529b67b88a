// SPDX-License-Identifier: Apache-2.0
// The row primitives themselves, streaming, at every address modulo a cache line and for sizes
// below, at and above what is streamed as a whole: the right bytes, and not one beside them.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/isa.hpp"
#include "moeperm/context.hpp"
#include "rows/kernels.hpp"
#include "support/random.hpp"

namespace moeperm::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kGuard = 256;  // more than any vector, on either side
constexpr std::uint8_t kGuardByte = 0xA5;

// Memory that starts at a cache line, all of it guard bytes.
class Arena {
 public:
  explicit Arena(std::int64_t bytes)
      : storage_(static_cast<std::size_t>(bytes + kLine), kGuardByte),
        first_((kLine - static_cast<std::int64_t>(
                            reinterpret_cast<std::uintptr_t>(storage_.data()) % kLine)) %
               kLine),
        expected_(storage_) {}

  [[nodiscard]] std::uint8_t* At(std::int64_t offset) { return storage_.data() + first_ + offset; }
  // What must stand at `offset` after the call.
  [[nodiscard]] std::uint8_t* Expected(std::int64_t offset) {
    return expected_.data() + first_ + offset;
  }
  [[nodiscard]] bool AsExpected() const { return storage_ == expected_; }
  // Everything a guard byte again.
  void Reset() {
    std::ranges::fill(storage_, kGuardByte);
    std::ranges::fill(expected_, kGuardByte);
  }

 private:
  Bytes storage_;
  std::int64_t first_;
  Bytes expected_;
};

Bytes RandomBytes(std::int64_t size, std::uint64_t seed) {
  Random random(seed);
  Bytes bytes(static_cast<std::size_t>(size));
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.Bits());
  return bytes;
}

// The parameter is the name of an instruction set.
class RowKernelsTest : public testing::TestWithParam<std::string> {
 protected:
  const RowKernels& kernels_ = RowKernelsFor(*FindIsa(GetParam()));
};

// 0 .. 330 bytes: nothing, less than a vector, less than a line behind the first aligned address,
// one line, several, four vectors at a time, and every number of bytes left over.
TEST_P(RowKernelsTest, CopiesAndZeroesAtEveryAddress) {
  constexpr std::int64_t kMost = 330;
  const Bytes source = RandomBytes(kMost + kLine, 1);
  Arena arena(2 * kGuard + kLine + kMost);
  for (const bool stream : {false, true}) {
    for (std::int64_t past = 0; past < kLine; ++past) {
      for (std::int64_t bytes = 0; bytes <= kMost; ++bytes) {
        const auto size = static_cast<std::size_t>(bytes);
        const std::uint8_t* const from = source.data() + (past * 7 + bytes) % kLine;
        arena.Reset();
        std::copy_n(from, size, arena.Expected(kGuard + past));
        kernels_.copy(arena.At(kGuard + past), from, bytes, stream);
        kernels_.flush_stream();
        ASSERT_TRUE(arena.AsExpected())
            << "copy of " << bytes << " bytes to " << past << " past a line, stream " << stream;
        std::fill_n(arena.Expected(kGuard + past), size, std::uint8_t{0});
        kernels_.fill_zero(arena.At(kGuard + past), bytes, stream);
        kernels_.flush_stream();
        ASSERT_TRUE(arena.AsExpected())
            << "zeroes " << bytes << " bytes at " << past << " past a line, stream " << stream;
      }
    }
  }
}

// Rows of every address that an element may have, guard bytes between them; some tokens have
// several rows, some one, some none, and slots hold -1.
TEST_P(RowKernelsTest, SpreadsToRowsAtEveryAddress) {
  constexpr std::int64_t kTokens = 40;
  constexpr std::int64_t kTopK = 3;
  std::vector<std::int32_t> rows(kTokens * kTopK);
  std::iota(rows.begin(), rows.end(), 0);
  std::ranges::reverse(rows);
  for (std::size_t slot = 0; slot < rows.size(); ++slot) {
    if (slot % 5 == 1 || slot % 7 == 2) rows[slot] = -1;
  }
  for (const std::int64_t element : {2, 4}) {
    for (const std::int64_t hidden : {1, 7, 15, 16, 17, 31, 33, 63, 65, 129, 257}) {
      const std::int64_t bytes = hidden * element;
      // The next row starts `element` further past a line than this one.
      const std::int64_t stride = (bytes + kGuard) / kLine * kLine + kLine + element;
      const Bytes source = RandomBytes(kTokens * bytes, 2);
      Arena arena(2 * kGuard + kTokens * kTopK * stride);
      SpreadJob job;
      job.index = {kTokens, rows.data(), nullptr, kTopK};
      job.src = source.data();
      job.src_row_bytes = bytes;
      job.src_col_bytes = element;
      job.dst = arena.At(kGuard);
      job.dst_row_bytes = stride;
      job.dst_col_bytes = element;
      job.hidden = hidden;
      job.element_bytes = element;
      job.stream = true;
      for (std::int64_t slot = 0; slot < kTokens * kTopK; ++slot) {
        const std::int64_t row = rows[static_cast<std::size_t>(slot)];
        if (row < 0) continue;
        std::copy_n(source.data() + slot / kTopK * bytes, bytes,
                    arena.Expected(kGuard + row * stride));
      }
      kernels_.spread(job, 0, kTokens);
      kernels_.flush_stream();
      ASSERT_TRUE(arena.AsExpected()) << "hidden " << hidden << " of " << element << " bytes";
    }
  }
}

// The sums of the scalar form, at every address that an element may have. Zero to three rows a
// token: zeroes, copies and sums.
TEST_P(RowKernelsTest, ReducesToTokensAtEveryAddress) {
  constexpr std::int64_t kTokens = 70;
  constexpr std::int64_t kRows = 50;
  constexpr std::int64_t kTopK = 3;
  Random random(3);
  std::vector<std::int32_t> slots(kTokens * kTopK);
  for (std::int32_t& row : slots) row = static_cast<std::int32_t>(random.Below(2 * kRows) - kRows);
  struct Kind {
    DType dtype;
    RowKernels::Reduce scalar;
  };
  for (const Kind kind :
       {Kind{DType::kFloat32, ReduceAnyFloat32}, Kind{DType::kFloat16, ReduceAnyFloat16},
        Kind{DType::kBFloat16, ReduceAnyBFloat16}}) {
    const auto element = static_cast<std::int64_t>(SizeOf(kind.dtype));
    for (const std::int64_t hidden : {1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129, 257}) {
      const std::int64_t bytes = hidden * element;
      const std::int64_t stride = (bytes + kGuard) / kLine * kLine + kLine + element;
      const Bytes source = RandomBytes(kRows * bytes, 4);
      Arena arena(2 * kGuard + kTokens * stride);
      FirstBadSlot bad;
      ReduceJob job;
      job.index = {kTokens, slots.data(), nullptr, kTopK};
      job.bad = &bad;
      job.src = source.data();
      job.num_rows = kRows;
      job.src_row_bytes = bytes;
      job.src_col_bytes = element;
      job.dst = arena.Expected(kGuard);
      job.dst_row_bytes = stride;
      job.dst_col_bytes = element;
      job.hidden = hidden;
      kind.scalar(job, 0, kTokens);
      job.dst = arena.At(kGuard);
      job.stream = true;
      kernels_.reduce(kind.dtype)(job, 0, kTokens);
      kernels_.flush_stream();
      ASSERT_TRUE(arena.AsExpected()) << "hidden " << hidden << " of " << Name(kind.dtype);
      ASSERT_EQ(bad.Get(), -1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, RowKernelsTest, testing::ValuesIn(AvailableIsas()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace moeperm::test
