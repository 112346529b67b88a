// SPDX-License-Identifier: Apache-2.0
// What inference and tiling functions read out of a Problem, with the checks that go with it.
#pragma once

#include <cstdint>
#include <string_view>

#include "cann/host/op_def.hpp"
#include "moeperm/status.hpp"

namespace moeperm::cann::host {

// Tokens of one call have at most this many slots each.
inline constexpr std::int64_t kMaxTopK = 512;

// Null where it is not given.
const TensorDesc* Input(const Problem& problem, std::size_t i);
const TensorDesc* Output(const Problem& problem, std::size_t i);

// The attribute at position i of the definition; an error names it as `name`.
Status ReadInt(const Problem& problem, std::size_t i, std::string_view name, std::int64_t* value);
Status ReadBool(const Problem& problem, std::size_t i, std::string_view name, bool* value);
// The same, for numbers that count something.
Status ReadCount(const Problem& problem, std::size_t i, std::string_view name, std::int64_t* value);

// A list; nullopt where there is none, also where there is something else at that place: programs
// that leave attributes out shift those that follow, and are not refused for it.
std::optional<std::vector<std::int64_t>> ReadList(const Problem& problem, std::size_t i);

// No dimension is negative.
Status CheckDims(std::string_view name, const Shape& shape);
// At least one core, and a unified buffer of a possible size.
Status CheckPlatform(const Platform& platform);
// The elements of a row: the product of all dimensions but the first.
Status HiddenOf(std::string_view name, const Shape& shape, std::int64_t* hidden);

// Bytes of an element as tilings count them: of bool and 8-bit integers, too, 0.
std::int64_t TilingSizeOf(DType dtype);

// For problem_of(): the probs, or what is only there with them.
std::optional<TensorDesc> ProbsOf(const CallSizes& sizes, Shape shape);

}  // namespace moeperm::cann::host
