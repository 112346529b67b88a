// SPDX-License-Identifier: Apache-2.0
// Temporary memory: O(slots + experts * threads), no row, no copy of the map. Every allocation of
// this process is counted, by standing in for malloc; what the library takes from another
// allocator, which malloc does not see, it counts itself.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "base/memory.hpp"
#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/random.hpp"

namespace {

std::atomic<std::int64_t> live_bytes{0};
std::atomic<std::int64_t> peak_bytes{0};

void* Count(void* memory) {
  if (memory != nullptr) {
    const auto size = static_cast<std::int64_t>(malloc_usable_size(memory));
    const std::int64_t live = live_bytes.fetch_add(size) + size;
    std::int64_t peak = peak_bytes.load();
    while (live > peak && !peak_bytes.compare_exchange_weak(peak, live)) {
    }
  }
  return memory;
}

void Uncount(void* memory) {
  if (memory != nullptr) {
    live_bytes.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(memory)));
  }
}

}  // namespace

// glibc's own, under the names it keeps for programs that replace the public ones.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t size) { return Count(__libc_malloc(size)); }
void* calloc(std::size_t count, std::size_t size) { return Count(__libc_calloc(count, size)); }
void* realloc(void* memory, std::size_t size) {
  Uncount(memory);
  return Count(__libc_realloc(memory, size));
}
void* memalign(std::size_t alignment, std::size_t size) {
  return Count(__libc_memalign(alignment, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return Count(__libc_memalign(alignment, size));
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = Count(__libc_memalign(alignment, size));
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  Uncount(memory);
  __libc_free(memory);
}
}

namespace moeperm::test {
namespace {

// The most bytes alive during `call` beyond those alive before it: the peaks of both allocators,
// which together are no less than the peak of both.
template <class Call>
std::int64_t PeakOf(const Call& call) {
  const std::int64_t before = live_bytes.load() + GetMemoryUse().live;
  peak_bytes.store(live_bytes.load());
  ResetPeakMemoryUse();
  call();
  return peak_bytes.load() + GetMemoryUse().peak - before;
}

std::int64_t Live() { return live_bytes.load() + GetMemoryUse().live; }

struct Size {
  std::int64_t tokens;
  std::int64_t experts;
  std::int64_t top_k;
  std::int64_t hidden;
};

struct Pair {
  ForwardInputs forward;
  ForwardOutputs outputs;
  GradInputs grad;
  GradOutputs grads;

  explicit Pair(const Size& size, bool drop_and_pad = false)
      : forward(Inputs(size, drop_and_pad)),
        outputs(RunForward(forward)),
        grad(GradOf(forward, outputs,
                    std::vector<float>(static_cast<std::size_t>(forward.rows() * size.hidden), 1),
                    std::vector<float>(static_cast<std::size_t>(forward.rows()), 1))),
        grads(MakeOutputs(grad)) {}

  static ForwardInputs Inputs(const Size& size, bool drop_and_pad) {
    Random random(12);
    ForwardInputs inputs{Tensor(DType::kBFloat16, {size.tokens, size.hidden}),
                         MapTensor(DType::kInt8, size.tokens, size.experts,
                                   RandomTopK(random, size.tokens, size.experts, size.top_k)),
                         Tensor(DType::kFloat32, {size.tokens, size.experts}),
                         size.tokens * size.top_k,
                         size.top_k,
                         drop_and_pad};
    return inputs;
  }

  std::int64_t ForwardPeak(const Context& context) {
    const PermuteWithRoutingMapArgs args = ArgsOf(forward, outputs);
    return PeakOf([&] { ASSERT_TRUE(PermuteWithRoutingMap(args, context).ok()); });
  }
  std::int64_t GradPeak(const Context& context) {
    const PermuteWithRoutingMapGradArgs args = ArgsOf(grad, grads);
    return PeakOf([&] { ASSERT_TRUE(PermuteWithRoutingMapGrad(args, context).ok()); });
  }
};

// 16 bytes a slot, 64 bytes an expert and thread, and 64 KiB.
std::int64_t Bound(const Size& size, int threads) {
  return 16 * size.tokens * size.top_k + 64 * size.experts * threads + (64 << 10);
}

void CheckBound(const Size& size, bool drop_and_pad = false) {
  Pair pair(size, drop_and_pad);
  for (const int threads : {1, 2, 7}) {
    const Context& context = ContextOf(AvailableIsas().front(), threads);
    pair.ForwardPeak(context);  // the threads' own memory comes with their first work
    pair.GradPeak(context);
    EXPECT_LE(pair.ForwardPeak(context), Bound(size, threads)) << threads << " threads";
    EXPECT_LE(pair.GradPeak(context), Bound(size, threads)) << threads << " threads";
  }
}

TEST(Memory, TheCounterCounts) {
  const std::int64_t peak = PeakOf([] {
    for (int i = 0; i < 3; ++i) {
      std::vector<char> block(1000000);
      void* aligned = std::aligned_alloc(64, 1000000);
      block[0] = static_cast<char*>(aligned)[0] = 1;
      std::free(aligned);
    }
  });
  EXPECT_GE(peak, 2000000);
  EXPECT_LT(peak, 2100000);
}

// A call cannot do without an index: a counter that saw none of it would let everything pass.
TEST(Memory, TheCounterSeesTheLibrary) {
  const Size size{4096, 64, 8, 8};
  Pair pair(size);
  const Context& context = ContextOf(AvailableIsas().front(), 1);
  EXPECT_GE(pair.ForwardPeak(context), 4 * size.tokens * size.top_k);
  EXPECT_GE(pair.GradPeak(context), 4 * size.tokens * size.top_k);
}

// P070, P101, P112: 16 bytes of each slot, where a row has 2 KiB.
TEST(Probes, P112_NoRowsBeyondTheOutputs) {
  CheckBound({4096, 64, 8, 1024});
  CheckBound({4096, 64, 8, 1024}, true);
}

TEST(Probes, P070_GradNeedsNoSecondBuffer) {
  Pair pair({4096, 64, 8, 1024});
  for (const int threads : {1, 2}) {
    EXPECT_LT(pair.GradPeak(ContextOf(AvailableIsas().front(), threads)), 4096 * 1024 * 2 / 4);
  }
}

// The map is 16 MiB: no copy and no transpose of it.
TEST(Memory, NoCopyOfTheMap) { CheckBound({4096, 4096, 2, 8}); }

TEST(Memory, HiddenDoesNotMatter) {
  Pair narrow({1024, 16, 4, 8});
  Pair wide({1024, 16, 4, 2048});
  const Context& context = ContextOf(AvailableIsas().front(), 1);
  EXPECT_EQ(narrow.ForwardPeak(context), wide.ForwardPeak(context));
  EXPECT_EQ(narrow.GradPeak(context), wide.GradPeak(context));
}

// All 64 tokens to one of eight experts: by the routes, not by experts times the fullest.
TEST(Probes, P038_MemoryByRoutes) {
  Literal literal{.num_experts = 1024, .map = std::vector<std::int64_t>(64 * 1024, 0)};
  literal.tokens = std::vector<float>(64, 1);
  for (std::size_t token = 0; token < 64; ++token) {
    literal.map[token * 1024 + 3] = 1;
  }
  const ForwardInputs inputs = NotPadded(literal);
  ForwardOutputs outputs = MakeOutputs(inputs);
  const PermuteWithRoutingMapArgs args = ArgsOf(inputs, outputs);
  const Context& context = ContextOf(AvailableIsas().front(), 1);
  const auto run = [&] { ASSERT_TRUE(PermuteWithRoutingMap(args, context).ok()); };
  run();
  EXPECT_LE(PeakOf(run), 16 * 64 + 64 * 1024);
}

TEST(Memory, RowMap) {
  const Size size{4096, 64, 8, 0};
  const ForwardInputs inputs = Pair::Inputs(size, false);
  const Context& context = ContextOf(AvailableIsas().front(), 2);
  RowMap row_map;
  const auto run = [&] {
    ASSERT_TRUE(RowMap::FromRoutingMap(inputs.routing_map.in(), {}, &row_map, context).ok());
  };
  EXPECT_LE(PeakOf(run), 24 * 4096 * 8 + (64 << 10));
  const RowMap first = row_map;  // the second run frees nothing
  EXPECT_LE(PeakOf(run), 24 * 4096 * 8 + (64 << 10));
}

// What a call takes it gives back.
TEST(Memory, NothingIsKept) {
  Pair pair({512, 16, 4, 64});
  const Context& context = ContextOf(AvailableIsas().front(), 1);
  pair.ForwardPeak(context);
  pair.GradPeak(context);
  const std::int64_t before = Live();
  for (int run = 0; run < 5; ++run) {
    pair.ForwardPeak(context);
    pair.GradPeak(context);
  }
  EXPECT_EQ(Live(), before);
}

}  // namespace
}  // namespace moeperm::test
