// SPDX-License-Identifier: Apache-2.0
// The aclnn functions: both phases, then the stream is waited for.
#include <array>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_moe_token_permute.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map_grad.h"
#include "doors.hpp"

namespace moeperm::test::cann_door {
namespace {

aclDataType ToAcl(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ACL_FLOAT;
    case DType::kFloat16:
      return ACL_FLOAT16;
    case DType::kBFloat16:
      return ACL_BF16;
    case DType::kInt8:
      return ACL_INT8;
    case DType::kBool:
      return ACL_BOOL;
    case DType::kInt32:
      return ACL_INT32;
    case DType::kInt64:
      return ACL_INT64;
    default:
      return ACL_DT_UNDEFINED;
  }
}

// The handles of one call.
class Handles {
 public:
  Handles() = default;
  ~Handles() {
    for (aclTensor* const tensor : tensors_) EXPECT_EQ(aclDestroyTensor(tensor), 0);
    for (aclIntArray* const array : arrays_) EXPECT_EQ(aclDestroyIntArray(array), 0);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  aclTensor* operator()(const Tensor& tensor) {
    const TensorView view = Writable(tensor);
    tensors_.push_back(aclCreateTensor(view.shape().data(), view.shape().size(),
                                       ToAcl(view.dtype()), view.strides().data(), 0, ACL_FORMAT_ND,
                                       view.shape().data(), view.shape().size(), view.data()));
    return tensors_.back();
  }
  aclTensor* operator()(const std::optional<Tensor>& tensor) {
    return tensor ? (*this)(*tensor) : nullptr;
  }
  aclIntArray* Range(std::int64_t first, std::int64_t count) {
    const std::array<std::int64_t, 2> range = {first, first + count};
    arrays_.push_back(aclCreateIntArray(range.data(), range.size()));
    return arrays_.back();
  }

 private:
  std::vector<aclTensor*> tensors_;
  std::vector<aclIntArray*> arrays_;
};

// phase1(size, executor) and phase2(workspace, size, executor, stream).
template <class Phase1, class Phase2>
void Run(const Phase1& phase1, const Phase2& phase2) {
  static const int initialised = [] {
    const int code = aclInit(nullptr);
    return code != 0 ? code : aclrtSetDevice(0);
  }();
  ASSERT_EQ(initialised, 0);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), 0);
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  const auto error = [] {
    const char* const text = aclGetRecentErrMsg();
    return std::string(text == nullptr ? "" : text);
  };
  EXPECT_EQ(phase1(&size, &executor), 0) << error();
  std::vector<std::byte> workspace(size);
  EXPECT_EQ(phase2(workspace.data(), size, executor, stream), 0) << error();
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0) << error();
  EXPECT_EQ(aclrtDestroyStream(stream), 0);
}

Tensor Int32s(std::int64_t count) { return {DType::kInt32, {count}}; }

}  // namespace

void Call(const ForwardInputs& inputs, ForwardOutputs& outputs) {
  Handles acl;
  Run(
      [&](auto... last) {
        return aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
            acl(inputs.tokens), acl(inputs.routing_map), acl(inputs.probs), inputs.num_out_tokens,
            inputs.drop_and_pad, acl(outputs.permuted_tokens), acl(outputs.permuted_probs),
            acl(outputs.sorted_indices), last...);
      },
      aclnnMoeTokenPermuteWithRoutingMap);
}

void Call(const GradInputs& inputs, GradOutputs& outputs) {
  Handles acl;
  Run(
      [&](auto... last) {
        return aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
            acl(inputs.permuted_tokens_grad), acl(inputs.permuted_probs_grad),
            acl(inputs.sorted_indices), acl(inputs.routing_map), inputs.num_experts,
            inputs.num_tokens, inputs.drop_and_pad, acl(outputs.tokens_grad),
            acl(outputs.probs_grad), last...);
      },
      aclnnMoeTokenPermuteWithRoutingMapGrad);
}

void Call(const TableInputs& inputs, TableOutputs& outputs) {
  Handles acl;
  if (!inputs.probs) {
    Run(
        [&](auto... last) {
          return aclnnMoeTokenPermuteGetWorkspaceSize(
              acl(inputs.tokens), acl(inputs.indices), inputs.num_out_tokens, false,
              acl(outputs.permuted_tokens), acl(outputs.sorted_indices), last...);
        },
        aclnnMoeTokenPermute);
    return;
  }
  Run(
      [&](auto... last) {
        return aclnnMoeTokenPermuteWithEpGetWorkspaceSize(
            acl(inputs.tokens), acl(inputs.indices), acl(inputs.probs),
            acl.Range(inputs.first_row, inputs.num_out_tokens), 0, false,
            acl(outputs.permuted_tokens), acl(outputs.sorted_indices), acl(outputs.permuted_probs),
            last...);
      },
      aclnnMoeTokenPermuteWithEp);
}

