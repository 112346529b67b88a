// SPDX-License-Identifier: Apache-2.0
// Bytes -> a gradient of any small shape, dtype, layout and mode, with any indices: the bits of the
// reference where every index is valid, the refusal where one is not, guards intact either way.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "support/pair.hpp"

namespace moeperm::test {
namespace {

void Require(bool held, const char* what) {
  if (held) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

DType AnyFloat(FuzzedDataProvider& data) {
  return data.PickValueInArray({DType::kFloat32, DType::kFloat16, DType::kBFloat16});
}

Layout AnyLayout(FuzzedDataProvider& data) {
  return static_cast<Layout>(data.ConsumeIntegralInRange(0, kOutputLayouts - 1));
}

Tensor AnyTensor(FuzzedDataProvider& data, DType dtype, std::vector<std::int64_t> shape) {
  Tensor tensor(dtype, std::move(shape), AnyLayout(data));
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    for (std::int64_t col = 0; col < tensor.cols(); ++col) {
      tensor.SetBits(row, col, data.ConsumeIntegral<std::uint32_t>());
    }
  }
  return tensor;
}

void Run(FuzzedDataProvider& data) {
  static const std::vector<std::string> isas = AvailableIsas();
  const std::int64_t tokens = data.ConsumeIntegralInRange(0, 12);
  const std::int64_t experts = data.ConsumeIntegralInRange(1, 70);
  const std::int64_t hidden = data.ConsumeIntegralInRange(0, 40);
  const bool pad = data.ConsumeBool();
  const std::int64_t rows =
      pad ? experts * data.ConsumeIntegralInRange(0, 4) : data.ConsumeIntegralInRange(0, 40);
  const std::int64_t slots = pad ? rows : tokens * data.ConsumeIntegralInRange(0, 6);
  const std::int64_t limit = pad ? tokens : rows;

  GradInputs inputs{.sorted_indices = Tensor(data.ConsumeBool() ? DType::kInt32 : DType::kInt64,
                                             {slots}, AnyLayout(data))};
  inputs.num_tokens = tokens;
  inputs.num_experts = experts;
  inputs.drop_and_pad = pad;
  inputs.skip_rows_out_of_range = data.ConsumeBool();
  bool valid = true;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const std::int64_t index = data.ConsumeProbability<float>() < 0.9F
                                   ? data.ConsumeIntegralInRange<std::int64_t>(pad ? 0 : -1, limit)
                                   : data.ConsumeIntegral<std::int32_t>();
    inputs.sorted_indices.SetBits(0, slot, static_cast<std::uint64_t>(index));
    if (index >= limit && (pad || !inputs.skip_rows_out_of_range)) valid = false;
    if (pad && index < 0) valid = false;
  }
  inputs.permuted_tokens_grad = AnyTensor(data, AnyFloat(data), {rows, hidden});
  if (data.ConsumeBool()) {
    inputs.permuted_probs_grad = AnyTensor(data, AnyFloat(data), {rows});
    if (!pad) {
      inputs.routing_map = Tensor(DType::kInt8, {tokens, experts}, AnyLayout(data));
      for (std::int64_t token = 0; token < tokens; ++token) {
        for (std::int64_t e = 0; e < experts; ++e) {
          inputs.routing_map->SetBits(token, e, data.ConsumeIntegral<std::uint8_t>() & 3);
        }
      }
    }
  }
  const GradChoice choice{AnyLayout(data), AnyLayout(data)};
  const Context context(
      {.num_threads = data.ConsumeIntegralInRange(1, 3),
       .isa = isas[data.ConsumeIntegralInRange<std::size_t>(0, isas.size() - 1)]});
  if (valid) {
    const testing::AssertionResult result = CheckGrad(inputs, choice, Reference(inputs), context);
    Require(static_cast<bool>(result), result.message());
    return;
  }
  GradOutputs outputs = MakeOutputs(inputs, choice);
  const Status status = PermuteWithRoutingMapGrad(ArgsOf(inputs, outputs), context);
  Require(status.code() == Code::kIndexOutOfRange, "an invalid index was not refused");
  Require(status.message().starts_with("sorted_indices["), "the message names no position");
  Require(static_cast<bool>(outputs.tokens_grad->GuardsIntact("tokens_grad")), "guards");
}

}  // namespace
}  // namespace moeperm::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzedDataProvider data(bytes, size);
  moeperm::test::Run(data);
  return 0;
}
