// SPDX-License-Identifier: Apache-2.0
// The fixtures F1 and F4 in vectors, as programs for the interface have them; a test changes what
// it wants wrong.
#pragma once

#include <cstdint>
#include <vector>

#include "door.hpp"

namespace moeperm::test {

using Floats = std::vector<float>;

inline Spec Of(std::vector<std::int64_t> dims, std::vector<float>& values) {
  Spec spec;
  spec.dims = std::move(dims);
  spec.storage = {static_cast<std::int64_t>(values.size())};
  spec.data = values.data();
  return spec;
}
inline Spec Of(std::vector<std::int64_t> dims, std::vector<std::int32_t>& values) {
  Spec spec;
  spec.dims = std::move(dims);
  spec.dtype = ACL_INT32;
  spec.storage = {static_cast<std::int64_t>(values.size())};
  spec.data = values.data();
  return spec;
}

// F1, backward, in vectors.
struct F1Grad {
  Floats rows = {1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32};
  Floats probs = {1, 2, 3, 4, 5, 6};
  std::vector<std::int32_t> indices = {0, 4, 1, 2, 3, 5};
  std::vector<std::int8_t> map = {1, 0, 1, 1, 1, 0, 0, 1, 1};
  Floats tokens_out = Floats(6, 99);
  Floats probs_out = Floats(9, 99);
  GradCall call;

  F1Grad() {
    call.rows = Of({6, 2}, rows);
    call.probs = Of({6}, probs);
    call.indices = Of({6}, indices);
    call.map.dims = {3, 3};
    call.map.dtype = ACL_INT8;
    call.map.data = map.data();
    call.num_experts = 3;
    call.num_tokens = 3;
    call.tokens_out = Of({3, 2}, tokens_out);
    call.probs_out = Of({3, 3}, probs_out);
  }
  F1Grad(const F1Grad&) = delete;
  F1Grad& operator=(const F1Grad&) = delete;
};
inline const Floats kTokensGrad = {17, -17, 6, -6, 40, -40};
inline const Floats kProbsGrad = {1, 0, 5, 2, 3, 0, 0, 4, 6};

// F4, backward.
struct F4Grad {
  Floats rows = {1, 2, 4, 8};
  Floats probs = {1, 2, 3, 4};
  std::vector<std::int32_t> indices = {0, 1, 1, 0};
  std::vector<std::int8_t> map = std::vector<std::int8_t>(8, 1);  // not read
  Floats tokens_out = Floats(4, 99);
  Floats probs_out = Floats(8, 99);
  GradCall call;

  F4Grad() {
    call.rows = Of({4, 1}, rows);
    call.probs = Of({4}, probs);
    call.indices = Of({4}, indices);
    call.map.dims = {4, 2};
    call.map.dtype = ACL_INT8;
    call.map.data = map.data();
    call.num_experts = 2;
    call.num_tokens = 4;
    call.drop_and_pad = true;
    call.tokens_out = Of({4, 1}, tokens_out);
    call.probs_out = Of({4, 2}, probs_out);
  }
  F4Grad(const F4Grad&) = delete;
  F4Grad& operator=(const F4Grad&) = delete;
};

// F1, forward.
struct F1Forward {
  Floats tokens = {1, 10, 2, 20, 3, 30};
  std::vector<std::int8_t> map = {1, 0, 1, 1, 1, 0, 0, 1, 1};
  Floats probs = {.5, 0, .25, .75, .125, 0, 0, .375, .625};
  Floats tokens_out = Floats(12, 99);
  Floats probs_out = Floats(6, 99);
  std::vector<std::int32_t> indices_out = std::vector<std::int32_t>(6, 99);
  ForwardCall call;

  F1Forward() {
    call.tokens = Of({3, 2}, tokens);
    call.map.dims = {3, 3};
    call.map.dtype = ACL_INT8;
    call.map.data = map.data();
    call.probs = Of({3, 3}, probs);
    call.num_out_tokens = 6;
    call.tokens_out = Of({6, 2}, tokens_out);
    call.probs_out = Of({6}, probs_out);
    call.indices_out = Of({6}, indices_out);
  }
  F1Forward(const F1Forward&) = delete;
  F1Forward& operator=(const F1Forward&) = delete;
};
inline const Floats kPermuted = {1, 10, 2, 20, 2, 20, 3, 30, 1, 10, 3, 30};
inline const Floats kPermutedProbs = {.5, .75, .125, .375, .25, .625};
inline const std::vector<std::int32_t> kSlots = {0, 4, 1, 2, 3, 5};

}  // namespace moeperm::test
