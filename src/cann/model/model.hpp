// SPDX-License-Identifier: Apache-2.0
// Executes a tiling the way the vector cores would, from the numbers of the tiling alone: core by
// core, token tile by token tile, hidden tile by hidden tile, each core with a unified buffer that
// is never exceeded. It shows that a tiling is sound (all is computed, once, in the order of the
// contract) and what it costs. A second, independent path to the results: it shares no code with
// the library's own row primitives. Tensors are dense and row-major.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cann/host/op_def.hpp"
#include "cann/host/tiling.hpp"
#include "moeperm/status.hpp"

namespace moeperm::cann::model {

// Global memory that the cores read. Every copy is checked against `bytes`.
struct Input {
  const void* data = nullptr;
  std::int64_t bytes = 0;
};

// Global memory that they write.
struct Output {
  void* data = nullptr;
  std::int64_t bytes = 0;
  // One counter a byte: how often it was written (at most 255 times are counted). May be null.
  std::uint8_t* write_counts = nullptr;
};

// What one core did.
struct CoreReport {
  std::int64_t units = 0;  // tokens it finished; drop-and-pad: rows it took
  std::int64_t copies_in = 0;
  std::int64_t bytes_in = 0;
  std::int64_t copies_out = 0;
  std::int64_t bytes_out = 0;
  std::int64_t vector_ops = 0;
  std::int64_t vector_elements = 0;
  std::int64_t ub_peak = 0;  // bytes of its unified buffer that were taken at once
};

struct Report {
  std::vector<CoreReport> cores;  // the started ones, in order
  std::int64_t ub_budget = 0;
  // Why nothing was written, though there is something to write; else empty. The original accepts
  // such tilings.
  std::string idle;

  [[nodiscard]] CoreReport Total() const;  // ub_peak: the largest
  // Bytes of the busiest core over the mean of all; 1 is even, 0 where no bytes were moved.
  [[nodiscard]] double Imbalance() const;
};

// moe_token_permute_with_routing_map_grad. Key 0 reads `rows` and `sorted_indices` and writes
// `tokens_grad`; key 1000 reads `probs` and `sorted_indices` and writes elements of `probs_grad`,
// which holds zeros before (another kernel's work). sorted_indices is int32.
struct PermuteGradBuffers {
  Input rows;
  Input probs;
  Input sorted_indices;
  Output tokens_grad;
  Output probs_grad;
};

// `dtype`: float32, float16 or bfloat16, of the tensors that are moved. `ub_bytes`: the budget of
// a core. Errors: kInvalidArgument (a tiling that would read or write outside a tensor, or above
// the budget; other keys and dtypes), kIndexOutOfRange (key 1000: an index that is no token),
// kOutOfMemory.
Status RunPermuteGrad(const host::Tiling& tiling, host::DType dtype, std::int64_t ub_bytes,
                      const PermuteGradBuffers& buffers, Report* report) noexcept;

// The sorted addition of rows that drop-and-pad uses for the tokens, in its deterministic forms:
// var[sorted_indices[i]] += value[positions[i]], in float32, rounded once. 22 fields.
struct IndexAddShape {
  std::int64_t var_rows = 0;
  std::int64_t value_rows = 0;  // as many indices
  std::int64_t row_elements = 0;
};
Status IndexAddTiling(const IndexAddShape& shape, host::DType dtype, const host::Platform& platform,
                      host::Tiling* tiling) noexcept;

struct IndexAddBuffers {
  Input value;
  Input sorted_indices;  // int32, ascending
  Input positions;       // int32
  Output var;
};
Status RunIndexAdd(const host::Tiling& tiling, host::DType dtype, std::int64_t ub_bytes,
                   const IndexAddBuffers& buffers, Report* report) noexcept;

// What the stable sort before it gives.
struct SortedIndices {
  std::vector<std::int32_t> values;
  std::vector<std::int32_t> positions;
};
SortedIndices SortIndices(std::span<const std::int32_t> indices);

}  // namespace moeperm::cann::model
