// SPDX-License-Identifier: Apache-2.0
// One shape, ready to be measured: the memory of an operator's inputs and outputs, the call, and
// the bytes it must move. Shared by `moeperm bench` and the Google Benchmark program.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bench/buffer.hpp"
#include "bench/cache.hpp"   // IWYU pragma: export
#include "bench/roof.hpp"    // IWYU pragma: export
#include "bench/shapes.hpp"  // IWYU pragma: export
#include "bench/synthetic.hpp"
#include "bench/timing.hpp"  // IWYU pragma: export
#include "moeperm/moeperm.hpp"

namespace moeperm::bench {

enum class Op {
  kForward,
  kTokensGrad,
  kProbsGrad,
  kRowMap,
  kUnpermute,      // weighted, as kForward laid the rows out
  kUnpermuteGrad,  // both gradients
  kIndexPermute,   // not padded only, without probs
  kSortChunks      // from eight processes' order to the experts'
};

struct OpName {
  Op op;
  std::string_view name;
};
inline constexpr std::array kOps = {OpName{Op::kForward, "forward"},
                                    OpName{Op::kTokensGrad, "tokens-grad"},
                                    OpName{Op::kProbsGrad, "probs-grad"},
                                    OpName{Op::kRowMap, "row-map"},
                                    OpName{Op::kUnpermute, "unpermute"},
                                    OpName{Op::kUnpermuteGrad, "unpermute-grad"},
                                    OpName{Op::kIndexPermute, "index-permute"},
                                    OpName{Op::kSortChunks, "sort-chunks"}};

// Each input read once, each output written once.
struct Traffic {
  std::uint64_t read = 0;
  std::uint64_t written = 0;

  [[nodiscard]] double Floor(const Roofs& roofs) const {
    return static_cast<double>(read) / roofs.read + static_cast<double>(written) / roofs.write;
  }
};

// What to allocate; what a Shape says, or a file.
struct Sizes {
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t rows = 0;
  bool drop_and_pad = false;
  DType dtype = DType::kFloat32;
  DType probs_dtype = DType::kFloat32;

  Sizes() = default;
  explicit Sizes(const Shape& shape)
      : tokens(shape.tokens),
        hidden(shape.hidden),
        experts(shape.experts),
        top_k(shape.top_k),
        rows(shape.rows()),
        drop_and_pad(shape.drop_and_pad()),
        dtype(shape.dtype),
        probs_dtype(shape.probs_dtype) {}
};

class Workload {
 public:
  // All memory touched, inputs all 0 (without a route) until filled.
  explicit Workload(const Sizes& sizes)
      : sizes_(sizes),
        tokens_(Allocate(sizes.dtype, sizes.tokens, sizes.hidden)),
        routing_map_(Allocate(DType::kBool, sizes.tokens, sizes.experts)),
        probs_(Allocate(sizes.probs_dtype, sizes.tokens, sizes.experts)),
        permuted_tokens_(Allocate(sizes.dtype, sizes.rows, sizes.hidden)),
        permuted_probs_(Allocate(sizes.probs_dtype, sizes.rows, 1)),
        sorted_indices_(Allocate(DType::kInt32, slots(), 1)),
        indices_(Allocate(DType::kInt32, sizes.drop_and_pad ? 0 : slots(), 1)),
        slot_probs_(Allocate(sizes.probs_dtype, slots(), 1)),
        tokens_grad_(Allocate(sizes.dtype, sizes.tokens, sizes.hidden)),
        probs_grad_(Allocate(sizes.probs_dtype, sizes.tokens, sizes.experts)) {}

  // Uniform routing and values of seed 0.
  explicit Workload(const Shape& shape) : Workload(Sizes(shape)) {
    using synthetic::Key;
    using synthetic::Stream;
    synthetic::RoutingOptions routing;
    routing.tokens = shape.tokens;
    routing.experts = shape.experts;
    routing.top_k = shape.top_k;
    const std::vector<std::uint8_t> map = synthetic::RoutingMap(routing);
    std::ranges::copy(std::as_bytes(std::span(map)), routing_map().begin());
    synthetic::Fill(shape.dtype, synthetic::Values::kSigned, Key(0, Stream::kTokens), 0, tokens());
    synthetic::Fill(shape.probs_dtype, synthetic::Values::kUnit, Key(0, Stream::kProbs), 0,
                    probs());
  }

