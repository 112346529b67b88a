// SPDX-License-Identifier: Apache-2.0
// Times a call until its median is known well enough, or the time for it is used up.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <vector>

namespace moeperm::bench {

struct TimingOptions {
  std::size_t min_samples = 7;
  std::size_t max_samples = 10000;
  double min_seconds = 0.05;
  double max_seconds = 2.0;
  double precision = 0.005;  // of the median, as a part of it
};

struct Timing {
  double median = 0;  // seconds
  double mad = 0;     // median absolute deviation from it
  double best = 0;
  std::size_t samples = 0;
};

inline double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

inline Timing Summarize(const std::vector<double>& seconds) {
  Timing timing;
  timing.samples = seconds.size();
  timing.median = Median(seconds);
  timing.best = *std::min_element(seconds.begin(), seconds.end());
  std::vector<double> deviations;
  deviations.reserve(seconds.size());
  for (const double value : seconds) deviations.push_back(std::abs(value - timing.median));
  timing.mad = Median(deviations);
  return timing;
}

// One call to warm up, then one a sample, each after `between`, which is not timed but counts
// against max_seconds. `call` returns false to stop (an error).
template <class Call, class Between>
Timing Measure(const TimingOptions& options, const Call& call, const Between& between) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::vector<double> seconds;
  if (!call()) return {};
  const Clock::time_point begin = Clock::now();
  std::size_t check = options.min_samples;
  while (seconds.size() < options.max_samples) {
    between();
    const Clock::time_point start = Clock::now();
    if (!call()) return {};
    seconds.push_back(since(start));
    const double sum = since(begin);
    if (seconds.size() < check) {
      // A call that is long by itself must not hold everybody up.
      if (sum > 3 * options.max_seconds) break;
      continue;
    }
    if (sum > options.max_seconds) break;
    if (sum < options.min_seconds) {
      check = 2 * seconds.size();
      continue;
    }
    // The error of a median of n samples is about 1.86 MAD / sqrt(n).
    const Timing timing = Summarize(seconds);
    if (1.86 * timing.mad / std::sqrt(static_cast<double>(timing.samples)) <
        options.precision * timing.median) {
      break;
    }
    check = seconds.size() + seconds.size() / 4 + 1;  // looking costs time, too
  }
  return Summarize(seconds);
}

}  // namespace moeperm::bench
