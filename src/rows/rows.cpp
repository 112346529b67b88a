// SPDX-License-Identifier: Apache-2.0
#include "rows/rows.hpp"

#include <algorithm>
#include <cstring>

#include "rows/kernels.hpp"

namespace moeperm {
namespace {

// Columns a task has at least where a few tokens are shared among threads by columns.
constexpr std::int64_t kMinColumns = 8192;
constexpr int kTasksPerThread = 8;

std::int64_t ElementBytes(const ConstTensorView& view) {
  return static_cast<std::int64_t>(SizeOf(view.dtype()));
}

// Cuts [0, rows) x [0, hidden) into tasks, by rows where there are enough, else by columns too, and
// runs body(row_begin, row_end, column_begin, column_end) on each.
template <class Body>
void ForEachPart(const Context::Impl& context, std::int64_t rows, std::int64_t hidden,
                 std::int64_t bytes, const Body& body) {
  const int wanted = TaskCount(*context.pool, rows * hidden, bytes, kTasksPerThread);
  const int row_parts = static_cast<int>(std::min<std::int64_t>(wanted, rows));
  if (row_parts == 0) return;
  const int column_parts = static_cast<int>(
      std::clamp<std::int64_t>(hidden / kMinColumns, 1, std::max(1, wanted / row_parts)));
  context.pool->Run(row_parts * column_parts, [&](int task) {
    const Range row = CutRange(rows, row_parts, task / column_parts);
    const Range column = CutRange(hidden, column_parts, task % column_parts);
    body(row.begin, row.end, column.begin, column.end);
  });
}

template <class Job>
void Narrow(Job* job, std::int64_t column_begin, std::int64_t column_end) {
  if (job->src != nullptr) job->src += column_begin * job->src_col_bytes;  // null: no rows
  job->dst += column_begin * job->dst_col_bytes;
  job->hidden = column_end - column_begin;
}

template <class Job>
void SetMatrices(const ConstTensorView& src, const TensorView& dst, Job* job) {
  const std::int64_t element = ElementBytes(src);
  job->src = static_cast<const std::uint8_t*>(src.data());
  job->src_row_bytes = src.stride(0) * element;
  job->src_col_bytes = src.stride(1) * element;
  job->dst = static_cast<std::uint8_t*>(dst.data());
  job->dst_row_bytes = dst.stride(0) * element;
  job->dst_col_bytes = dst.stride(1) * element;
  job->hidden = src.shape(1);
}

}  // namespace

bool ShouldStream(std::int64_t bytes) { return bytes >= std::int64_t{2} << 20; }

std::int64_t ReduceRows(const Context::Impl& context, const TokenRows& index,
                        const ReduceOptions& options, const ConstTensorView& src,
                        const TensorView& dst) {
  const RowKernels& kernels = RowKernelsFor(*context.isa);
  const RowKernels::Reduce reduce = kernels.reduce(src.dtype());
  FirstBadSlot bad;
  ReduceJob job;
  job.index = index;
  job.from_zero = options.from_zero;
  job.skip_out_of_range = options.skip_out_of_range;
  job.weighting = options.weighting;
  job.weights = options.weights;
  job.skip_zero_weights = options.skip_zero_weights;
  job.bad = &bad;
  job.num_rows = src.shape(0);
  SetMatrices(src, dst, &job);
  const std::int64_t tokens = index.num_tokens;
  const std::int64_t written = tokens * job.hidden * ElementBytes(src);
  const std::int64_t slots = tokens == 0 ? 0 : index.End(tokens - 1);
  job.stream = ShouldStream(written);
  if (job.hidden == 0) {  // no columns to visit, but the index is still checked
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      if (index.rows[slot] >= job.num_rows && !job.skip_out_of_range) bad.Report(slot);
    }
    return bad.Get();
  }
  // What is read, for the number of tasks alone: slots may hold fewer rows than there are of them.
  const std::int64_t bytes =
      written + std::min(slots, job.num_rows) * job.hidden * ElementBytes(src);
  ForEachPart(context, tokens, job.hidden, bytes,
              [&](std::int64_t token_begin, std::int64_t token_end, std::int64_t column_begin,
                  std::int64_t column_end) {
                ReduceJob part = job;
                Narrow(&part, column_begin, column_end);
                reduce(part, token_begin, token_end);
                kernels.flush_stream();
              });
  return bad.Get();
}

