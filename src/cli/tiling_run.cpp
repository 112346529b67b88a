// SPDX-License-Identifier: Apache-2.0
#include "cli/tiling_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "bench/buffer.hpp"
#include "bench/synthetic.hpp"
#include "cann/model/model.hpp"
#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/replay_inputs.hpp"
#include "io/error.hpp"

namespace moeperm::cli {
namespace {

namespace host = cann::host;
namespace model = cann::model;
using bench::Buffer;
using synthetic::Stream;

constexpr std::string_view kGrad = "moe_token_permute_with_routing_map_grad";

DType FloatOrThrow(const host::TensorDesc& tensor, std::string_view name) {
  switch (tensor.dtype) {
    case host::DType::kFloat32:
      return DType::kFloat32;
    case host::DType::kFloat16:
      return DType::kFloat16;
    case host::DType::kBFloat16:
      return DType::kBFloat16;
    default:
      io::Fail("--run: {} is {}, which no kernel moves", name, Name(tensor.dtype));
  }
}

host::DType HostType(DType dtype) {
  if (dtype == DType::kFloat16) return host::DType::kFloat16;
  return dtype == DType::kBFloat16 ? host::DType::kBFloat16 : host::DType::kFloat32;
}

std::int64_t Bytes(std::int64_t rows, std::int64_t cols, std::size_t element) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(rows, cols, &bytes) ||
      __builtin_mul_overflow(bytes, static_cast<std::int64_t>(element), &bytes)) {
    io::Fail("--run: [{}, {}] elements of {} bytes are beyond any memory", rows, cols, element);
  }
  return bytes;
}

model::Input In(const Buffer& buffer) {
  return {buffer.data(), static_cast<std::int64_t>(buffer.bytes().size())};
}
model::Output Out(const Buffer& buffer) {
  return {buffer.data(), static_cast<std::int64_t>(buffer.bytes().size()), nullptr};
}
model::Input In(const std::vector<std::int32_t>& values) {
  return {values.data(), static_cast<std::int64_t>(values.size() * sizeof(std::int32_t))};
}

std::int64_t IntAttr(const host::Problem& problem, std::size_t i) {
  const auto* const value = std::get_if<std::int64_t>(&problem.attrs[i].value());
  if (value == nullptr || *value <= 0 || *value > kMaxCount) {
    io::Fail("--run: attribute {} must be 1 to {}", i, kMaxCount);
  }
  return *value;
}

Json CoreJson(const model::CoreReport& core) {
  return {{"units", core.units},
          {"copies_in", core.copies_in},
          {"bytes_in", core.bytes_in},
          {"copies_out", core.copies_out},
          {"bytes_out", core.bytes_out},
          {"vector_ops", core.vector_ops},
          {"vector_elements", core.vector_elements},
          {"ub_peak", core.ub_peak}};
}

Json KernelJson(std::string_view name, const host::Tiling& tiling, const model::Report& report,
                std::int64_t floor_bytes, std::optional<bool> equal) {
  const model::CoreReport total = report.Total();
  Json json = {{"kernel", name},
               {"tiling_key", tiling.key},
               {"block_dim", tiling.block_dim},
               {"idle", report.idle.empty() ? Json(nullptr) : Json(report.idle)},
               {"ub_bytes", report.ub_budget},
               {"ub_peak", total.ub_peak},
               {"bytes", total.bytes_in + total.bytes_out},
               {"floor_bytes", floor_bytes},
               {"imbalance", report.Imbalance()},
               {"equal", equal ? Json(*equal) : Json(nullptr)},
               {"total", CoreJson(total)},
               {"cores", Json::array()}};
  for (const model::CoreReport& core : report.cores) json["cores"].push_back(CoreJson(core));
  return json;
}

