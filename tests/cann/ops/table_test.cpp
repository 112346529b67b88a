// SPDX-License-Identifier: Apache-2.0
// The ten operators beside the pair, through the door: the reference's bits for any call, strides
// included.
#include <algorithm>

#include "aclnnop/aclnn_moe_token_permute.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map_grad.h"
#include "door.hpp"
#include "support/family_random.hpp"

namespace moeperm::test {
namespace {

constexpr FamilySizes kSizes = {5, 7, 3};

Tensor Int32Of(const Tensor& tensor) {
  return Tensor::OfInts(DType::kInt32, tensor.shape(), tensor.Ints());
}

class Range {
 public:
  Range(std::int64_t start, std::int64_t end) {
    const std::int64_t values[] = {start, end};
    array_ = aclCreateIntArray(values, 2);
  }
  ~Range() { EXPECT_EQ(aclDestroyIntArray(array_), 0); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  [[nodiscard]] aclIntArray* get() const { return array_; }

 private:
  aclIntArray* array_;
};

AclTensor Handle(std::optional<Tensor>& tensor) {
  return AclTensor(tensor ? SpecOf(*tensor) : NotGiven());
}

TEST(CannTable, UnpermuteAsTheReference) {
  Stream stream;
  Random random(20265);
  for (int i = 0; i < 2000; ++i) {
    BackInputs inputs = AnyBack(random, kSizes);
    inputs.sorted_indices = Int32Of(inputs.sorted_indices);
    const bool ep = random.Chance(50);
    if (!ep) inputs.first_row = 0;
    if (!ep && !inputs.probs) continue;  // one slot a token there
    BackOutputs outputs = MakeOutputs(inputs, [&] { return AnyOutputLayout(random); });
    const AclTensor rows(SpecOf(inputs.rows)), indices(SpecOf(inputs.sorted_indices)),
        probs = Handle(inputs.probs), out(SpecOf(outputs.tokens));
    const Range range(inputs.first_row, inputs.first_row + inputs.rows.rows());
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    if (ep) {
      ASSERT_EQ(aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(rows.get(), indices.get(), probs.get(),
                                                             kSizes.top_k, range.get(), false,
                                                             nullptr, out.get(), &size, &executor),
                0)
          << TakeError();
      ASSERT_EQ(aclnnMoeTokenUnpermuteWithEp(nullptr, size, executor, stream.get()), 0)
          << TakeError();
    } else {
      ASSERT_EQ(aclnnMoeTokenUnpermuteGetWorkspaceSize(rows.get(), indices.get(), probs.get(),
                                                       false, nullptr, out.get(), &size, &executor),
                0)
          << TakeError();
      ASSERT_EQ(aclnnMoeTokenUnpermute(nullptr, size, executor, stream.get()), 0) << TakeError();
    }
    ASSERT_EQ(stream.Synchronize(), 0) << TakeError();
    ASSERT_TRUE(Matches(inputs, outputs, Reference(inputs)));
  }
}

TEST(CannTable, PermuteGradAsTheReference) {
  Stream stream;
  Random random(20266);
  for (int i = 0; i < 2000; ++i) {
    TableGradInputs inputs = AnyTableGrad(random, kSizes);
    if (!inputs.permuted_tokens_grad) continue;
    inputs.sorted_indices = Int32Of(inputs.sorted_indices);
    const bool ep = random.Chance(60);
    if (!ep) {
      inputs.first_row = 0;
      inputs.permuted_probs_grad.reset();
    } else if (inputs.permuted_probs_grad) {
      inputs.permuted_probs_grad = AnyValues(random, inputs.permuted_tokens_grad->dtype(),
                                             inputs.permuted_probs_grad->shape());
    }
    TableGrads outputs = MakeOutputs(inputs, [&] { return AnyOutputLayout(random); });
    const AclTensor rows = Handle(inputs.permuted_tokens_grad),
                    indices(SpecOf(inputs.sorted_indices)),
                    probs = Handle(inputs.permuted_probs_grad), out = Handle(outputs.tokens_grad),
                    probs_out = Handle(outputs.probs_grad);
    const std::int64_t count = inputs.permuted_tokens_grad->rows();
    const Range range(inputs.first_row, inputs.first_row + count);
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    if (ep) {
      ASSERT_EQ(aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
                    rows.get(), indices.get(), probs.get(), kSizes.top_k, range.get(), false,
                    out.get(), probs_out.get(), &size, &executor),
                0)
          << TakeError();
      ASSERT_EQ(aclnnMoeTokenPermuteWithEpGrad(nullptr, size, executor, stream.get()), 0)
          << TakeError();
    } else {
      ASSERT_EQ(aclnnMoeTokenPermuteGradGetWorkspaceSize(rows.get(), indices.get(), kSizes.top_k,
                                                         false, out.get(), &size, &executor),
                0)
          << TakeError();
      ASSERT_EQ(aclnnMoeTokenPermuteGrad(nullptr, size, executor, stream.get()), 0) << TakeError();
    }
    ASSERT_EQ(stream.Synchronize(), 0) << TakeError();
    ASSERT_TRUE(Matches(inputs, outputs, Reference(inputs)));
  }
}

TEST(CannTable, UnpermuteGradAsTheReference) {
  Stream stream;
  Random random(20267);
  for (int i = 0; i < 2000; ++i) {
    BackInputs inputs = AnyBack(random, kSizes);
    inputs.sorted_indices = Int32Of(inputs.sorted_indices);
    const bool ep = random.Chance(50);
    if (!ep) inputs.first_row = 0;
    if (!ep && !inputs.probs) continue;  // one slot a token there
    const std::int64_t slots = inputs.sorted_indices.size();
    const std::int64_t end = inputs.first_row + inputs.rows.rows();
    if (end > slots || inputs.rows.rows() == 0) continue;  // cut to the slots; no tiling
    BackGrads outputs = MakeGrads(inputs, {}, [&] { return AnyOutputLayout(random); });
    const AclTensor rows(SpecOf(inputs.rows)), tokens(SpecOf(inputs.tokens)),
        indices(SpecOf(inputs.sorted_indices)), probs = Handle(inputs.probs),
                                                rows_out = Handle(outputs.permuted_tokens_grad),
                                                probs_out = Handle(outputs.probs_grad);
    const Range range(inputs.first_row, end);
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    if (ep) {
      ASSERT_EQ(aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
                    tokens.get(), indices.get(), rows.get(), probs.get(), false, nullptr,
                    range.get(), kSizes.top_k, rows_out.get(), probs_out.get(), &size, &executor),
                0)
          << TakeError();
      ASSERT_EQ(aclnnMoeTokenUnpermuteWithEpGrad(nullptr, size, executor, stream.get()), 0)
          << TakeError();
    } else {
      ASSERT_EQ(aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
                    rows.get(), tokens.get(), indices.get(), probs.get(), false, nullptr,
                    rows_out.get(), probs_out.get(), &size, &executor),
                0)
          << TakeError();
      ASSERT_EQ(aclnnMoeTokenUnpermuteGrad(nullptr, size, executor, stream.get()), 0)
          << TakeError();
    }
    ASSERT_EQ(stream.Synchronize(), 0) << TakeError();
    ASSERT_TRUE(Matches(inputs, outputs, ReferenceOfGrads(inputs)));
  }
}

