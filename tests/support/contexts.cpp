// SPDX-License-Identifier: Apache-2.0
#include "support/contexts.hpp"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace moeperm::test {

const Context& ContextOf(const std::string& isa, int num_threads) {
  static std::map<std::pair<std::string, int>, Context> contexts;
  const auto key = std::pair(isa, num_threads);
  if (const auto found = contexts.find(key); found != contexts.end()) {
    return found->second;
  }
  const Context& context =
      contexts.emplace(key, Context({.num_threads = num_threads, .isa = isa})).first->second;
  EXPECT_TRUE(context.status().ok()) << context.status().message();
  EXPECT_EQ(context.isa(), isa) << "the dispatch did not take the instruction set asked for";
  EXPECT_EQ(context.num_threads(), num_threads);
  return context;
}

std::vector<Context> EveryContext(const std::vector<int>& thread_counts) {
  std::vector<Context> contexts;
  for (const std::string& isa : AvailableIsas()) {
    for (const int num_threads : thread_counts) {
      contexts.push_back(ContextOf(isa, num_threads));
    }
  }
  EXPECT_FALSE(contexts.empty()) << "no instruction set is available";
  return contexts;
}

std::string Describe(const Context& context) {
  return std::string(context.isa()) + ", " + std::to_string(context.num_threads()) + " thread(s)";
}

}  // namespace moeperm::test