// The gradient of the tokens, not padded or drop-and-pad, and in the latter mode of the probs.
class GradRun {
 public:
  GradRun(const TilingCase& made, std::uint64_t seed) : made_(made), seed_(seed) {
    const host::Problem& problem = made.problem;
    const host::TensorDesc& rows = problem.inputs[0].value();
    if (rows.shape.size() != 2) {
      io::Fail("--run: {} must have 2 dims, not {}", made.op->inputs[0].name, rows.shape.size());
    }
    rows_ = rows.shape[0];
    hidden_ = rows.shape[1];
    if (rows_ > kMaxCount) io::Fail("--run: {} rows are more than {}", rows_, kMaxCount);
    dtype_ = FloatOrThrow(rows, made.op->inputs[0].name);
    if (problem.inputs[1]) probs_ = FloatOrThrow(*problem.inputs[1], made.op->inputs[1].name);
    experts_ = IntAttr(problem, 0);
    tokens_ = IntAttr(problem, 1);
    padded_ = made.tiling.key == 1000;
    if (!padded_) probs_.reset();  // a copy by the map, no kernel of this operator
    CheckMemory();
  }

  Json Run() {
    x_ = Random(dtype_, Bytes(rows_, hidden_, SizeOf(dtype_)), Stream::kTokensGrad);
    if (probs_) y_ = Random(*probs_, Bytes(rows_, 1, SizeOf(*probs_)), Stream::kProbsGrad);
    dx_ = Buffer(x_bytes_out_);
    dy_ = Buffer(y_bytes_out_);
    indices_ = padded_ ? TokensOfRows() : RowsOfSlots();
    Json kernels = Json::array();
    const Progress progress("the model runs");
    if (!padded_) {
      kernels.push_back(Sums());
    } else {
      if (probs_) kernels.push_back(Probs());
      if (rows_ > 0 && hidden_ > 0) kernels.push_back(SortedSums());
    }
    return kernels;
  }

 private:
  void CheckMemory() {
    const std::int64_t in = Bytes(rows_, hidden_, SizeOf(dtype_));
    const std::int64_t out = Bytes(tokens_, hidden_, SizeOf(dtype_));
    const std::int64_t probs = probs_ ? Bytes(tokens_, experts_, SizeOf(*probs_)) : 0;
    x_bytes_out_ = static_cast<std::size_t>(out);
    y_bytes_out_ = static_cast<std::size_t>(probs);
    const double needed = static_cast<double>(in) + 2.0 * static_cast<double>(out) +
                          2.0 * static_cast<double>(probs) + 24.0 * static_cast<double>(rows_);
    const std::uint64_t available = AvailableMemory();
    if (needed > 0.9 * static_cast<double>(available)) {
      io::Fail("--run needs {} of memory, {} are free",
               FormatBytes(static_cast<std::uint64_t>(std::min(needed, 0x1p63))),
               FormatBytes(available));
    }
  }

  Buffer Random(DType dtype, std::int64_t bytes, Stream stream) const {
    Buffer buffer(static_cast<std::size_t>(bytes));
    synthetic::Fill(dtype, synthetic::Values::kSigned, synthetic::Key(seed_, stream), 0,
                    buffer.bytes());
    return buffer;
  }

  // Every row for one slot, in random order.
  std::vector<std::int32_t> RowsOfSlots() const {
    std::vector<std::int32_t> slots(static_cast<std::size_t>(rows_));
    std::iota(slots.begin(), slots.end(), 0);
    synthetic::Generator random(synthetic::Key(seed_, Stream::kRoutes));
    for (std::size_t i = slots.size(); i > 1; --i) std::swap(slots[i - 1], slots[random.Below(i)]);
    return slots;
  }

