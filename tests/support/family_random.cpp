// SPDX-License-Identifier: Apache-2.0
#include "support/family_random.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moeperm::test {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kMost32 = std::numeric_limits<std::int32_t>::max();

// What the tensor holds is what counts: an expanded one reads as other values than were written.
Tensor IndexTensor(Random& random, const Ints& values, Layout layout) {
  const auto size = static_cast<std::int64_t>(values.size());
  return Tensor::OfInts(AnyIndex(random), {size}, values, layout);
}

// Row numbers of no forward: holes, rows twice or never, past the end, far past the end.
Ints AnyRows(Random& random, std::int64_t slots, std::int64_t first_row, std::int64_t rows,
             bool past_the_end) {
  Ints out;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    out.push_back(rows == 0 ? -1 : first_row + random.Below(rows));
    if (random.Chance(15)) {
      out.back() = random.OneOf<std::int64_t>({-1, -1, -2, std::numeric_limits<int>::min()});
    } else if (past_the_end && random.Chance(10)) {
      out.back() = random.OneOf<std::int64_t>({first_row + rows, first_row + rows + 1, kMost32});
    } else if (past_the_end && random.Chance(10)) {
      out.back() = random.Below(first_row + rows + 1);
    }
  }
  return out;
}

// Each slot another row: what a forward gives.
Ints Shuffled(Random& random, std::int64_t slots) {
  Ints out(static_cast<std::size_t>(slots));
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    out[static_cast<std::size_t>(slot)] = slot;
    std::swap(out[static_cast<std::size_t>(slot)],
              out[static_cast<std::size_t>(random.Below(slot + 1))]);
  }
  return out;
}

Tensor AnyProbs(Random& random, std::int64_t tokens, std::int64_t columns) {
  return AnyValues(random, AnyFloat(random), {tokens, columns});
}

}  // namespace

DType AnyFloat(Random& random) {
  return random.OneOf({DType::kFloat32, DType::kFloat16, DType::kBFloat16});
}
DType AnyIndex(Random& random) { return random.OneOf({DType::kInt32, DType::kInt64}); }
Layout AnyInputLayout(Random& random) {
  return random.Chance(50) ? Layout::kDense : static_cast<Layout>(random.Below(kInputLayouts));
}
Layout AnyOutputLayout(Random& random) {
  return random.Chance(50) ? Layout::kDense : static_cast<Layout>(random.Below(kOutputLayouts));
}

void FillOrdinary(Random& random, Tensor& floats) {
  for (std::int64_t row = 0; row < floats.rows(); ++row) {
    for (std::int64_t col = 0; col < floats.cols(); ++col) {
      const auto mantissa = static_cast<float>(random.Below(1 << 21) - (1 << 20));
      const float value = std::ldexp(mantissa, static_cast<int>(random.Below(12)) - 24);
      floats.SetBits(row, col, moeperm_reference::Narrow(ToType(floats.dtype()), value));
    }
  }
  floats.Freeze();
}

Tensor AnyValues(Random& random, DType dtype, std::vector<std::int64_t> shape) {
  Tensor tensor(dtype, std::move(shape), AnyInputLayout(random));
  switch (random.Below(5)) {
    case 0:
      FillSmallIntegers(random, tensor);
      break;
    case 1:
    case 2:
      FillRandom(random, tensor);
      break;
    default:
      FillOrdinary(random, tensor);
  }
  return tensor;
}

TableInputs AnyTable(Random& random, const FamilySizes& sizes) {
  const bool one_dimension = sizes.top_k == 1 && random.Chance(50);
  const Ints shape = one_dimension ? Ints{sizes.tokens} : Ints{sizes.tokens, sizes.top_k};
  const std::int64_t slots = sizes.tokens * sizes.top_k;
  const bool sparse = random.Chance(20);
  const std::int64_t experts = sparse ? kMost32 : 1 + random.Below(random.Chance(20) ? 300 : 12);
  Ints values;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    values.push_back(random.Chance(50) ? random.Below(experts)
                                       : std::max<std::int64_t>(experts - 1 - random.Below(5), 0));
    if (random.Chance(12)) {
      values.back() = random.OneOf<std::int64_t>({-1, -1, -3, std::numeric_limits<int>::min()});
    }
  }
  TableInputs inputs{AnyValues(random, AnyFloat(random), {sizes.tokens, sizes.hidden}),
                     Tensor::OfInts(AnyIndex(random), shape, values, AnyInputLayout(random))};
  if (random.Chance(60)) {
    inputs.probs = AnyValues(random, AnyFloat(random), shape);
  }
  if (!sparse && random.Chance(60)) {
    inputs.num_experts = experts + random.Below(3);
  }
  inputs.num_out_tokens = random.OneOf<std::int64_t>(
      {slots, slots, random.Below(slots + 1), slots + random.Below(5), 0});
  inputs.first_row =
      random.OneOf<std::int64_t>({0, 0, random.Below(slots + 1), slots + 3, kMost32});
  return inputs;
}