TEST(CannTable, PermuteAsTheReference) {
  Stream stream;
  Random random(20268);
  for (int i = 0; i < 2000; ++i) {
    TableInputs inputs = AnyTable(random, kSizes);
    const std::int64_t slots = inputs.indices.size();
    const bool ep = random.Chance(60);
    inputs.num_experts = 0;
    inputs.num_out_tokens = 1 + random.Below(slots);
    inputs.first_row = ep ? random.Below(slots - inputs.num_out_tokens + 1) : 0;
    if (inputs.probs) {
      inputs.probs.reset();
      if (ep) inputs.probs = AnyValues(random, inputs.tokens.dtype(), inputs.indices.shape());
    }
    TableOutputs outputs = MakeOutputs(inputs, [&] { return AnyOutputLayout(random); });
    const AclTensor tokens(SpecOf(inputs.tokens)), indices(SpecOf(inputs.indices)),
        probs = Handle(inputs.probs), out(SpecOf(outputs.permuted_tokens)),
        indices_out(SpecOf(outputs.sorted_indices)), probs_out = Handle(outputs.permuted_probs);
    const Range range(inputs.first_row, inputs.first_row + inputs.num_out_tokens);
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    if (ep) {
      ASSERT_EQ(aclnnMoeTokenPermuteWithEpGetWorkspaceSize(
                    tokens.get(), indices.get(), probs.get(), range.get(), 77, false, out.get(),
                    indices_out.get(), probs_out.get(), &size, &executor),
                0)
          << TakeError();
      ASSERT_EQ(aclnnMoeTokenPermuteWithEp(nullptr, size, executor, stream.get()), 0)
          << TakeError();
    } else {
      // Below 0: all but so many.
      const std::int64_t number = inputs.num_out_tokens - (random.Chance(50) ? slots : 0);
      ASSERT_EQ(
          aclnnMoeTokenPermuteGetWorkspaceSize(tokens.get(), indices.get(), number, false,
                                               out.get(), indices_out.get(), &size, &executor),
          0)
          << TakeError();
      ASSERT_EQ(aclnnMoeTokenPermute(nullptr, size, executor, stream.get()), 0) << TakeError();
    }
    ASSERT_EQ(stream.Synchronize(), 0) << TakeError();
    ASSERT_TRUE(Matches(inputs, outputs, Reference(inputs)));
  }
}

