// SPDX-License-Identifier: Apache-2.0
// reduce_rows; included once a target.
//
// Bytes: every row is read once, every token written once; the sums stay in registers. A tile of
// columns is summed over all rows of a token, then stored past the caches.
//
// The processor's own prefetcher follows a row, but cannot know where the next token's rows start:
// those are fetched in software while the current rows end. 16-bit rows are fetched in software
// throughout: widening takes four vector instructions a cache line where a float32 add takes one,
// so the processor sees too few loads ahead of itself to keep the memory busy. (Measured, 4096
// tokens of 8 routes, hidden 7168: bfloat16 gains a third on one thread; float32 loses a tenth.)
#include <array>

HWY_BEFORE_NAMESPACE();
namespace moeperm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Routes of a token the vector path takes; more go through ReduceAny.
inline constexpr int kMaxSources = 512;
// Bytes fetched ahead of the sum, over all rows of a token together: enough to cover the latency.
inline constexpr std::int64_t kPrefetchBytes = 6144;

struct Sources {
  std::array<const std::uint8_t*, kMaxSources> row;
  std::array<float, kMaxSources> weight;
  int count = 0;
  bool from_zero = false;
  bool too_many = false;
};

HWY_INLINE void FindSources(const ReduceJob& job, std::int64_t token, Sources* sources) {
  const std::int64_t begin = job.index.Begin(token);
  const std::int64_t end = job.index.End(token);
  sources->count = 0;
  sources->too_many = end - begin > kMaxSources;
  if (sources->too_many) return;
  sources->from_zero = job.from_zero;
  for (std::int64_t slot = begin; slot < end; ++slot) {
    const std::int32_t row = job.index.rows[slot];
    if (row >= 0 && row < job.num_rows && !(job.skip_zero_weights && job.weights[slot] == 0.0F)) {
      const auto at = static_cast<std::size_t>(sources->count++);
      sources->row[at] = job.src + row * job.src_row_bytes;
      if (job.weights != nullptr) sources->weight[at] = job.weights[slot];
      continue;
    }
    if (slot == begin) sources->from_zero = true;
    if (row >= job.num_rows && !job.skip_out_of_range) job.bad->Report(slot);
  }
}

template <class Rows>
HWY_INLINE const typename Rows::Element* At(const std::uint8_t* row, std::int64_t i) {
  return reinterpret_cast<const typename Rows::Element*>(row) + i;
}

// Source k's pair of vectors at `from`, weighted.
template <class Rows, Weighting kWeighting>
HWY_INLINE void LoadPair(const Sources& sources, std::size_t k, const typename Rows::Element* from,
                         VF& a, VF& b) {
  Rows::Load(from, a, b);
  if constexpr (kWeighting != Weighting::kNone) {
    const VF weight = hn::Set(DF(), sources.weight[k]);
    a = hn::Mul(a, weight);
    b = hn::Mul(b, weight);
  }
  if constexpr (kWeighting == Weighting::kRoundedToRow) {
    a = Rows::Round(a);
    b = Rows::Round(b);
  }
}

template <class Rows, Weighting kWeighting>
HWY_INLINE void AddPair(const Sources& sources, std::size_t k, const typename Rows::Element* from,
                        VF& a, VF& b) {
  const VF zero = hn::Zero(DF());
  VF x = zero;
  VF y = zero;
  LoadPair<Rows, kWeighting>(sources, k, from, x, y);
  a = hn::Add(a, x);
  b = hn::Add(b, y);
}

// What to fetch while a tile is summed: a tile of each of these rows, from this byte on.
struct Ahead {
  const std::uint8_t* const* rows = nullptr;
  int count = 0;
  std::int64_t at = 0;
};

// Pairs of vectors in a tile.
inline constexpr int kTilePairs = 2;

template <class Rows>
HWY_INLINE void FetchTile(const std::uint8_t* row) {
  const auto bytes = static_cast<std::int64_t>(2 * std::size_t{kTilePairs} * hn::Lanes(DF()) *
                                               sizeof(typename Rows::Element));
  for (std::int64_t line = 0; line < bytes; line += 64) hwy::Prefetch(row + line);
}

// Sums kPairs pairs of columns from i on.
template <class Rows, Weighting kWeighting, int kPairs>
HWY_INLINE void SumPairs(const Sources& sources, std::int64_t i, const Ahead& ahead,
                         typename Rows::Element* to, bool stream) {
  const auto n = 2 * static_cast<std::int64_t>(hn::Lanes(DF()));
  VF a0 = hn::Zero(DF());
  VF a1 = a0;
  VF b0 = a0;
  VF b1 = a0;
  int k = 0;
  if (!sources.from_zero) {
    const auto* from = At<Rows>(sources.row[0], i);
    if (ahead.count > 0) FetchTile<Rows>(ahead.rows[0] + ahead.at);
    LoadPair<Rows, kWeighting>(sources, 0, from, a0, a1);
    if constexpr (kPairs == 2) LoadPair<Rows, kWeighting>(sources, 0, from + n, b0, b1);
    k = 1;
  }
  for (; k < sources.count; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const auto* from = At<Rows>(sources.row[at], i);
    if (k < ahead.count) FetchTile<Rows>(ahead.rows[k] + ahead.at);
    AddPair<Rows, kWeighting>(sources, at, from, a0, a1);
    if constexpr (kPairs == 2) AddPair<Rows, kWeighting>(sources, at, from + n, b0, b1);
  }
  Rows::Store(a0, a1, to + i, stream);
  if constexpr (kPairs == 2) Rows::Store(b0, b1, to + i + n, stream);
}