TableGradInputs AnyTableGrad(Random& random, const FamilySizes& sizes) {
  const std::int64_t slots = sizes.tokens * sizes.top_k;
  const std::int64_t rows = random.OneOf<std::int64_t>({slots, random.Below(slots + 1), 7});
  const std::int64_t first_row = random.OneOf<std::int64_t>({0, 0, random.Below(slots + 1)});
  const Ints values =
      random.Chance(50) ? Shuffled(random, slots) : AnyRows(random, slots, first_row, rows, true);
  TableGradInputs inputs{.sorted_indices = IndexTensor(random, values, AnyInputLayout(random))};
  inputs.num_tokens = sizes.tokens;
  inputs.first_row = first_row;
  const std::int64_t which = random.Below(4);  // 0: tokens alone, 1: probs alone
  if (which != 1) {
    inputs.permuted_tokens_grad = AnyValues(random, AnyFloat(random), {rows, sizes.hidden});
  }
  if (which != 0) {
    inputs.permuted_probs_grad = AnyValues(random, AnyFloat(random), {rows});
  }
  return inputs;
}

BackInputs AnyBack(Random& random, const FamilySizes& sizes) {
  const std::int64_t slots = sizes.tokens * sizes.top_k;
  const std::int64_t rows = random.OneOf<std::int64_t>({slots, random.Below(slots + 1), 7});
  const std::int64_t first_row = random.OneOf<std::int64_t>({0, 0, random.Below(slots + 1)});
  const Ints values =
      random.Chance(50) ? Shuffled(random, slots) : AnyRows(random, slots, first_row, rows, true);
  const DType dtype = AnyFloat(random);
  BackInputs inputs{AnyValues(random, dtype, {rows, sizes.hidden}),
                    AnyValues(random, dtype, {sizes.tokens, sizes.hidden}),
                    IndexTensor(random, values, AnyInputLayout(random))};
  inputs.first_row = first_row;
  if (random.Chance(75)) {
    inputs.probs = AnyProbs(random, sizes.tokens, sizes.top_k);
  }
  return inputs;
}

BackInputs AnyBackWithMap(Random& random, const FamilySizes& sizes) {
  const bool drop_and_pad = random.Chance(40) && sizes.tokens > 0;
  const std::int64_t experts = 1 + random.Below(random.Chance(20) ? 200 : 12);
  const DType dtype = AnyFloat(random);
  const bool skip = !drop_and_pad && random.Chance(50);
  std::optional<Tensor> map;
  std::int64_t rows = 0;
  Ints values;
  if (drop_and_pad) {
    rows = experts * random.Below(5);
    for (std::int64_t row = 0; row < rows; ++row) {
      values.push_back(random.Below(random.Chance(50) ? sizes.tokens : 1 + sizes.tokens / 4));
    }
  } else {
    const std::vector<std::uint8_t> routing =
        RandomRouting(random, sizes.tokens, experts, std::min<std::int64_t>(sizes.top_k, experts));
    map = MapTensor(random.OneOf({DType::kInt8, DType::kBool}), sizes.tokens, experts, routing,
                    AnyInputLayout(random));
    const std::int64_t most = MostRoutes(map->ToRoutingMap());  // an expanded map is another one
    const std::int64_t top_k = most + random.Below(sizes.top_k + 1);
    const std::int64_t slots = sizes.tokens * top_k;
    rows = random.OneOf<std::int64_t>({slots, slots, random.Below(slots + 1) + 1, 7});
    values = rows >= slots && random.Chance(50) ? Shuffled(random, slots)
                                                : AnyRows(random, slots, 0, rows, skip);
  }
  // Expanded indices could name a row past the end: only those of the first slot remain.
  BackInputs inputs{AnyValues(random, dtype, {rows, sizes.hidden}),
                    AnyValues(random, dtype, {sizes.tokens, sizes.hidden}),
                    IndexTensor(random, values, AnyInputLayout(random))};
  inputs.with_map = true;
  inputs.drop_and_pad = drop_and_pad;
  inputs.skip_rows_out_of_range = skip;
  inputs.round_products = random.Chance(30);
  if (random.Chance(75)) {
    inputs.probs = AnyProbs(random, sizes.tokens, experts);
    inputs.routing_map = std::move(map);
  }
  return inputs;
}

}  // namespace moeperm::test
