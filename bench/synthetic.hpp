// SPDX-License-Identifier: Apache-2.0
// Synthetic cases: the same bits for a seed on every machine. Value i of a tensor is a function of
// (key, i) alone, and only integers and the correctly rounded + - * / of IEEE doubles are used; the
// distributions of <random> and the functions of <cmath> may differ between libraries.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "moeperm/dtype.hpp"

namespace moeperm::synthetic {

inline constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;

// The finaliser of splitmix64.
constexpr std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// What the streams of one seed are for; the numbers are part of "the same bits for a seed".
enum class Stream : std::uint64_t {
  kTokens = 1,
  kProbs = 2,
  kTokensGrad = 3,
  kProbsGrad = 4,
  kRoutes = 5,
  kExperts = 6,
  kSlots = 7
};

constexpr std::uint64_t Key(std::uint64_t seed, Stream stream) {
  return Mix(Mix(seed + kGolden) + static_cast<std::uint64_t>(stream) * kGolden);
}

class Generator {
 public:
  explicit Generator(std::uint64_t key) : state_(key) {}
  std::uint64_t Next() { return Mix(state_ += kGolden); }
  // 0 .. n - 1. The bias of the product is below n / 2^64.
  std::uint64_t Below(std::uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(Next()) * n) >> 64);
  }

 private:
  std::uint64_t state_;
};

enum class Values { kSigned, kUnit };  // a triangle on (-2, 2); uniform on [0, 1)

namespace detail {

inline float Value(Values values, std::uint64_t bits) {
  if (values == Values::kUnit) return static_cast<float>(bits >> 40) * 0x1p-24F;
  const auto low = static_cast<std::int64_t>(static_cast<std::int32_t>(bits));
  const auto high = static_cast<std::int64_t>(static_cast<std::int32_t>(bits >> 32));
  return static_cast<float>(low + high) * 0x1p-31F;
}

// The upper bits of a float: cut, not rounded. Below the normal numbers of binary16: a signed 0.
inline std::uint16_t CutToFloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  constexpr std::uint32_t kSmallest = (127 - 14) << 23;
  if (magnitude < kSmallest) return static_cast<std::uint16_t>(sign);
  return static_cast<std::uint16_t>(sign | ((magnitude - ((127 - 15) << 23)) >> 13));
}

inline std::uint16_t CutToBFloat16(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

template <class Convert>
void Fill(Values values, std::uint64_t key, std::uint64_t first, std::span<std::byte> out,
          Convert convert) {
  using Element = decltype(convert(0.0F));
  for (std::size_t i = 0; i < out.size() / sizeof(Element); ++i) {
    const Element element = convert(Value(values, Mix(key + (first + i) * kGolden)));
    std::memcpy(out.data() + i * sizeof(Element), &element, sizeof(Element));
  }
}

// rank^-skew in units of 2^-32, at least 1.
inline std::uint64_t ZipfWeight(std::uint64_t rank, double skew) {
  // ln rank = exponent ln 2 + 2 atanh z, |z| <= 1/3.
  int exponent = 0;
  const double mantissa = std::frexp(static_cast<double>(rank), &exponent);
  const double z = (mantissa - 1) / (mantissa + 1);
  double power = z;
  double log = 0;
  for (int n = 1; n < 40; n += 2) {
    log += 2 * power / n;
    power *= z * z;
  }
  constexpr double kLn2 = 0.693147180559945309417;
  const double x = -skew * (log + exponent * kLn2);
  // e^x = 2^whole e^rest
  const double whole = std::floor(x / kLn2);
  if (whole < -40) return 1;
  const double rest = x - whole * kLn2;
  double term = 1;
  double exp = 1;
  for (int n = 1; n < 24; ++n) exp += term *= rest / n;
  return static_cast<std::uint64_t>(
      std::max(1.0, std::floor(std::ldexp(exp, 32 + static_cast<int>(whole)))));
}

}  // namespace detail

// Values first, first + 1, ... of the tensor `key` names; dtype is one of the three float types.
inline void Fill(DType dtype, Values values, std::uint64_t key, std::uint64_t first,
                 std::span<std::byte> out) {
  switch (dtype) {
    case DType::kFloat16:
      return detail::Fill(values, key, first, out, detail::CutToFloat16);
    case DType::kBFloat16:
      return detail::Fill(values, key, first, out, detail::CutToBFloat16);
    default:
      return detail::Fill(values, key, first, out, [](float value) { return value; });
  }
}

// How popular experts are: all the same; rank^-skew; one as popular as all others together.
enum class Routing { kUniform, kZipf, kHot };

