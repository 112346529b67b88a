// SPDX-License-Identifier: Apache-2.0
// reduce_rows; included once a target.
//
// Bytes: every row is read once, every token written once; the sums stay in registers. A tile of
// four vectors is summed over all rows of a token, then stored past the caches. The processor's own
// prefetcher follows a row but cannot know where the next token's rows start, so those are fetched
// in software while the current rows end.
#include <array>

HWY_BEFORE_NAMESPACE();
namespace moeperm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Routes of a token the vector path takes; more go through ReduceAny.
inline constexpr int kMaxSources = 512;
// How far ahead of the sum the rows of the next token are fetched.
inline constexpr std::int64_t kPrefetchBytes = 768;

struct Sources {
  std::array<const std::uint8_t*, kMaxSources> row;
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
    if (row >= 0 && row < job.num_rows) {
      sources->row[static_cast<std::size_t>(sources->count++)] = job.src + row * job.src_row_bytes;
      continue;
    }
    if (slot == begin) sources->from_zero = true;
    if (row >= 0 && !job.skip_out_of_range) job.bad->Report(slot);
  }
}

template <class Rows>
HWY_INLINE const typename Rows::Element* At(const std::uint8_t* row, std::int64_t i) {
  return reinterpret_cast<const typename Rows::Element*>(row) + i;
}

template <class Rows>
HWY_INLINE void AddPair(const typename Rows::Element* from, VF& a, VF& b) {
  const VF zero = hn::Zero(DF());
  VF x = zero;
  VF y = zero;
  Rows::Load(from, x, y);
  a = hn::Add(a, x);
  b = hn::Add(b, y);
}

// A tile of columns: 256 bytes of a row with 512-bit vectors, whatever the dtype. A smaller one
// visits each row too briefly for the processor's prefetcher to follow it.
template <class Rows>
inline constexpr std::int64_t kTilePairs = sizeof(typename Rows::Element) == 4 ? 2 : 4;

// Sums kPairs pairs of columns from i on. Named variables, not an array: vectors of some targets
// have no size.
template <class Rows, std::int64_t kPairs>
HWY_INLINE void SumPairs(const Sources& sources, std::int64_t i, typename Rows::Element* to,
                         bool stream) {
  const auto n = 2 * static_cast<std::int64_t>(hn::Lanes(DF()));
  const VF zero = hn::Zero(DF());
  VF a0 = zero, a1 = zero, b0 = zero, b1 = zero, c0 = zero, c1 = zero, d0 = zero, d1 = zero;
  int k = 0;
  if (!sources.from_zero) {
    const auto* from = At<Rows>(sources.row[0], i);
    Rows::Load(from, a0, a1);
    if constexpr (kPairs > 1) Rows::Load(from + n, b0, b1);
    if constexpr (kPairs > 2) Rows::Load(from + 2 * n, c0, c1);
    if constexpr (kPairs > 3) Rows::Load(from + 3 * n, d0, d1);
    k = 1;
  }
  for (; k < sources.count; ++k) {
    const auto* from = At<Rows>(sources.row[static_cast<std::size_t>(k)], i);
    AddPair<Rows>(from, a0, a1);
    if constexpr (kPairs > 1) AddPair<Rows>(from + n, b0, b1);
    if constexpr (kPairs > 2) AddPair<Rows>(from + 2 * n, c0, c1);
    if constexpr (kPairs > 3) AddPair<Rows>(from + 3 * n, d0, d1);
  }
  to += i;
  Rows::Store(a0, a1, to, stream);
  if constexpr (kPairs > 1) Rows::Store(b0, b1, to + n, stream);
  if constexpr (kPairs > 2) Rows::Store(c0, c1, to + 2 * n, stream);
  if constexpr (kPairs > 3) Rows::Store(d0, d1, to + 3 * n, stream);
}

HWY_INLINE void FetchTile(const Sources& sources, std::int64_t at, std::int64_t bytes) {
  for (int k = 0; k < sources.count; ++k) {
    for (std::int64_t line = 0; line < bytes; line += 64) {
      hwy::Prefetch(sources.row[static_cast<std::size_t>(k)] + at + line);
    }
  }
}

// The sum of a token's rows into dst; `hidden` is at least one pair.
template <class Rows, bool kStream>
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
      SumPairs<Rows, 1>(sources, 0, to, false);
      i = static_cast<std::int64_t>(vector_bytes - past) / kSize;
    }
  }
  const std::int64_t row_bytes = hidden * kSize;
  const std::int64_t ahead = std::min(kPrefetchBytes, row_bytes);
  const std::int64_t tile = kTilePairs<Rows> * pair;
  for (; i + tile <= hidden; i += tile) {
    const std::int64_t at = i * kSize + ahead;
    if (at >= row_bytes) {
      FetchTile(next, at - row_bytes, tile * kSize);
    } else if (kSize == 2) {
      FetchTile(sources, at, tile * kSize);
    }
    SumPairs<Rows, kTilePairs<Rows>>(sources, i, to, kStream);
  }
  for (; i + pair <= hidden; i += pair) SumPairs<Rows, 1>(sources, i, to, kStream);
  if (i < hidden) SumPairs<Rows, 1>(sources, hidden - pair, to, false);
}

template <class Rows, bool kStream>
void ReduceRange(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end) {
  const auto bytes = job.hidden * static_cast<std::int64_t>(sizeof(typename Rows::Element));
  std::array<Sources, 2> both;
  Sources* sources = both.data();
  Sources* next = both.data() + 1;
  if (token_begin < token_end) FindSources(job, token_begin, sources);
  for (std::int64_t token = token_begin; token < token_end; ++token) {
    next->count = 0;
    if (token + 1 < token_end) FindSources(job, token + 1, next);
    std::uint8_t* dst = job.dst + token * job.dst_row_bytes;
    if (sources->too_many) {
      Rows::kAny(job, token, token + 1);
    } else if (sources->count == 0) {
      FillZero(dst, bytes, kStream);
    } else if (sources->count == 1 && !sources->from_zero) {  // exact in every bit pattern
      if constexpr (kStream) {
        CopyStreaming(dst, sources->row[0], bytes, next->count > 0 ? next->row[0] : nullptr);
      } else {
        Copy(dst, sources->row[0], bytes, false);
      }
    } else {
      SumSources<Rows, kStream>(*sources, *next, dst, job.hidden);
    }
    std::swap(sources, next);
  }
}

template <class Rows>
void Reduce(const ReduceJob& job, std::int64_t token_begin, std::int64_t token_end) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(typename Rows::Element));
  if (job.src_col_bytes != kSize || job.dst_col_bytes != kSize ||
      job.hidden < 2 * static_cast<std::int64_t>(hn::Lanes(DF()))) {
    Rows::kAny(job, token_begin, token_end);
  } else if (job.stream) {
    ReduceRange<Rows, true>(job, token_begin, token_end);
  } else {
    ReduceRange<Rows, false>(job, token_begin, token_end);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace moeperm
HWY_AFTER_NAMESPACE();