void SpreadRows(const Context::Impl& context, const TokenRows& index, const ConstTensorView& src,
                const TensorView& dst) {
  const RowKernels& kernels = RowKernelsFor(*context.isa);
  SpreadJob job;
  job.index = index;
  SetMatrices(src, dst, &job);
  job.element_bytes = ElementBytes(src);
  const std::int64_t bytes = dst.shape(0) * job.hidden * job.element_bytes;
  if (bytes == 0) return;
  job.stream = ShouldStream(bytes);
  const bool neighbours =
      job.src_col_bytes == job.element_bytes && job.dst_col_bytes == job.element_bytes;
  ForEachPart(context, index.num_tokens, job.hidden, bytes,
              [&](std::int64_t token_begin, std::int64_t token_end, std::int64_t column_begin,
                  std::int64_t column_end) {
                SpreadJob part = job;
                Narrow(&part, column_begin, column_end);
                (neighbours ? kernels.spread : SpreadAny)(part, token_begin, token_end);
                kernels.flush_stream();
              });
}

void SpreadDotRows(const Context::Impl& context, const TokenRows& index,
                   const SpreadDotArgs& args) {
  const RowKernels& kernels = RowKernelsFor(*context.isa);
  const ConstTensorView& src = *args.src;
  const std::int64_t element = ElementBytes(src);
  SpreadDotJob job;
  job.index = index;
  job.src = static_cast<const std::uint8_t*>(src.data());
  job.src_row_bytes = src.stride(0) * element;
  job.src_col_bytes = src.stride(1) * element;
  job.hidden = src.shape(1);
  if (job.hidden == 0) {  // sums of nothing
    const std::int64_t slots = index.num_tokens == 0 ? 0 : index.End(index.num_tokens - 1);
    if (args.dots != nullptr) std::fill_n(args.dots, slots, 0.0F);
    return;
  }
  bool neighbours = job.src_col_bytes == element;
  std::int64_t rows = 0;
  if (args.dots != nullptr) {
    rows = job.num_rows = args.other->shape(0);
    job.dots = args.dots;
    job.other = static_cast<const std::uint8_t*>(args.other->data());
    job.other_row_bytes = args.other->stride(0) * element;
    job.other_col_bytes = args.other->stride(1) * element;
    neighbours = neighbours && job.other_col_bytes == element;
  }
  if (args.dst != nullptr) {
    rows = args.dst->shape(0);
    job.write_rows = args.write_rows;
    job.weights = args.weights;
    job.dst = static_cast<std::uint8_t*>(args.dst->data());
    job.dst_row_bytes = args.dst->stride(0) * element;
    job.dst_col_bytes = args.dst->stride(1) * element;
    neighbours = neighbours && job.dst_col_bytes == element;
    // A vector is stored past the caches only where it is aligned, in every row.
    constexpr std::int64_t kLine = 64;
    job.stream = ShouldStream(rows * job.hidden * element) && job.dst_row_bytes % kLine == 0 &&
                 reinterpret_cast<std::uintptr_t>(job.dst) % kLine == 0;
  }
  const RowKernels::SpreadDot run =
      neighbours ? kernels.spread_dot(src.dtype())
                 : RowKernels::OfDType(src.dtype(), SpreadDotAnyFloat32, SpreadDotAnyFloat16,
                                       SpreadDotAnyBFloat16);
  // By tokens alone: a dot product has one order, over all columns.
  const std::int64_t bytes =
      (index.num_tokens + rows) * job.hidden * element * (args.dots != nullptr ? 2 : 1);
  const int parts = TaskCount(*context.pool, index.num_tokens, bytes, kTasksPerThread);
  context.pool->Run(parts, [&](int part) {
    const Range tokens = CutRange(index.num_tokens, parts, part);
    run(job, tokens.begin, tokens.end);
    kernels.flush_stream();
  });
}

void ZeroRows(const Context::Impl& context, std::int64_t begin, std::int64_t end,
              const TensorView& dst) {
  const RowKernels& kernels = RowKernelsFor(*context.isa);
  const std::int64_t element = ElementBytes(dst);
  const std::int64_t rows = std::max<std::int64_t>(end - begin, 0);
  const std::int64_t bytes = rows * dst.shape(1) * element;
  if (bytes == 0) return;
  const bool stream = ShouldStream(bytes);
  ForEachPart(context, rows, dst.shape(1), bytes,
              [&](std::int64_t row_begin, std::int64_t row_end, std::int64_t column_begin,
                  std::int64_t column_end) {
                for (std::int64_t row = begin + row_begin; row < begin + row_end; ++row) {
                  std::uint8_t* to = static_cast<std::uint8_t*>(dst.data()) +
                                     (row * dst.stride(0) + column_begin * dst.stride(1)) * element;
                  if (dst.stride(1) == 1) {
                    kernels.fill_zero(to, (column_end - column_begin) * element, stream);
                    continue;
                  }
                  for (std::int64_t i = column_begin; i < column_end;
                       ++i, to += dst.stride(1) * element) {
                    std::memset(to, 0, static_cast<std::size_t>(element));
                  }
                }
                kernels.flush_stream();
              });
}

}  // namespace moeperm