// The sum of a token's rows into dst; `hidden` is at least one pair.
template <class Rows, Weighting kWeighting, bool kStream>
HWY_INLINE void SumSources(const Sources& sources, const Sources& next, std::uint8_t* dst,
                           std::int64_t hidden) {
  using Element = typename Rows::Element;
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(Element));
  const auto pair = 2 * static_cast<std::int64_t>(hn::Lanes(DF()));
  const auto vector_bytes = static_cast<std::uintptr_t>(hn::Lanes(D8()));
  auto* to = reinterpret_cast<Element*>(dst);
  std::int64_t i = 0;
  if constexpr (kStream) {
    const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(dst) % vector_bytes;
    if (past != 0) {  // up to the first aligned address; what follows overlaps
      SumPairs<Rows, kWeighting, 1>(sources, 0, {}, to, false);
      i = static_cast<std::int64_t>(vector_bytes - past) / kSize;
    }
  }
  const std::int64_t row_bytes = hidden * kSize;
  const std::int64_t distance =
      std::min(std::max<std::int64_t>(kPrefetchBytes / sources.count, 512), row_bytes);
  const std::int64_t tile = kTilePairs * pair;
  for (; i + tile <= hidden; i += tile) {
    const std::int64_t at = i * kSize + distance;
    Ahead ahead;
    if (at >= row_bytes) {
      ahead = {next.row.data(), next.count, at - row_bytes};
    } else if (kSize == 2) {
      ahead = {sources.row.data(), sources.count, at};
    }
    SumPairs<Rows, kWeighting, kTilePairs>(sources, i, ahead, to, kStream);
  }
  for (; i + pair <= hidden; i += pair) SumPairs<Rows, kWeighting, 1>(sources, i, {}, to, kStream);
  if (i < hidden) SumPairs<Rows, kWeighting, 1>(sources, hidden - pair, {}, to, false);
}

// Finds the sources of the first token from *token on that has any, and stores +0 for those that
// have none. *token is `end` where there is none left.
template <bool kStream>
HWY_INLINE void FindNext(const ReduceJob& job, std::int64_t bytes, std::int64_t end,
                         std::int64_t* token, Sources* sources) {
  for (sources->count = 0; *token < end; ++*token) {
    FindSources(job, *token, sources);
    if (sources->count > 0 || sources->too_many) return;
    FillZero(job.dst + *token * job.dst_row_bytes, bytes, kStream);
  }
}

template <class Rows, Weighting kWeighting, bool kStream>
void ReduceRange(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end) {
  const auto bytes = job.hidden * static_cast<std::int64_t>(sizeof(typename Rows::Element));
  std::array<Sources, 2> both;
  Sources* sources = both.data();
  Sources* next = both.data() + 1;
  std::int64_t token = token_begin;
  FindNext<kStream>(job, bytes, token_end, &token, sources);
  while (token < token_end) {
    std::int64_t next_token = token + 1;
    FindNext<kStream>(job, bytes, token_end, &next_token, next);
    std::uint8_t* dst = job.dst + token * job.dst_row_bytes;
    if (sources->too_many) {
      Rows::kAny(job, token, token + 1);
    } else if (kWeighting == Weighting::kNone && sources->count == 1 && !sources->from_zero) {
      // Exact in every bit pattern.
      if constexpr (kStream) {
        CopyStreaming(dst, sources->row[0], bytes, next->count > 0 ? next->row[0] : nullptr);
      } else {
        Copy(dst, sources->row[0], bytes, false);
      }
    } else {
      SumSources<Rows, kWeighting, kStream>(*sources, *next, dst, job.hidden);
    }
    token = next_token;
    std::swap(sources, next);
  }
}

template <class Rows, Weighting kWeighting>
void ReduceWeighted(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end) {
  if (job.stream) {
    ReduceRange<Rows, kWeighting, true>(job, token_begin, token_end);
  } else {
    ReduceRange<Rows, kWeighting, false>(job, token_begin, token_end);
  }
}

template <class Rows>
void Reduce(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(typename Rows::Element));
  if (job.src_col_bytes != kSize || job.dst_col_bytes != kSize ||
      job.hidden < 2 * static_cast<std::int64_t>(hn::Lanes(DF()))) {
    Rows::kAny(job, token_begin, token_end);
  } else if (job.weighting == Weighting::kNone) {
    ReduceWeighted<Rows, Weighting::kNone>(job, token_begin, token_end);
  } else if (job.weighting == Weighting::kProduct) {
    ReduceWeighted<Rows, Weighting::kProduct>(job, token_begin, token_end);
  } else {
    ReduceWeighted<Rows, Weighting::kRoundedToRow>(job, token_begin, token_end);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace moeperm
HWY_AFTER_NAMESPACE();