  // An expert's rows have distinct tokens while there are enough: it takes every step-th one from
  // a random place on, and as many as it has rows.
  std::vector<std::int32_t> TokensOfRows() const {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows_));
    const std::int64_t capacity = std::max<std::int64_t>(rows_ / experts_, 1);
    const std::int64_t step = std::max<std::int64_t>(tokens_ / capacity, 1);
    synthetic::Generator random(synthetic::Key(seed_, Stream::kRoutes));
    std::int64_t first = 0;
    for (std::int64_t row = 0; row < rows_; ++row) {
      if (row % capacity == 0) {
        first = static_cast<std::int64_t>(random.Below(static_cast<std::uint64_t>(tokens_)));
      }
      tokens[static_cast<std::size_t>(row)] =
          static_cast<std::int32_t>((first + row % capacity * step) % tokens_);
    }
    return tokens;
  }

  model::PermuteGradBuffers Buffers() const {
    model::PermuteGradBuffers buffers;
    buffers.rows = In(x_);
    buffers.probs = In(y_);
    buffers.sorted_indices = In(indices_);
    buffers.tokens_grad = Out(dx_);
    buffers.probs_grad = Out(dy_);
    return buffers;
  }

  Json Sums() {
    model::Report report;
    ThrowUnlessOk(RunPermuteGrad(made_.tiling, HostType(dtype_), made_.platform.ub_bytes, Buffers(),
                                 &report));
    const bool runs = report.idle.empty() && !report.cores.empty();
    const auto element = static_cast<std::int64_t>(SizeOf(dtype_));
    const std::int64_t floor = runs ? 4 * rows_ + (rows_ + tokens_) * hidden_ * element : 0;
    return KernelJson("sums of the rows of a token", made_.tiling, report, floor,
                      runs ? std::optional(TokensEqual()) : std::nullopt);
  }

  Json Probs() {
    model::Report report;
    ThrowUnlessOk(RunPermuteGrad(made_.tiling, HostType(*probs_), made_.platform.ub_bytes,
                                 Buffers(), &report));
    const std::int64_t rows = rows_ / experts_ * experts_;
    const auto element = static_cast<std::int64_t>(SizeOf(*probs_));
    std::optional<bool> equal;
    // Rows that are no multiple: the library refuses what this kernel leaves out.
    if (rows == rows_) equal = ProbsEqual();
    return KernelJson("probs", made_.tiling, report, rows * (4 + 2 * element), equal);
  }

  Json SortedSums() {
    host::Tiling tiling;
    ThrowUnlessOk(model::IndexAddTiling({tokens_, rows_, hidden_}, HostType(dtype_), made_.platform,
                                        &tiling));
    const model::SortedIndices sorted = model::SortIndices(indices_);
    model::IndexAddBuffers buffers;
    buffers.value = In(x_);
    buffers.sorted_indices = In(sorted.values);
    buffers.positions = In(sorted.positions);
    buffers.var = Out(dx_);
    model::Report report;
    ThrowUnlessOk(RunIndexAdd(tiling, HostType(dtype_), made_.platform.ub_bytes, buffers, &report));
    std::int64_t distinct = 0;
    for (std::size_t i = 0; i < sorted.values.size(); ++i) {
      distinct += i == 0 || sorted.values[i] != sorted.values[i - 1] ? 1 : 0;
    }
    const auto element = static_cast<std::int64_t>(SizeOf(dtype_));
    const bool runs = report.idle.empty();
    const std::int64_t floor = runs ? 8 * rows_ + (rows_ + distinct) * hidden_ * element : 0;
    Json json = KernelJson("sorted sums of the rows of a token", tiling, report, floor,
                           runs ? std::optional(TokensEqual()) : std::nullopt);
    for (const host::TilingField& field : tiling.fields) {
      json["fields"].push_back({{"name", field.name}, {"value", field.value}});
    }
    return json;
  }

  [[nodiscard]] PermuteWithRoutingMapGradArgs Args() const {
    PermuteWithRoutingMapGradArgs args;
    args.sorted_indices =
        ConstTensorView(indices_.data(), {static_cast<std::int64_t>(indices_.size())});
    args.num_tokens = tokens_;
    args.num_experts = experts_;
    args.drop_and_pad = padded_;
    return args;
  }
  [[nodiscard]] bool TokensEqual() const {
    const Buffer expected(x_bytes_out_);
    PermuteWithRoutingMapGradArgs args = Args();
    args.permuted_tokens_grad = ConstTensorView(x_.data(), dtype_, std::array{rows_, hidden_});
    args.tokens_grad = TensorView(expected.data(), dtype_, std::array{tokens_, hidden_});
    ThrowUnlessOk(PermuteWithRoutingMapGrad(args));
    return std::ranges::equal(expected.bytes(), dx_.bytes());
  }
  [[nodiscard]] bool ProbsEqual() const {
    const Buffer expected(y_bytes_out_);
    PermuteWithRoutingMapGradArgs args = Args();
    args.permuted_probs_grad = ConstTensorView(y_.data(), *probs_, std::array{rows_});
    args.probs_grad = TensorView(expected.data(), *probs_, std::array{tokens_, experts_});
    ThrowUnlessOk(PermuteWithRoutingMapGrad(args));
    return std::ranges::equal(expected.bytes(), dy_.bytes());
  }

  const TilingCase& made_;
  std::uint64_t seed_;
  std::int64_t rows_ = 0;
  std::int64_t hidden_ = 0;
  std::int64_t tokens_ = 0;
  std::int64_t experts_ = 0;
  bool padded_ = false;
  DType dtype_ = DType::kFloat32;
  std::optional<DType> probs_;
  std::size_t x_bytes_out_ = 0;
  std::size_t y_bytes_out_ = 0;
  Buffer x_;
  Buffer y_;
  Buffer dx_;
  Buffer dy_;
  std::vector<std::int32_t> indices_;
};

