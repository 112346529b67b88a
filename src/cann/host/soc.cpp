// SPDX-License-Identifier: Apache-2.0
#include "cann/host/soc.hpp"

#include <algorithm>
#include <array>

namespace moeperm::cann::host {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;

// The platform library keeps this much of a unified buffer to itself.
constexpr std::int64_t kReservedUbBytes = 256;

// Core counts and buffer sizes as they are publicly known. Parts of one name are sold with
// different numbers of working cores, so the counts are the usual ones; those of the Ascend910_93,
// the Ascend950 and the Ascend310P are approximate. Results never depend on them, only tilings do.
constexpr std::array<Soc, 12> kSocs = {{
    {"Ascend910B1", "ascend910b", 50, 25, 192 * kKiB, 192 * kMiB},
    {"Ascend910B2", "ascend910b", 48, 24, 192 * kKiB, 192 * kMiB},
    {"Ascend910B3", "ascend910b", 40, 20, 192 * kKiB, 192 * kMiB},
    {"Ascend910B4", "ascend910b", 40, 20, 192 * kKiB, 96 * kMiB},
    {"Ascend910_9391", "ascend910_93", 50, 25, 192 * kKiB, 192 * kMiB},
    {"Ascend910_9392", "ascend910_93", 50, 25, 192 * kKiB, 192 * kMiB},
    {"Ascend910_9381", "ascend910_93", 48, 24, 192 * kKiB, 192 * kMiB},
    {"Ascend910_9382", "ascend910_93", 48, 24, 192 * kKiB, 192 * kMiB},
    {"Ascend910_9372", "ascend910_93", 40, 20, 192 * kKiB, 192 * kMiB},
    {"Ascend910_9362", "ascend910_93", 40, 20, 192 * kKiB, 192 * kMiB},
    {"Ascend950", "ascend950", 64, 32, 248 * kKiB, 128 * kMiB},
    {"Ascend310P3", "ascend310p", 8, 8, 256 * kKiB, 16 * kMiB},
}};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::span<const Soc> Socs() { return kSocs; }

const Soc* FindSoc(std::string_view name) {
  const auto found = std::ranges::find_if(kSocs, [name](const Soc& soc) {
    return std::ranges::equal(soc.name, name, {}, Lower, Lower);
  });
  return found != kSocs.end() ? &*found : nullptr;
}

Platform PlatformOf(const Soc& soc) {
  Platform platform;
  platform.soc = soc.family;
  platform.vector_cores = soc.vector_cores;
  platform.ub_bytes = soc.ub_bytes - kReservedUbBytes;
  platform.compiled_cores = 0;
  return platform;
}

}  // namespace moeperm::cann::host