  // To fill from elsewhere.
  [[nodiscard]] std::span<std::byte> tokens() const { return tokens_.bytes(); }
  [[nodiscard]] std::span<std::byte> routing_map() const { return routing_map_.bytes(); }
  [[nodiscard]] std::span<std::byte> probs() const { return probs_.bytes(); }

  // Runs the forward once, so that the gradients find indices, and counts what must move. Call it
  // before Run(), after the inputs are filled.
  [[nodiscard]] Status Prepare(const Context& context) {
    RowMapOptions options;
    options.drop_and_pad = sizes_.drop_and_pad;
    options.capacity = sizes_.drop_and_pad ? sizes_.rows / sizes_.experts : 0;
    if (!sizes_.drop_and_pad) options.num_rows = sizes_.rows;
    RowMap map;
    if (Status status = RowMap::FromRoutingMap(RoutingMapView(), options, &map, context);
        !status.ok()) {
      return status;
    }
    std::vector<bool> used(static_cast<std::size_t>(sizes_.tokens));
    for (const std::int32_t token : map.row_tokens()) {
      if (token >= 0) used[static_cast<std::size_t>(token)] = true;
    }
    used_tokens_ = static_cast<std::uint64_t>(std::count(used.begin(), used.end(), true));
    row_map_bytes_ = map.token_offsets().size_bytes() + map.slot_rows().size_bytes() +
                     map.slot_experts().size_bytes() + map.row_tokens().size_bytes() +
                     map.tokens_per_expert().size_bytes() + map.expert_offsets().size_bytes();
    if (!sizes_.drop_and_pad) FillIndices();
    FillChunks();
    return Run(Op::kForward, context);
  }

  // Whether the shape has this operation.
  [[nodiscard]] bool Has(Op op) const { return op != Op::kIndexPermute || !sizes_.drop_and_pad; }