struct RoutingOptions {
  std::int64_t tokens = 0;
  std::int64_t experts = 0;
  std::int64_t top_k = 0;  // routes a token, at most experts
  Routing routing = Routing::kUniform;
  double skew = 1.0;    // kZipf
  bool ragged = false;  // 0 to top_k routes a token instead
  std::uint64_t seed = 0;
};

namespace detail {

inline std::vector<std::uint64_t> ExpertWeights(const RoutingOptions& options) {
  const auto experts = static_cast<std::size_t>(options.experts);
  std::vector<std::uint64_t> weights(experts, 1);
  if (options.routing == Routing::kHot && experts > 1) weights[0] = experts - 1;
  if (options.routing == Routing::kZipf) {
    for (std::size_t e = 0; e < experts; ++e) weights[e] = ZipfWeight(e + 1, options.skew);
  }
  // Popular experts stand anywhere.
  Generator random(Key(options.seed, Stream::kExperts));
  for (std::size_t e = experts; e > 1; --e) std::swap(weights[e - 1], weights[random.Below(e)]);
  return weights;
}

// An expert `row` does not have yet, by weight.
inline std::size_t DrawExpert(Generator& random, std::span<const std::uint8_t> row,
                              std::span<const std::uint64_t> weights,
                              std::span<const std::uint64_t> sums) {
  constexpr int kTries = 16;
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t at = random.Below(sums.back());
    const auto e =
        static_cast<std::size_t>(std::upper_bound(sums.begin(), sums.end(), at) - sums.begin());
    if (row[e] == 0) return e;
  }
  // The popular ones are taken: walk over the others.
  std::uint64_t left = 0;
  for (std::size_t e = 0; e < row.size(); ++e) left += row[e] == 0 ? weights[e] : 0;
  std::uint64_t at = random.Below(left);
  for (std::size_t e = 0;; ++e) {
    if (row[e] != 0) continue;
    if (at < weights[e]) return e;
    at -= weights[e];
  }
}

}  // namespace detail

// [tokens, experts], 1 = a route.
inline std::vector<std::uint8_t> RoutingMap(const RoutingOptions& options) {
  const auto tokens = static_cast<std::size_t>(options.tokens);
  const auto experts = static_cast<std::size_t>(options.experts);
  std::vector<std::uint8_t> map(tokens * experts);
  const std::vector<std::uint64_t> weights = detail::ExpertWeights(options);
  std::vector<std::uint64_t> sums(experts);
  std::partial_sum(weights.begin(), weights.end(), sums.begin());
  const std::uint64_t key = Key(options.seed, Stream::kRoutes);
  for (std::size_t t = 0; t < tokens; ++t) {
    Generator random(Mix(key + t * kGolden));
    const std::span row(map.data() + t * experts, experts);
    auto routes = static_cast<std::uint64_t>(options.top_k);
    if (options.ragged) routes = random.Below(routes + 1);
    for (std::uint64_t k = 0; k < routes; ++k) {
      row[detail::DrawExpert(random, row, weights, sums)] = 1;
    }
  }
  return map;
}

// [tokens, top_k]: the experts of a token's row of `map` in any order, -1 for none. Duplicates:
// with one chance in four a slot repeats the one before it. drop_rate: so many slots become -1.
inline std::vector<std::int32_t> Indices(const RoutingOptions& options,
                                         std::span<const std::uint8_t> map, bool duplicates,
                                         double drop_rate) {
  const auto tokens = static_cast<std::size_t>(options.tokens);
  const auto experts = static_cast<std::size_t>(options.experts);
  const auto top_k = static_cast<std::size_t>(options.top_k);
  std::vector<std::int32_t> indices(tokens * top_k, -1);
  const std::uint64_t key = Key(options.seed, Stream::kSlots);
  const auto dropped = static_cast<std::uint64_t>(drop_rate * 0x1p32);
  for (std::size_t t = 0; t < tokens; ++t) {
    Generator random(Mix(key + t * kGolden));
    const std::span slots(indices.data() + t * top_k, top_k);
    for (std::size_t e = 0, k = 0; e < experts; ++e) {
      if (map[t * experts + e] != 0) slots[k++] = static_cast<std::int32_t>(e);
    }
    for (std::size_t k = top_k; k > 1; --k) std::swap(slots[k - 1], slots[random.Below(k)]);
    for (std::size_t k = 0; k < top_k; ++k) {
      if (duplicates && random.Below(4) == 0 && k > 0) slots[k] = slots[k - 1];
    }
    for (std::int32_t& slot : slots) {
      if (random.Below(std::uint64_t{1} << 32) < dropped) slot = -1;
    }
  }
  return indices;
}

}  // namespace moeperm::synthetic
