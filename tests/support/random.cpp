// SPDX-License-Identifier: Apache-2.0
#include "support/random.hpp"

#include <algorithm>

namespace moeperm::test {
namespace {

struct Format {
  int mantissa_bits;
  int exponent_bits;
};

Format FormatOf(Type type) {
  switch (type) {
    case Type::kFloat16:
      return {10, 5};
    case Type::kBFloat16:
      return {7, 8};
    case Type::kFloat32:
      break;
  }
  return {23, 8};
}

std::vector<std::uint8_t> Routing(Random& random, std::int64_t tokens, std::int64_t experts,
                                  std::int64_t fewest, std::int64_t most) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(tokens * experts), 0);
  for (std::int64_t token = 0; token < tokens; ++token) {
    std::int64_t left = fewest + random.Below(most - fewest + 1);
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      // Each subset of `left` of the experts that remain is equally likely.
      if (random.Below(experts - expert) < left) {
        --left;
        bytes[static_cast<std::size_t>(token * experts + expert)] =
            random.OneOf<std::uint8_t>({1, 1, 1, 1, 1, 1, 2, 255});
      }
    }
  }
  return bytes;
}

}  // namespace

std::uint32_t RandomFloatBits(Random& random, Type type) {
  const Format format = FormatOf(type);
  const int width = 1 + format.exponent_bits + format.mantissa_bits;
  const std::uint32_t any =
      static_cast<std::uint32_t>(random.Bits() & ((std::uint64_t{1} << width) - 1));
  const std::uint32_t sign = any & (1U << (width - 1));
  const std::uint32_t mantissa = any & ((1U << format.mantissa_bits) - 1);
  const std::uint32_t top_exponent = ((1U << format.exponent_bits) - 1) << format.mantissa_bits;
  switch (random.Below(12)) {
    case 0:
      return sign;  // +0, -0
    case 1:
      return sign | mantissa;  // subnormal
    case 2:
      return sign | top_exponent;  // infinity
    case 3:
      return sign | top_exponent | std::max(mantissa, 1U);  // NaN, quiet or signaling
    case 4:
      return (sign | top_exponent) - 1;  // the largest finite number
    case 5:
    case 6:
    case 7:
      return any;
    default:
      return moeperm_reference::Narrow(
          type, static_cast<float>(random.Below(2001) - 1000) / 64.0F);  // sums round
  }
}

void FillRandom(Random& random, Tensor& floats) {
  const Type type = ToType(floats.dtype());
  for (std::int64_t row = 0; row < floats.rows(); ++row) {
    for (std::int64_t col = 0; col < floats.cols(); ++col) {
      floats.SetBits(row, col, RandomFloatBits(random, type));
    }
  }
  floats.Freeze();
}

void FillSmallIntegers(Random& random, Tensor& floats) {
  for (std::int64_t row = 0; row < floats.rows(); ++row) {
    for (std::int64_t col = 0; col < floats.cols(); ++col) {
      floats.SetBits(row, col,
                     moeperm_reference::Narrow(ToType(floats.dtype()),
                                               static_cast<float>(random.Below(17) - 8)));
    }
  }
  floats.Freeze();
}

std::vector<std::uint8_t> RandomRouting(Random& random, std::int64_t tokens, std::int64_t experts,
                                        std::int64_t most_routes) {
  return Routing(random, tokens, experts, 0, std::min(most_routes, experts));
}

std::vector<std::uint8_t> RandomTopK(Random& random, std::int64_t tokens, std::int64_t experts,
                                     std::int64_t routes) {
  return Routing(random, tokens, experts, routes, routes);
}

Tensor MapTensor(DType dtype, std::int64_t tokens, std::int64_t experts,
                 const std::vector<std::uint8_t>& bytes, Layout layout) {
  return Tensor::OfInts(dtype, {tokens, experts}, {bytes.begin(), bytes.end()}, layout);
}

std::int64_t MostRoutes(const RoutingMap& map) {
  std::int64_t most = 0;
  for (std::int64_t token = 0; token < map.tokens; ++token) {
    const auto begin = map.bytes.begin() + static_cast<std::ptrdiff_t>(token * map.experts);
    most = std::max<std::int64_t>(
        most, map.experts - std::count(begin, begin + static_cast<std::ptrdiff_t>(map.experts), 0));
  }
  return most;
}

}  // namespace moeperm::test
