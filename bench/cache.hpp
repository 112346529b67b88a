// SPDX-License-Identifier: Apache-2.0
// The size of the last-level caches: data smaller than that need not come from memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <thread>

namespace moeperm::bench {

// All last-level caches the visible processors share; 0 where the system does not say. (sysconf
// tells the cache of the whole chip, of which a virtual machine may have a small part.)
inline std::uint64_t CacheBytes() {
  std::set<std::string> seen;
  std::uint64_t bytes = 0;
  for (unsigned cpu = 0; cpu < std::max(1U, std::thread::hardware_concurrency()); ++cpu) {
    const std::string directory =
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index3/";
    std::string sharers;
    std::ifstream(directory + "shared_cpu_list") >> sharers;
    std::uint64_t kibibytes = 0;
    std::ifstream(directory + "size") >> kibibytes;  // "32768K"
    if (seen.insert(sharers).second) bytes += kibibytes << 10;
  }
  return bytes;
}

}  // namespace moeperm::bench
