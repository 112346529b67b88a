// SPDX-License-Identifier: Apache-2.0
// The number types of the vector cores. Written apart from the library's own conversions, so that
// a fault in one shows against the other.
#pragma once

#include <cstdint>

namespace moeperm::cann::model {

// Exact, payloads of NaNs included.
float FromFloat16(std::uint16_t bits);
float FromBFloat16(std::uint16_t bits);

// To nearest, ties to even; overflow gives infinity; of a NaN's payload the upper bits are kept, so
// that a value that was only widened comes back as it was.
std::uint16_t ToFloat16(float value);
std::uint16_t ToBFloat16(float value);

// A sum that is no number is the canonical quiet NaN.
float Sum(float a, float b);

}  // namespace moeperm::cann::model
