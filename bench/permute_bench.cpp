// SPDX-License-Identifier: Apache-2.0
// Google Benchmark over the table of shapes, for its filters, repetitions and JSON:
//
//   permute_bench --benchmark_filter='4096x8x7168/tokens-grad' --benchmark_format=json
//
// Threads and instruction set: MOEPERM_NUM_THREADS, MOEPERM_ISA. Counters: bytes_per_second of what
// must move, and floor/time, the part of the time that the memory alone needs.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "bench/cache.hpp"
#include "bench/measure.hpp"

namespace moeperm::bench {
namespace {

// The case of the shape that was asked for last: its operators share it.
Workload* CaseOf(const Shape& shape) {
  static const Shape* kept_for = nullptr;
  static std::unique_ptr<Workload> kept;
  if (kept_for != &shape) {
    kept.reset();  // before the next one is made: they are large
    kept = std::make_unique<Workload>(shape);
    kept_for = &shape;
  }
  return kept.get();
}

void RunOp(benchmark::State& state, const Shape& shape, Op op) {
  const Context& context = Context::Default();
  Workload* const work = CaseOf(shape);
  Status status = work->Prepare(context);
  if (status.ok()) status = work->Run(op, context);
  static RoofMeter memory(context.num_threads());
  const Traffic traffic = work->Bytes(op);
  const Roofs before = {memory.Read(), memory.Write()};
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    if (status.ok()) status = work->Run(op, context);
    if (!status.ok()) {
      state.SkipWithError(status.message().c_str());
      return;
    }
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  // The memory before and after: it is not the same all the time.
  const Roofs after = {memory.Read(), memory.Write()};
  const double floor = (traffic.Floor(before) + traffic.Floor(after)) / 2;
  const auto bytes = traffic.read + traffic.written;
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
  // What stays in the cache is not bound by the memory.
  if (bytes >= CacheBytes()) {
    state.counters["floor/time"] = floor * static_cast<double>(state.iterations()) / seconds;
  }
}

void RegisterAll() {
  for (const Shape& shape : kShapes) {
    if (MemoryBytes(shape, SizeOf(shape.dtype)) > kMaxMemoryBytes) continue;
    for (const OpName& op : kOps) {
      if (op.op == Op::kIndexPermute && shape.drop_and_pad()) continue;
      const std::string name = std::string(shape.name) + '/' + std::string(op.name);
      benchmark::RegisterBenchmark(
          name.c_str(), [&shape, op](benchmark::State& state) { RunOp(state, shape, op.op); })
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace
}  // namespace moeperm::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const moeperm::Context& context = moeperm::Context::Default();
  if (!context.status().ok()) {
    fprintf(stderr, "permute_bench: %s\n", context.status().message().c_str());
    return 2;
  }
  benchmark::AddCustomContext("moeperm", std::string(moeperm::Version()));
  benchmark::AddCustomContext("isa", std::string(context.isa()));
  benchmark::AddCustomContext("threads", std::to_string(context.num_threads()));
  moeperm::bench::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
