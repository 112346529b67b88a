// SPDX-License-Identifier: Apache-2.0
// The sorted addition of rows: equal indices are added up by one core, in their sorted order, so
// that the result depends neither on the number of cores nor on chance.
#include <algorithm>
#include <numeric>
#include <optional>

#include "cann/model/core.hpp"
#include "cann/model/messages.hpp"
#include "cann/model/model.hpp"

namespace moeperm::cann::model {
namespace {

constexpr std::string_view kKernel = "inplace_index_add_with_sorted";
constexpr std::size_t kFields = 22;
constexpr std::int64_t kIndexBytes = 4;
constexpr std::int64_t kStagedIndices = 1536;
// Two lists of staged indices, and what the system keeps.
constexpr std::int64_t kReservedBytes = 2 * kStagedIndices * kIndexBytes + 1024;

std::int64_t KeyOf(host::DType dtype) {
  switch (dtype) {
    case host::DType::kFloat16:
      return 2;
    case host::DType::kBFloat16:
      return 3;
    case host::DType::kFloat32:
      return 6;
    default:
      throw Fault{UnknownDType(kKernel, dtype)};
  }
}

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : a / b + (a % b != 0 ? 1 : 0);
}

// Parts of `step` that `total` is cut into, the size of a part, and of the last one.
struct Cut {
  Cut(std::int64_t total, std::int64_t step)
      : count(CeilDiv(total, step)), size(std::min(total, step)), last(total - (count - 1) * size) {
    if (count == 0) last = 0;
  }
  std::int64_t count;
  std::int64_t size;
  std::int64_t last;
};

struct AddFields {
  explicit AddFields(std::span<const host::TilingField> f)
      : each(f[2].value),
        last(f[3].value),
        indices(f[8].value),
        row_elements(f[10].value),
        part(f[12].value),
        parts(f[13].value),
        last_part(f[14].value),
        var_rows(f[15].value),
        staged(std::min(kStagedIndices, std::max(f[17].value, f[20].value))) {}

  std::int64_t each;  // indices a core has
  std::int64_t last;  // ... and the last one
  std::int64_t indices;
  std::int64_t row_elements;
  std::int64_t part;  // elements of a row that are added at a time
  std::int64_t parts;
  std::int64_t last_part;
  std::int64_t var_rows;
  std::int64_t staged;  // indices that are copied in at once
};

class AddCore {
 public:
  AddCore(Core& core, const AddFields& fields, host::DType dtype, const Source& value,
          const Source& indices, const Source& positions, const Sink& var)
      : core_(core),
        fields_(fields),
        dtype_(dtype),
        element_(BytesOf(dtype)),
        converts_(dtype != host::DType::kFloat32),
        value_(value),
        indices_(indices),
        positions_(positions),
        var_(var),
        staged_indices_(core.Allocate("sorted indices", fields.staged * kIndexBytes)),
        staged_positions_(core.Allocate("positions", fields.staged * kIndexBytes)),
        in_(core, "the rows", 2, Product(fields.part, element_)),
        sum_(core.Allocate("the sum", Product(fields.part, 4))) {
    if (converts_) {
      out_ = core.Allocate("the result", Product(fields.part, element_));
      wide_ = core.Allocate("the widened row", Product(fields.part, 4));
    }
  }

  // Sums that begin among indices first .. end - 1. A sum may go on past them; what a core before
  // began is that core's.
  void Run(std::int64_t first, std::int64_t end) {
    std::int64_t i = first;
    if (first > 0) {
      const std::int64_t before = IndexAt(first - 1);
      while (i < end && IndexAt(i) == before) ++i;
    }
    while (i < end) {
      const std::int64_t row = IndexAt(i);
      if (row < 0 || row >= fields_.var_rows) {
        throw Fault{IndexOutOfRange(PositionAt(i), row, fields_.var_rows)};
      }
      std::int64_t run_end = i + 1;
      while (run_end < fields_.indices && IndexAt(run_end) == row) ++run_end;
      for (std::int64_t part = 0; part < fields_.parts; ++part) {
        AddPart(row, i, run_end, Product(part, fields_.part),
                part == fields_.parts - 1 ? fields_.last_part : fields_.part);
      }
      core_.Finished(run_end - i);
      i = run_end;
    }
  }

 private:
  void AddPart(std::int64_t row, std::int64_t first, std::int64_t end, std::int64_t at,
               std::int64_t count) {
    const std::int64_t bytes = Product(count, element_);
    Piece& start = converts_ ? *out_ : sum_;
    core_.CopyIn(start, var_, Offset(row, at), bytes);
    if (converts_) core_.Widen(sum_, start, dtype_, count);
    std::int64_t fetched = first;
    for (std::int64_t i = first; i < end; ++i) {
      for (; fetched < end && !in_.full(); ++fetched) {
        core_.CopyIn(in_.Next(), value_, Offset(PositionAt(fetched), at), bytes);
      }
      if (converts_) {
        core_.Widen(*wide_, in_.Front(), dtype_, count);
        core_.Accumulate(sum_, *wide_, count);
      } else {
        core_.Accumulate(sum_, in_.Front(), count);
      }
      in_.Pop();
    }
    if (converts_) core_.Narrow(*out_, sum_, dtype_, count);
    core_.CopyOut(var_, Offset(row, at), converts_ ? *out_ : sum_, bytes);
  }

  [[nodiscard]] std::int64_t Offset(std::int64_t row, std::int64_t at) const {
    return Product(Add(Product(row, fields_.row_elements), at), element_);
  }

