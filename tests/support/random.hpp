// SPDX-License-Identifier: Apache-2.0
// Random routing and values, the same on every machine for one seed.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "support/tensor.hpp"

namespace moeperm::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t Bits() { return engine_(); }
  // 0 .. limit - 1; 0 where limit is 0. (The standard distributions differ between libraries.)
  std::int64_t Below(std::int64_t limit) {
    return limit == 0 ? 0 : static_cast<std::int64_t>(Bits() % static_cast<std::uint64_t>(limit));
  }
  bool Chance(int percent) { return Below(100) < percent; }
  template <class T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[Below(static_cast<std::int64_t>(values.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

// A bit pattern of `type`: often an ordinary number, often one of those that go wrong (NaN with a
// payload, infinities, subnormals, -0, the largest), often anything at all.
std::uint32_t RandomFloatBits(Random& random, Type type);

void FillRandom(Random& random, Tensor& floats);         // RandomFloatBits
void FillSmallIntegers(Random& random, Tensor& floats);  // -8 .. 8: sums of them are exact

// Bytes of a [tokens, experts] map, 0 or not 0 (1 mostly; 2 and 255 are routes as well), each
// token with 0 .. most_routes routes.
std::vector<std::uint8_t> RandomRouting(Random& random, std::int64_t tokens, std::int64_t experts,
                                        std::int64_t most_routes);
// Each token with exactly `routes` routes.
std::vector<std::uint8_t> RandomTopK(Random& random, std::int64_t tokens, std::int64_t experts,
                                     std::int64_t routes);

Tensor MapTensor(DType dtype, std::int64_t tokens, std::int64_t experts,
                 const std::vector<std::uint8_t>& bytes, Layout layout = Layout::kDense);

// The largest number of routes a token has.
std::int64_t MostRoutes(const RoutingMap& map);

}  // namespace moeperm::test
