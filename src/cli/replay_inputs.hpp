// SPDX-License-Identifier: Apache-2.0
// The values of a case's tensors, which its file leaves open: the same for a seed everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/replay_cases.hpp"
#include "reference/reference.hpp"

namespace moeperm::cli {

// Dense; also what the plain reference takes.
struct CaseData {
  moeperm_reference::RoutingMap map;
  moeperm_reference::Matrix tokens;                // [T, H], or the gradient of the rows [R, H]
  std::optional<moeperm_reference::Matrix> probs;  // [T, E], or the gradient of the rows [R, 1]
  std::vector<std::int32_t> sorted_indices;        // of the gradient
};

// Not padded: each token has top_k distinct experts at random; `ragged`: from one to top_k of them,
// and rows that stand for no route are zero. Padded: each expert has `capacity` distinct tokens,
// in random order.
CaseData MakeCaseData(const CaseProblem& problem, std::uint64_t seed, std::int64_t id, bool ragged);

// Bytes of all tensors of a case, those the check needs included; as large as can be where they
// are beyond counting.
std::uint64_t CaseBytes(const CaseProblem& problem);
// What a new program could have, in bytes.
std::uint64_t AvailableMemory();

}  // namespace moeperm::cli