  [[nodiscard]] Status Run(Op op, const Context& context) {
    switch (op) {
      case Op::kForward: {
        PermuteWithRoutingMapArgs args;
        args.tokens = View<true>(tokens_, sizes_.dtype, sizes_.tokens, sizes_.hidden);
        args.routing_map = RoutingMapView();
        args.probs = View<true>(probs_, sizes_.probs_dtype, sizes_.tokens, sizes_.experts);
        args.num_out_tokens = sizes_.rows;
        args.top_k = sizes_.top_k;
        args.drop_and_pad = sizes_.drop_and_pad;
        args.permuted_tokens =
            View<false>(permuted_tokens_, sizes_.dtype, sizes_.rows, sizes_.hidden);
        args.permuted_probs = Vector<false>(permuted_probs_, sizes_.probs_dtype, sizes_.rows);
        args.sorted_indices = Vector<false>(sorted_indices_, DType::kInt32, slots());
        return PermuteWithRoutingMap(args, context);
      }
      case Op::kTokensGrad: {
        PermuteWithRoutingMapGradArgs args = GradArgs();
        args.permuted_tokens_grad =
            View<true>(permuted_tokens_, sizes_.dtype, sizes_.rows, sizes_.hidden);
        args.tokens_grad = View<false>(tokens_grad_, sizes_.dtype, sizes_.tokens, sizes_.hidden);
        return PermuteWithRoutingMapGrad(args, context);
      }
      case Op::kProbsGrad: {
        PermuteWithRoutingMapGradArgs args = GradArgs();
        args.permuted_probs_grad = Vector<true>(permuted_probs_, sizes_.probs_dtype, sizes_.rows);
        if (!sizes_.drop_and_pad) args.routing_map = RoutingMapView();
        args.probs_grad =
            View<false>(probs_grad_, sizes_.probs_dtype, sizes_.tokens, sizes_.experts);
        return PermuteWithRoutingMapGrad(args, context);
      }
      case Op::kUnpermute: {
        const auto call = [&](auto args, auto operation) {
          args.permuted_tokens =
              View<true>(permuted_tokens_, sizes_.dtype, sizes_.rows, sizes_.hidden);
          args.tokens = View<false>(tokens_grad_, sizes_.dtype, sizes_.tokens, sizes_.hidden);
          return operation(args, context);
        };
        return sizes_.drop_and_pad
                   ? call(PaddedBack<UnpermuteWithRoutingMapArgs>(), UnpermuteWithRoutingMap)
                   : call(Back<UnpermuteArgs>(), Unpermute);
      }
      case Op::kUnpermuteGrad: {
        AllocateRows();
        const auto call = [&](auto args, auto operation) {
          args.tokens_grad = View<true>(tokens_, sizes_.dtype, sizes_.tokens, sizes_.hidden);
          args.permuted_tokens =
              View<true>(permuted_tokens_, sizes_.dtype, sizes_.rows, sizes_.hidden);
          args.permuted_tokens_grad =
              View<false>(permuted_tokens_grad_, sizes_.dtype, sizes_.rows, sizes_.hidden);
          args.probs_grad = View<false>(probs_grad_, sizes_.probs_dtype, sizes_.tokens,
                                        sizes_.drop_and_pad ? sizes_.experts : sizes_.top_k);
          return operation(args, context);
        };
        return sizes_.drop_and_pad ? call(PaddedBack<UnpermuteWithRoutingMapGradArgs>(),
                                          UnpermuteWithRoutingMapGrad)
                                   : call(Back<UnpermuteGradArgs>(), UnpermuteGrad);
      }
      case Op::kIndexPermute: {
        PermuteArgs args;
        args.tokens = View<true>(tokens_, sizes_.dtype, sizes_.tokens, sizes_.hidden);
        args.indices = View<true>(indices_, DType::kInt32, sizes_.tokens, sizes_.top_k);
        args.num_experts = sizes_.experts;
        args.num_out_tokens = sizes_.rows;
        args.permuted_tokens =
            View<false>(permuted_tokens_, sizes_.dtype, sizes_.rows, sizes_.hidden);
        args.sorted_indices = Vector<false>(sorted_indices_, DType::kInt32, slots());
        return Permute(args, context);
      }
      case Op::kSortChunks: {
        AllocateRows();
        SortChunksArgs args;
        args.rows = View<true>(permuted_tokens_, sizes_.dtype, sizes_.rows, sizes_.hidden);
        args.split_sizes = ConstTensorView(chunk_sizes_.data(), {num_chunks()});
        args.order = ConstTensorView(chunk_order_.data(), {num_chunks()});
        args.sorted_rows =
            View<false>(permuted_tokens_grad_, sizes_.dtype, sizes_.rows, sizes_.hidden);
        return SortChunks(args, context);
      }
      case Op::kRowMap:
        break;
    }
    RowMapOptions options;
    options.drop_and_pad = sizes_.drop_and_pad;
    options.capacity = sizes_.drop_and_pad ? sizes_.rows / sizes_.experts : 0;
    RowMap map;
    return RowMap::FromRoutingMap(RoutingMapView(), options, &map, context);
  }

  // Tokens that no row holds need not be read.
  [[nodiscard]] Traffic Bytes(Op op) const {
    const std::uint64_t wide = static_cast<std::uint64_t>(sizes_.hidden) * SizeOf(sizes_.dtype);
    const std::uint64_t used = used_tokens_ * wide;
    switch (op) {
      case Op::kForward:
        return {used + Size(routing_map_) + Size(probs_),
                Size(permuted_tokens_) + Size(permuted_probs_) + Size(sorted_indices_)};
      case Op::kTokensGrad:
        return {Size(permuted_tokens_) + Size(sorted_indices_), Size(tokens_grad_)};
      case Op::kProbsGrad:
        return {Size(permuted_probs_) + Size(sizes_.drop_and_pad ? sorted_indices_ : routing_map_),
                Size(probs_grad_)};
      case Op::kUnpermute:
        return {Size(permuted_tokens_) + Size(sorted_indices_) + Size(slot_probs_),
                Size(tokens_grad_)};
      case Op::kUnpermuteGrad:
        return {used + Size(permuted_tokens_) + Size(sorted_indices_) + Size(slot_probs_),
                Size(permuted_tokens_) + Size(sizes_.drop_and_pad ? probs_grad_ : slot_probs_)};
      case Op::kIndexPermute:
        return {used + Size(indices_), Size(permuted_tokens_) + Size(sorted_indices_)};
      case Op::kSortChunks:
        return {Size(permuted_tokens_), Size(permuted_tokens_)};
      case Op::kRowMap:
        break;
    }
    return {Size(routing_map_), row_map_bytes_};
  }

 private:
  static Buffer Allocate(DType dtype, std::int64_t rows, std::int64_t cols) {
    return Buffer(SizeOf(dtype) * static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols));
  }
  static std::uint64_t Size(const Buffer& buffer) { return buffer.bytes().size(); }

