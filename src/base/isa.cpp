// SPDX-License-Identifier: Apache-2.0
#include "base/isa.hpp"

#include <hwy/highway.h>

#include <algorithm>
#include <cctype>

namespace moeperm {
namespace {

std::vector<Isa> FindSupported() {
  std::vector<Isa> isas;
  // A lower bit is a better target, so they come best first.
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    hwy::ChosenTarget chosen;
    chosen.Update(target);
    isas.push_back({hwy::TargetName(target), chosen.GetIndex()});
  }
  return isas;
}

char Upper(char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); }

}  // namespace

const std::vector<Isa>& SupportedIsas() {
  // Never destroyed: contexts point into it, and calls may come from the program's own destructors.
  static const auto& isas = *new std::vector<Isa>(FindSupported());
  return isas;
}

const Isa* FindIsa(std::string_view name) {
  for (const Isa& isa : SupportedIsas()) {
    if (std::equal(isa.name.begin(), isa.name.end(), name.begin(), name.end(),
                   [](char a, char b) { return Upper(a) == Upper(b); })) {
      return &isa;
    }
  }
  return nullptr;
}

}  // namespace moeperm