void Call(const TableGradInputs& inputs, TableGrads& outputs) {
  Handles acl;
  if (!inputs.permuted_probs_grad) {
    Run(
        [&](auto... last) {
          return aclnnMoeTokenPermuteGradGetWorkspaceSize(
              acl(inputs.permuted_tokens_grad), acl(inputs.sorted_indices), inputs.top_k(), false,
              acl(outputs.tokens_grad), last...);
        },
        aclnnMoeTokenPermuteGrad);
    return;
  }
  Run(
      [&](auto... last) {
        return aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
            acl(inputs.permuted_tokens_grad), acl(inputs.sorted_indices),
            acl(inputs.permuted_probs_grad), inputs.top_k(),
            acl.Range(inputs.first_row, inputs.permuted_tokens_grad->rows()), false,
            acl(outputs.tokens_grad), acl(outputs.probs_grad), last...);
      },
      aclnnMoeTokenPermuteWithEpGrad);
}

void Call(const BackInputs& inputs, BackOutputs& outputs) {
  Handles acl;
  if (inputs.with_map) {
    const std::int64_t slots = inputs.sorted_indices.size();
    const Tensor index = Int32s(slots);
    const Tensor token = Int32s(slots);
    Run(
        [&](auto... last) {
          return aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
              acl(inputs.rows), acl(inputs.sorted_indices), acl(inputs.routing_map),
              acl(inputs.probs), inputs.drop_and_pad, nullptr, acl(outputs.tokens), acl(index),
              acl(token), acl(outputs.gathered_probs), last...);
        },
        aclnnMoeTokenUnpermuteWithRoutingMap);
    return;
  }
  if (inputs.first_row == 0) {
    Run(
        [&](auto... last) {
          return aclnnMoeTokenUnpermuteGetWorkspaceSize(
              acl(inputs.rows), acl(inputs.sorted_indices), acl(inputs.probs), false, nullptr,
              acl(outputs.tokens), last...);
        },
        aclnnMoeTokenUnpermute);
    return;
  }
  Run(
      [&](auto... last) {
        return aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(
            acl(inputs.rows), acl(inputs.sorted_indices), acl(inputs.probs), inputs.probs->cols(),
            acl.Range(inputs.first_row, inputs.rows.rows()), false, nullptr, acl(outputs.tokens),
            last...);
      },
      aclnnMoeTokenUnpermuteWithEp);
}

void Call(const BackInputs& inputs, BackGrads& outputs) {
  Handles acl;
  if (inputs.with_map) {
    const Tensor tokens = Int32s(inputs.sorted_indices.size());  // only read in drop-and-pad mode
    Run(
        [&](auto... last) {
          return aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
              acl(inputs.tokens), acl(inputs.sorted_indices), acl(tokens), acl(inputs.routing_map),
              acl(inputs.rows), acl(inputs.probs), inputs.drop_and_pad, nullptr,
              acl(outputs.permuted_tokens_grad), acl(outputs.probs_grad), last...);
        },
        aclnnMoeTokenUnpermuteWithRoutingMapGrad);
    return;
  }
  if (inputs.first_row == 0) {
    Run(
        [&](auto... last) {
          return aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
              acl(inputs.rows), acl(inputs.tokens), acl(inputs.sorted_indices), acl(inputs.probs),
              false, nullptr, acl(outputs.permuted_tokens_grad), acl(outputs.probs_grad), last...);
        },
        aclnnMoeTokenUnpermuteGrad);
    return;
  }
  Run(
      [&](auto... last) {
        return aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
            acl(inputs.tokens), acl(inputs.sorted_indices), acl(inputs.rows), acl(inputs.probs),
            false, nullptr, acl.Range(inputs.first_row, inputs.rows.rows()), inputs.probs->cols(),
            acl(outputs.permuted_tokens_grad), acl(outputs.probs_grad), last...);
      },
      aclnnMoeTokenUnpermuteWithEpGrad);
}

}  // namespace moeperm::test::cann_door