  std::int64_t IndexAt(std::int64_t i) {
    Stage(i);
    return Core::Int32At(staged_indices_, i - staged_first_);
  }
  std::int64_t PositionAt(std::int64_t i) {
    Stage(i);
    return Core::Int32At(staged_positions_, i - staged_first_);
  }
  void Stage(std::int64_t i) {
    if (staged_count_ > 0 && i >= staged_first_ && i < staged_first_ + staged_count_) return;
    staged_first_ = i;
    staged_count_ = std::min(fields_.staged, fields_.indices - i);
    core_.CopyIn(staged_indices_, indices_, Product(i, kIndexBytes), staged_count_ * kIndexBytes);
    core_.CopyIn(staged_positions_, positions_, Product(i, kIndexBytes),
                 staged_count_ * kIndexBytes);
  }

  Core& core_;
  const AddFields& fields_;
  host::DType dtype_;
  std::int64_t element_;
  bool converts_;
  const Source& value_;
  const Source& indices_;
  const Source& positions_;
  const Sink& var_;
  Piece staged_indices_;
  Piece staged_positions_;
  std::int64_t staged_first_ = 0;
  std::int64_t staged_count_ = 0;
  InputQueue in_;
  Piece sum_;
  std::optional<Piece> out_;
  std::optional<Piece> wide_;
};

void MakeTiling(const IndexAddShape& shape, host::DType dtype, const host::Platform& platform,
                host::Tiling* tiling) {
  const std::int64_t element = BytesOf(dtype);
  const std::int64_t key = KeyOf(dtype);
  const auto positive = [](std::string_view name, std::int64_t value) {
    if (value <= 0) throw Fault{IndexAddEmpty(name, value)};
  };
  positive("vector cores", platform.vector_cores);
  positive("rows of var", shape.var_rows);
  positive("indices", shape.value_rows);
  positive("elements of a row", shape.row_elements);
  const std::int64_t n = shape.value_rows;
  const std::int64_t buffers = key == 6 ? 3 : 7;
  const std::int64_t usable = std::max(platform.ub_bytes, kReservedBytes) - kReservedBytes;
  const std::int64_t most = usable / buffers / 32 * 32 / element;
  const std::int64_t each = CeilDiv(n, std::min(n, platform.vector_cores));
  const std::int64_t used = CeilDiv(n, each);
  const std::int64_t last = n - each * (used - 1);
  const Cut row(shape.row_elements, most);
  const Cut rounds(each, kStagedIndices);
  const Cut last_rounds(last, kStagedIndices);
  tiling->key = key;
  tiling->block_dim = used;
  tiling->workspace_bytes = 0;
  tiling->fields = {
      {"usedCoreNum", used},
      {"enableAlpha", 0},
      {"eachIndexCount", each},
      {"lastIndexCount", last},
      {"batchCount", 1},
      {"eachBatchNum", 1},
      {"lastBatchNum", 1},
      {"inputCount", Product(shape.var_rows, shape.row_elements)},
      {"indicesCount", n},
      {"updatesCount", Product(n, shape.row_elements)},
      {"updatesOneTime", shape.row_elements},
      {"maxSize", most},
      {"eachNum", row.size},
      {"eachLoop", row.count},
      {"eachTail", row.last},
      {"varDimNum", shape.var_rows},
      {"eachUBIndexRound", rounds.count},
      {"eachUBIndexCount", rounds.size},
      {"eachUBIndexTail", rounds.last},
      {"lastUBIndexRound", last_rounds.count},
      {"lastUBIndexCount", last_rounds.size},
      {"lastUBIndexTail", last_rounds.last},
  };
}

}  // namespace

Status IndexAddTiling(const IndexAddShape& shape, host::DType dtype, const host::Platform& platform,
                      host::Tiling* tiling) noexcept {
  return Guarded([&] { MakeTiling(shape, dtype, platform, tiling); });
}

Status RunIndexAdd(const host::Tiling& tiling, host::DType dtype, std::int64_t ub_bytes,
                   const IndexAddBuffers& buffers, Report* report) noexcept {
  return Guarded([&] {
    StartReport(tiling.block_dim, ub_bytes, report);
    if (tiling.fields.size() != kFields) {
      throw Fault{WrongFields(kKernel, tiling.fields.size(), kFields)};
    }
    if (tiling.key != KeyOf(dtype)) throw Fault{UnknownKey(kKernel, tiling.key)};
    const AddFields fields(tiling.fields);
    if (fields.part <= 0 || fields.parts <= 0) {
      report->idle = NoRowPart(ub_bytes);
      return;
    }
    if (fields.staged <= 0) throw Fault{FieldOutOfRange("eachUBIndexCount", 0, "above 0")};
    const Source value{"value", buffers.value};
    const Source indices{"sorted_indices", buffers.sorted_indices};
    const Source positions{"positions", buffers.positions};
    const Sink var{"var", buffers.var};
    for (std::int64_t id = 0; id < tiling.block_dim; ++id) {
      const bool is_last = id == tiling.block_dim - 1;
      const std::int64_t first = Product(id, fields.each);
      Core core(id, ub_bytes, &report->cores[static_cast<std::size_t>(id)]);
      AddCore(core, fields, dtype, value, indices, positions, var)
          .Run(first, Add(first, is_last ? fields.last : fields.each));
    }
  });
}

SortedIndices SortIndices(std::span<const std::int32_t> indices) {
  SortedIndices sorted;
  sorted.positions.resize(indices.size());
  std::iota(sorted.positions.begin(), sorted.positions.end(), 0);
  std::ranges::stable_sort(sorted.positions, {}, [&](std::int32_t position) {
    return indices[static_cast<std::size_t>(position)];
  });
  sorted.values.reserve(indices.size());
  for (const std::int32_t position : sorted.positions) {
    sorted.values.push_back(indices[static_cast<std::size_t>(position)]);
  }
  return sorted;
}

}  // namespace moeperm::cann::model
