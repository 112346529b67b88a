// SPDX-License-Identifier: Apache-2.0
// Contexts of every instruction set and several thread counts.
#pragma once

#include <string>
#include <vector>

#include "moeperm/context.hpp"

namespace moeperm::test {

// Made once for each pair and kept. Fails the test where the context does not run what was asked.
const Context& ContextOf(const std::string& isa, int num_threads);

// Every instruction set that runs here, x each of `thread_counts`.
std::vector<Context> EveryContext(const std::vector<int>& thread_counts = {1, 2, 3, 7});

std::string Describe(const Context& context);  // "AVX2, 3 threads"

}  // namespace moeperm::test
