// SPDX-License-Identifier: Apache-2.0
// What a kernel is given: plain numbers, a range of tokens, and nothing of operators or threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace moeperm {

// The rows of each token: the slots offsets[t] .. offsets[t + 1] - 1, or where offsets is null,
// t * top_k .. (t + 1) * top_k - 1. rows[slot] < 0 is no row.
struct TokenRows {
  std::int64_t num_tokens = 0;
  const std::int32_t* rows = nullptr;
  const std::int32_t* offsets = nullptr;
  std::int64_t top_k = 0;

  [[nodiscard]] std::int64_t Begin(std::int64_t token) const {
    return offsets != nullptr ? offsets[token] : token * top_k;
  }
  [[nodiscard]] std::int64_t End(std::int64_t token) const { return Begin(token + 1); }
};

// The lowest slot with a row number that points nowhere, over all threads.
class FirstBadSlot {
 public:
  void Report(std::int64_t slot) {
    std::int64_t seen = slot_.load(std::memory_order_relaxed);
    while (slot < seen && !slot_.compare_exchange_weak(seen, slot, std::memory_order_relaxed)) {
    }
  }
  // -1: none.
  [[nodiscard]] std::int64_t Get() const {
    const std::int64_t slot = slot_.load(std::memory_order_relaxed);
    return slot == kNone ? -1 : slot;
  }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> slot_{kNone};
};

// What a row is multiplied with before it is added or stored.
enum class Weighting {
  kNone,
  kProduct,       // weight * element, rounded to float32
  kRoundedToRow,  // the same, then rounded to the dtype of the rows
};

// Both matrices with strides in bytes; row and column strides of any sign.
struct ReduceJob {
  TokenRows index;
  Weighting weighting = Weighting::kNone;
  const float* weights = nullptr;  // one a slot, unless kNone
  bool skip_zero_weights = false;  // a slot of weight +-0 is taken as one without a row
  bool from_zero = false;          // start every sum from +0
  bool skip_out_of_range = false;  // else a row >= num_rows is reported
  FirstBadSlot* bad = nullptr;

  const std::uint8_t* src = nullptr;  // [num_rows, hidden]
  std::int64_t num_rows = 0;
  std::int64_t src_row_bytes = 0;
  std::int64_t src_col_bytes = 0;

  std::uint8_t* dst = nullptr;  // [num_tokens, hidden]
  std::int64_t dst_row_bytes = 0;
  std::int64_t dst_col_bytes = 0;

  std::int64_t hidden = 0;
  bool stream = false;  // write past the caches
};

// dst[row] = weight * src[token], and dots[slot] = <src[token], other[row]>, in one pass. Each of
// the two may be left out. Strides in bytes, of any sign.
struct SpreadDotJob {
  TokenRows index;                           // the rows of `other`
  std::int64_t num_rows = 0;                 // a row that is not below it is taken as no row
  const std::int32_t* write_rows = nullptr;  // the row of dst of each slot, or -1; null: no dst
  const float* weights = nullptr;            // one a slot; null: no dst
  float* dots = nullptr;                     // one a slot, +0 without a row; null: no `other`

  const std::uint8_t* src = nullptr;  // [num_tokens, hidden]
  std::int64_t src_row_bytes = 0;
  std::int64_t src_col_bytes = 0;

  const std::uint8_t* other = nullptr;  // [num_rows, hidden]
  std::int64_t other_row_bytes = 0;
  std::int64_t other_col_bytes = 0;

  std::uint8_t* dst = nullptr;  // [num_rows, hidden]
  std::int64_t dst_row_bytes = 0;
  std::int64_t dst_col_bytes = 0;

  std::int64_t hidden = 0;
  bool stream = false;  // every row of dst is aligned to a vector then
};

// Copies of whole rows: element size only, no number type.
struct SpreadJob {
  TokenRows index;  // every row is below the number of rows of dst

  const std::uint8_t* src = nullptr;  // [num_tokens, hidden]
  std::int64_t src_row_bytes = 0;
  std::int64_t src_col_bytes = 0;

  std::uint8_t* dst = nullptr;
  std::int64_t dst_row_bytes = 0;
  std::int64_t dst_col_bytes = 0;

  std::int64_t hidden = 0;
  std::int64_t element_bytes = 0;
  bool stream = false;
};

}  // namespace moeperm
