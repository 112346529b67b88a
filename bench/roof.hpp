// SPDX-License-Identifier: Apache-2.0
// What this machine's memory can do: a plain streaming read and a streaming write, with the threads
// of the context under test. An operator's floor is its bytes at these speeds.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <latch>
#include <limits>
#include <span>
#include <thread>
#include <vector>

#include "bench/buffer.hpp"
#include "bench/cache.hpp"
#include "bench/timing.hpp"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#define MOEPERM_BENCH_X86 1
#endif

namespace moeperm::bench {

struct Roofs {
  double read = 0;  // bytes a second
  double write = 0;
};

namespace detail {

// A kernel gets whole 256-byte blocks. A reader returns something that depends on every byte.
using ReadKernel = std::uint64_t (*)(const std::byte* data, std::size_t bytes);
using WriteKernel = void (*)(std::byte* data, std::size_t bytes);

inline std::uint64_t ReadPlain(const std::byte* data, std::size_t bytes) {
  using Vector __attribute__((vector_size(16))) = std::uint64_t;
  Vector sums[8] = {};
  for (std::size_t i = 0; i < bytes; i += sizeof(sums)) {
    __builtin_prefetch(data + i + 1024);
    __builtin_prefetch(data + i + 1024 + 64);
    Vector vectors[8];
    std::memcpy(vectors, data + i, sizeof(vectors));
    for (int v = 0; v < 8; ++v) sums[v] ^= vectors[v];
  }
  for (int v = 1; v < 8; ++v) sums[0] ^= sums[v];
  return sums[0][0] ^ sums[0][1];
}

inline void WritePlain(std::byte* data, std::size_t bytes) { std::memset(data, 1, bytes); }

#ifdef MOEPERM_BENCH_X86
// Prefetching ahead within a stream lets more lines be in flight than the hardware alone asks for.
template <int kAhead>
__attribute__((target("avx2"))) std::uint64_t ReadAvx2(const std::byte* data, std::size_t bytes) {
  __m256i sums[4] = {};
  for (std::size_t i = 0; i < bytes; i += 128) {
    if (kAhead != 0) {
      _mm_prefetch(reinterpret_cast<const char*>(data + i + kAhead), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(data + i + kAhead + 64), _MM_HINT_T0);
    }
    for (int v = 0; v < 4; ++v) {
      sums[v] = _mm256_xor_si256(
          sums[v], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + i) + v));
    }
  }
  const __m256i all =
      _mm256_xor_si256(_mm256_xor_si256(sums[0], sums[1]), _mm256_xor_si256(sums[2], sums[3]));
  alignas(32) std::uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), all);
  return lanes[0] ^ lanes[1] ^ lanes[2] ^ lanes[3];
}

template <int kAhead>
__attribute__((target("avx512f"))) std::uint64_t ReadAvx512(const std::byte* data,
                                                            std::size_t bytes) {
  __m512i sums[4] = {};
  for (std::size_t i = 0; i < bytes; i += 256) {
    for (std::size_t v = 0; v < 4; ++v) {
      if (kAhead != 0) {
        _mm_prefetch(reinterpret_cast<const char*>(data + i + kAhead + 64 * v), _MM_HINT_T0);
      }
      sums[v] = _mm512_xor_si512(sums[v], _mm512_loadu_si512(data + i + 64 * v));
    }
  }
  alignas(64) std::uint64_t lanes[8];
  _mm512_store_si512(lanes, _mm512_xor_si512(_mm512_xor_si512(sums[0], sums[1]),
                                             _mm512_xor_si512(sums[2], sums[3])));
  std::uint64_t all = 0;
  for (const std::uint64_t lane : lanes) all ^= lane;
  return all;
}

// Stores that go around the caches: the line is not read first.
__attribute__((target("avx2"))) inline void WriteAvx2(std::byte* data, std::size_t bytes) {
  const __m256i value = _mm256_set1_epi8(1);
  for (std::size_t i = 0; i < bytes; i += 32) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(data + i), value);
  }
  _mm_sfence();
}

__attribute__((target("avx512f"))) inline void WriteAvx512(std::byte* data, std::size_t bytes) {
  const __m512i value = _mm512_set1_epi32(1);
  for (std::size_t i = 0; i < bytes; i += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(data + i), value);
  }
  _mm_sfence();
}
#endif

inline std::vector<ReadKernel> ReadKernels() {
  std::vector<ReadKernel> kernels = {ReadPlain};
#ifdef MOEPERM_BENCH_X86
  if (__builtin_cpu_supports("avx2")) {
    kernels.insert(kernels.end(), {ReadAvx2<0>, ReadAvx2<1024>, ReadAvx2<4096>});
  }
  if (__builtin_cpu_supports("avx512f")) {
    kernels.insert(kernels.end(), {ReadAvx512<0>, ReadAvx512<1024>, ReadAvx512<4096>});
  }
#endif
  return kernels;
}