  template <bool kConst>
  static BasicTensorView<kConst> View(const Buffer& buffer, DType dtype, std::int64_t rows,
                                      std::int64_t cols) {
    return BasicTensorView<kConst>(buffer.data(), dtype, std::array{rows, cols});
  }
  template <bool kConst>
  static BasicTensorView<kConst> Vector(const Buffer& buffer, DType dtype, std::int64_t size) {
    return BasicTensorView<kConst>(buffer.data(), dtype, std::array{size});
  }

  [[nodiscard]] std::int64_t slots() const {
    return sizes_.drop_and_pad ? sizes_.rows : sizes_.tokens * sizes_.top_k;
  }
  [[nodiscard]] ConstTensorView RoutingMapView() const {
    return View<true>(routing_map_, DType::kBool, sizes_.tokens, sizes_.experts);
  }
  [[nodiscard]] PermuteWithRoutingMapGradArgs GradArgs() const {
    PermuteWithRoutingMapGradArgs args;
    args.sorted_indices = Vector<true>(sorted_indices_, DType::kInt32, slots());
    args.num_tokens = sizes_.tokens;
    args.num_experts = sizes_.experts;
    args.drop_and_pad = sizes_.drop_and_pad;
    return args;
  }

  template <class Args>
  [[nodiscard]] Args Back() const {
    Args args;
    args.sorted_indices = Vector<true>(sorted_indices_, DType::kInt32, slots());
    args.probs = View<true>(slot_probs_, sizes_.probs_dtype, sizes_.tokens, sizes_.top_k);
    return args;
  }
  template <class Args>
  [[nodiscard]] Args PaddedBack() const {
    Args args;
    args.sorted_indices = Vector<true>(sorted_indices_, DType::kInt32, slots());
    args.probs = View<true>(probs_, sizes_.probs_dtype, sizes_.tokens, sizes_.experts);
    args.drop_and_pad = true;
    return args;
  }

  void AllocateRows() {
    if (permuted_tokens_grad_.data() == nullptr) {
      permuted_tokens_grad_ = Allocate(sizes_.dtype, sizes_.rows, sizes_.hidden);
    }
  }

  [[nodiscard]] std::int64_t num_chunks() const { return kProcesses * sizes_.experts; }
  // Chunks of about equal size, process by process; wanted expert by expert.
  void FillChunks() {
    chunk_sizes_.clear();
    chunk_order_.clear();
    for (std::int64_t chunk = 0; chunk < num_chunks(); ++chunk) {
      chunk_sizes_.push_back(sizes_.rows * (chunk + 1) / num_chunks() -
                             sizes_.rows * chunk / num_chunks());
      chunk_order_.push_back(chunk % kProcesses * sizes_.experts + chunk / kProcesses);
    }
  }

  void FillIndices() {
    auto* const indices = reinterpret_cast<std::int32_t*>(indices_.data());
    const auto* const map = reinterpret_cast<const std::uint8_t*>(routing_map_.data());
    std::fill_n(indices, slots(), -1);
    for (std::int64_t t = 0; t < sizes_.tokens; ++t) {
      for (std::int64_t e = 0, k = 0; e < sizes_.experts && k < sizes_.top_k; ++e) {
        if (map[t * sizes_.experts + e] != 0) {
          indices[t * sizes_.top_k + k++] = static_cast<std::int32_t>(e);
        }
      }
    }
    synthetic::Fill(sizes_.probs_dtype, synthetic::Values::kUnit,
                    synthetic::Key(1, synthetic::Stream::kProbs), 0, slot_probs_.bytes());
  }

  Sizes sizes_;
  Buffer tokens_, routing_map_, probs_;
  // The forward's outputs, and the gradients' inputs.
  Buffer permuted_tokens_, permuted_probs_, sorted_indices_;
  // The experts of the map, and their probs, slot by slot.
  Buffer indices_, slot_probs_;
  Buffer tokens_grad_, probs_grad_;
  Buffer permuted_tokens_grad_;  // of kUnpermuteGrad and kSortChunks, where these are run
  static constexpr std::int64_t kProcesses = 8;
  std::vector<std::int64_t> chunk_sizes_, chunk_order_;
  std::uint64_t used_tokens_ = 0;
  std::uint64_t row_map_bytes_ = 0;
};

}  // namespace moeperm::bench