// Neighbours that did the same share a row: "0 - 15".
std::string CoresText(const Json& kernel) {
  TextTable table({"core", ">units", ">copies in", ">bytes in", ">copies out", ">bytes out",
                   ">vector ops", ">ub peak"});
  const auto row = [&](std::string name, const Json& core) {
    std::vector<std::string> cells = {std::move(name)};
    for (const char* const key :
         {"units", "copies_in", "bytes_in", "copies_out", "bytes_out", "vector_ops", "ub_peak"}) {
      cells.push_back(FormatCount(core[key].get<std::int64_t>()));
    }
    table.AddRow(std::move(cells));
  };
  const Json& cores = kernel["cores"];
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t end = i + 1;
    while (end < cores.size() && cores[end] == cores[i]) ++end;
    row(end == i + 1 ? fmt::format("{}", i) : fmt::format("{} - {}", i, end - 1), cores[i]);
    i = end;
  }
  row("all", kernel["total"]);
  return table.Text();
}

double Ratio(const Json& over, const Json& under) {
  return over.get<double>() / std::max(under.get<double>(), 1.0);
}

}  // namespace

Json RunTiling(const TilingCase& tiling_case, std::uint64_t seed) {
  if (tiling_case.op->name != kGrad) {
    io::Fail("--run: there is no model of {}, only of {}", tiling_case.op->name, kGrad);
  }
  return GradRun(tiling_case, seed).Run();
}

bool RunIsRight(const Json& kernels) {
  return std::ranges::none_of(kernels, [](const Json& kernel) { return kernel["equal"] == false; });
}

std::string RunText(const Json& kernels) {
  std::string text;
  for (const Json& kernel : kernels) {
    text += fmt::format("\nrun: {} (key {}, {} cores)\n", kernel["kernel"].get<std::string>(),
                        kernel["tiling_key"].get<std::int64_t>(),
                        kernel["block_dim"].get<std::int64_t>());
    if (!kernel["idle"].is_null()) {
      text += "nothing is written: " + kernel["idle"].get<std::string>() + '\n';
      continue;
    }
    text += CoresText(kernel);
    text += fmt::format("unified buffer  {} of {} bytes at most ({:.1f} %)\n",
                        FormatCount(kernel["ub_peak"]), FormatCount(kernel["ub_bytes"]),
                        100 * Ratio(kernel["ub_peak"], kernel["ub_bytes"]));
    text +=
        fmt::format("traffic         {} bytes, {:.3f} times the floor\n",
                    FormatCount(kernel["bytes"]), Ratio(kernel["bytes"], kernel["floor_bytes"]));
    text += fmt::format("balance         the busiest core has {:.3f} times the mean\n",
                        kernel["imbalance"].get<double>());
    if (kernel["equal"].is_null()) continue;
    text += fmt::format("result          {} the library's, bit for bit\n",
                        kernel["equal"].get<bool>() ? "equals" : "DIFFERS from");
  }
  return text.empty() ? "\nrun: there is nothing to do\n" : text;
}

}  // namespace moeperm::cli