inline std::vector<WriteKernel> WriteKernels() {
  std::vector<WriteKernel> kernels = {WritePlain};
#ifdef MOEPERM_BENCH_X86
  if (__builtin_cpu_supports("avx2")) kernels.push_back(WriteAvx2);
  if (__builtin_cpu_supports("avx512f")) kernels.push_back(WriteAvx512);
#endif
  return kernels;
}

// Seconds from the first thread's start to the last one's end; all start together. Their own clocks
// count: this thread may wake up long after the others have begun.
template <class Work>
double TimeOnThreads(int threads, const Work& work) {
  using Clock = std::chrono::steady_clock;
  const auto count = static_cast<std::size_t>(threads);
  std::latch ready(threads);
  std::vector<Clock::time_point> starts(count);
  std::vector<Clock::time_point> ends(count);
  std::vector<std::thread> team;
  team.reserve(count);
  for (std::size_t thread = 0; thread < count; ++thread) {
    team.emplace_back([&, thread] {
      ready.arrive_and_wait();
      starts[thread] = Clock::now();
      work(static_cast<int>(thread));
      ends[thread] = Clock::now();
    });
  }
  for (std::thread& member : team) member.join();
  return std::chrono::duration<double>(*std::ranges::max_element(ends) -
                                       *std::ranges::min_element(starts))
      .count();
}

}  // namespace detail

// Measures the memory with the kernels that are fastest here. One pass is a sample, to be taken
// between those of an operator: on a machine with other work both are then slowed down alike.
class RoofMeter {
 public:
  // Takes a second or so and 512 MiB, or more where the caches are large; `threads` is the number
  // the operators run with.
  explicit RoofMeter(int threads)
      : threads_(threads),
        buffer_(std::clamp(4 * CacheBytes(), std::uint64_t{512} << 20, std::uint64_t{4} << 30)) {
    Choose(detail::WriteKernels(), &write_, [this] { return Write(); });
    Choose(detail::ReadKernels(), &read_, [this] { return Read(); });
  }

  // The best pass so far of each.
  [[nodiscard]] const Roofs& best() const { return best_; }

  // Bytes a second of one pass over about so many bytes, at most the buffer. Passes that move as
  // much as the operator last as long, and are as likely to be interrupted.
  double Read(std::uint64_t bytes = kAll) {
    const double speed = Pass(bytes, [this](const std::byte* data, std::size_t size) {
      keep_.fetch_xor(read_(data, size), std::memory_order_relaxed);
    });
    best_.read = std::max(best_.read, speed);
    return speed;
  }
  double Write(std::uint64_t bytes = kAll) {
    const double speed =
        Pass(bytes, [this](std::byte* data, std::size_t size) { write_(data, size); });
    best_.write = std::max(best_.write, speed);
    return speed;
  }

 private:
  static constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::size_t kPiece = std::size_t{1} << 20;

  // Pieces go to whichever thread is free, as the operators' do: with fixed halves, a thread that
  // another program holds up would hold up the pass, and the operator would seem faster than
  // memory.
  template <class Work>
  double Pass(std::uint64_t bytes, const Work& work) {
    const std::size_t all = buffer_.bytes().size() / kPiece;
    const std::size_t pieces = std::clamp<std::size_t>(bytes / kPiece, 1, all);
    std::atomic<std::size_t> next = 0;
    const double seconds = detail::TimeOnThreads(threads_, [&](int) {
      for (std::size_t piece = next++; piece < pieces; piece = next++) {
        work(buffer_.data() + (first_ + piece) % all * kPiece, kPiece);
      }
    });
    first_ = (first_ + pieces) % all;  // on to what has left the caches
    return static_cast<double>(pieces * kPiece) / seconds;
  }

  // By the median of passes in turn, so that a lucky moment does not choose.
  template <class Kernel, class Run>
  static void Choose(const std::vector<Kernel>& kernels, Kernel* chosen, const Run& run) {
    constexpr int kPasses = 7;
    std::vector<std::vector<double>> speeds(kernels.size());
    for (int pass = 0; pass < kPasses; ++pass) {
      for (std::size_t k = 0; k < kernels.size(); ++k) {
        *chosen = kernels[k];
        speeds[k].push_back(run());
      }
    }
    const auto fastest = std::ranges::max_element(speeds, {}, Median);
    *chosen = kernels[static_cast<std::size_t>(fastest - speeds.begin())];
  }

  int threads_;
  Buffer buffer_;
  std::size_t first_ = 0;  // piece of the next pass
  detail::ReadKernel read_ = nullptr;
  detail::WriteKernel write_ = nullptr;
  Roofs best_;
  std::atomic<std::uint64_t> keep_ = 0;  // so that no read is optimised away
};

// Where one look is enough.
inline Roofs MeasureRoofs(int threads) { return RoofMeter(threads).best(); }

}  // namespace moeperm::bench