TEST(CannTable, UnpermuteWithRoutingMapAsTheReference) {
  Stream stream;
  Random random(20269);
  int compared = 0;
  int back = 0;
  for (int i = 0; i < 3000; ++i) {
    BackInputs inputs = AnyBackWithMap(random, kSizes);
    inputs.sorted_indices = Int32Of(inputs.sorted_indices);
    const std::int64_t slots = inputs.sorted_indices.size();
    // The slots a token come from the rows there.
    if (slots == 0 || (!inputs.drop_and_pad && inputs.rows.rows() != slots)) continue;
    const DType dtype = inputs.rows.dtype();
    if (inputs.probs && inputs.probs->dtype() != dtype) {
      inputs.probs = AnyValues(random, dtype == DType::kBFloat16 ? DType::kFloat32 : dtype,
                               inputs.probs->shape());
    }
    inputs.skip_rows_out_of_range = !inputs.drop_and_pad;
    inputs.round_products = inputs.drop_and_pad && inputs.probs && inputs.probs->dtype() == dtype;
    BackOutputs outputs = MakeOutputs(inputs, [&] { return AnyOutputLayout(random); });
    Tensor order(DType::kInt32, {slots});
    Tensor ids(DType::kInt32, {slots}, Layout::kColumnGaps);
    const AclTensor rows(SpecOf(inputs.rows)), indices(SpecOf(inputs.sorted_indices)),
        map = Handle(inputs.routing_map), probs = Handle(inputs.probs), out(SpecOf(outputs.tokens)),
        order_out(SpecOf(order)), ids_out(SpecOf(ids)), probs_out = Handle(outputs.gathered_probs);
    const Range shape(inputs.tokens.rows(), inputs.tokens.cols());
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    ASSERT_EQ(
        aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
            rows.get(), indices.get(), map.get(), probs.get(), inputs.drop_and_pad, shape.get(),
            out.get(), order_out.get(), ids_out.get(), probs_out.get(), &size, &executor),
        0)
        << TakeError();
    ASSERT_EQ(aclnnMoeTokenUnpermuteWithRoutingMap(nullptr, size, executor, stream.get()), 0)
        << TakeError();
    ASSERT_EQ(stream.Synchronize(), 0) << TakeError();
    ASSERT_TRUE(Matches(inputs, outputs, Reference(inputs)));
    for (std::int64_t at = 0; at < slots; ++at) {
      const std::int64_t row = order.Ints()[static_cast<std::size_t>(at)];
      const std::int64_t want =
          inputs.drop_and_pad ? inputs.sorted_indices.Ints()[static_cast<std::size_t>(row)] : 0;
      ASSERT_EQ(ids.Ints()[static_cast<std::size_t>(at)], want);
    }
    ++compared;
    // Back again, with the indices that came out.
    const std::vector<std::int64_t> values = inputs.sorted_indices.Ints();
    if (*std::max_element(values.begin(), values.end()) >= inputs.rows.rows()) continue;
    BackGrads grads = MakeGrads(inputs, {}, [&] { return AnyOutputLayout(random); });
    const AclTensor tokens(SpecOf(inputs.tokens)), rows_grad = Handle(grads.permuted_tokens_grad),
                                                   probs_grad = Handle(grads.probs_grad);
    Tensor unread =
        MapTensor(DType::kInt8, inputs.tokens.rows(), inputs.probs ? inputs.probs->cols() : 1,
                  std::vector<std::uint8_t>(static_cast<std::size_t>(
                      inputs.tokens.rows() * (inputs.probs ? inputs.probs->cols() : 1))));
    const AclTensor any_map(!inputs.probs         ? NotGiven()
                            : inputs.drop_and_pad ? SpecOf(unread)
                                                  : SpecOf(*inputs.routing_map));
    const AclTensor& places = inputs.drop_and_pad ? order_out : indices;
    const int code = aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
        tokens.get(), places.get(), ids_out.get(), any_map.get(), rows.get(), probs.get(),
        inputs.drop_and_pad, shape.get(), rows_grad.get(), probs_grad.get(), &size, &executor);
    // More rows an expert than tokens, or more slots a token than experts.
    const std::int64_t experts = inputs.probs ? inputs.probs->cols() : slots;
    const std::int64_t tokens_there = inputs.tokens.rows();
    if (slots > experts * tokens_there) {
      if (code == 0) {
        ASSERT_EQ(aclDestroyAclOpExecutor(executor), 0);
      }
      continue;
    }
    ++back;
    ASSERT_EQ(code, 0) << TakeError();
    ASSERT_EQ(aclnnMoeTokenUnpermuteWithRoutingMapGrad(nullptr, size, executor, stream.get()), 0)
        << TakeError();
    ASSERT_EQ(stream.Synchronize(), 0) << TakeError();
    ASSERT_TRUE(Matches(inputs, grads, ReferenceOfGrads(inputs)));
  }
  EXPECT_GT(compared, 800);
  EXPECT_GT(back, 600);
}

TEST(CannTable, NullsComeFirst) {
  const Stream stream;
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(aclnnMoeTokenUnpermuteGetWorkspaceSize(nullptr, nullptr, nullptr, false, nullptr,
                                                   nullptr, nullptr, &executor),
            ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_NE(TakeError().find("workspaceSize"), std::string::npos);
  EXPECT_EQ(aclnnMoeTokenUnpermuteGetWorkspaceSize(nullptr, nullptr, nullptr, false, nullptr,
                                                   nullptr, &size, &executor),
            ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_NE(TakeError().find("permutedTokens is a null"), std::string::npos);
  EXPECT_NE(aclnnMoeTokenUnpermute(nullptr, 0, nullptr, nullptr), 0);
  EXPECT_NE(aclnnMoeTokenUnpermuteWithEp(nullptr, 0, nullptr, nullptr), 0);
  EXPECT_NE(aclnnMoeTokenPermuteGrad(nullptr, 0, nullptr, nullptr), 0);
  EXPECT_NE(aclnnMoeTokenPermuteWithEpGrad(nullptr, 0, nullptr, nullptr), 0);
}

}  // namespace
}  // namespace moeperm::test
