// SPDX-License-Identifier: Apache-2.0
#include "door.hpp"

#include <ostream>

namespace moeperm::test {
namespace {

// The handles of a call's tensors, and its first phase.
struct Forward {
  explicit Forward(const ForwardCall& call)
      : tokens(call.tokens),
        map(call.map),
        probs(call.probs),
        tokens_out(call.tokens_out),
        probs_out(call.probs_out),
        indices_out(call.indices_out) {}
  int Phase1(const ForwardCall& call, std::uint64_t* size, aclOpExecutor** executor) const {
    return aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
        tokens.get(), map.get(), probs.get(), call.num_out_tokens, call.drop_and_pad,
        tokens_out.get(), probs_out.get(), indices_out.get(), call.null_size ? nullptr : size,
        call.null_executor ? nullptr : executor);
  }
  static int Phase2(std::uint64_t size, aclOpExecutor* executor, aclrtStream stream) {
    return aclnnMoeTokenPermuteWithRoutingMap(nullptr, size, executor, stream);
  }
  AclTensor tokens, map, probs, tokens_out, probs_out, indices_out;
};

struct Grad {
  explicit Grad(const GradCall& call)
      : rows(call.rows),
        probs(call.probs),
        indices(call.indices),
        map(call.map),
        tokens_out(call.tokens_out),
        probs_out(call.probs_out) {}
  int Phase1(const GradCall& call, std::uint64_t* size, aclOpExecutor** executor) const {
    return aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
        rows.get(), probs.get(), indices.get(), map.get(), call.num_experts, call.num_tokens,
        call.drop_and_pad, tokens_out.get(), probs_out.get(), call.null_size ? nullptr : size,
        call.null_executor ? nullptr : executor);
  }
  static int Phase2(std::uint64_t size, aclOpExecutor* executor, aclrtStream stream) {
    return aclnnMoeTokenPermuteWithRoutingMapGrad(nullptr, size, executor, stream);
  }
  AclTensor rows, probs, indices, map, tokens_out, probs_out;
};

template <class Handles, class Call>
int RunPhase1(const Call& call) {
  const Handles handles(call);
  std::uint64_t size = 99;
  aclOpExecutor* executor = nullptr;
  const int code = handles.Phase1(call, &size, &executor);
  if (code != 0) {
    EXPECT_EQ(executor, nullptr) << "an executor although phase 1 failed";
    return code;
  }
  EXPECT_EQ(size, 0U);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  return code;
}

template <class Handles, class Call>
Codes RunBoth(const Call& call, Stream& stream) {
  Codes codes;
  {
    const Handles handles(call);
    std::uint64_t size = 99;
    aclOpExecutor* executor = nullptr;
    codes.phase1 = handles.Phase1(call, &size, &executor);
    if (codes.phase1 != 0) return codes;
    EXPECT_EQ(size, 0U);
    codes.phase2 = Handles::Phase2(size, executor, stream.get());
  }
  codes.synchronize = stream.Synchronize();
  return codes;
}

}  // namespace

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

Spec SpecOf(const TensorView& view) {
  Spec spec;
  spec.dims.assign(view.shape().begin(), view.shape().end());
  spec.strides.assign(view.strides().begin(), view.strides().end());
  spec.dtype = ToAcl(view.dtype());
  std::int64_t low = 0;
  std::int64_t high = 0;
  bool empty = false;
  for (std::size_t i = 0; i < spec.dims.size(); ++i) {
    empty = empty || spec.dims[i] == 0;
    const std::int64_t reach = (spec.dims[i] - 1) * spec.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  spec.offset = empty ? 0 : -low;
  spec.storage = {empty ? 0 : high - low + 1};
  const auto bytes = static_cast<std::int64_t>(SizeOf(view.dtype()));
  spec.data = empty ? view.data() : static_cast<std::byte*>(view.data()) + low * bytes;
  return spec;
}
Spec SpecOf(Tensor& tensor) { return SpecOf(tensor.out()); }
Spec NotGiven() {
  Spec spec;
  spec.given = false;
  return spec;
}

AclTensor::AclTensor(const Spec& spec) {
  if (!spec.given) return;
  const std::vector<std::int64_t>& storage = spec.storage.empty() ? spec.dims : spec.storage;
  handle_ =
      aclCreateTensor(spec.dims.data(), spec.dims.size(), static_cast<aclDataType>(spec.dtype),
                      spec.strides.empty() ? nullptr : spec.strides.data(), spec.offset,
                      spec.format, storage.data(), storage.size(), spec.data);
  EXPECT_NE(handle_, nullptr);
  live_ = true;
  if (spec.stale) Destroy();
}

void AclTensor::Destroy() {
  if (live_) {
    EXPECT_EQ(aclDestroyTensor(handle_), 0);
  }
  live_ = false;
}

Stream::Stream() {
  static const int initialised = [] {
    const int code = aclInit(nullptr);
    return code != 0 ? code : aclrtSetDevice(0);
  }();
  EXPECT_EQ(initialised, 0);
  EXPECT_EQ(aclrtCreateStream(&stream_), 0);
}
Stream::~Stream() { EXPECT_EQ(aclrtDestroyStream(stream_), 0); }

std::string TakeError() {
  const char* const text = aclGetRecentErrMsg();
  return text == nullptr ? std::string() : text;
}

ForwardCall CallOf(ForwardInputs& inputs, ForwardOutputs& outputs) {
  ForwardCall call;
  call.tokens = SpecOf(inputs.tokens);
  call.map = SpecOf(inputs.routing_map);
  call.probs = inputs.probs ? SpecOf(*inputs.probs) : NotGiven();
  call.num_out_tokens = inputs.num_out_tokens;
  call.drop_and_pad = inputs.drop_and_pad;
  call.tokens_out = SpecOf(outputs.permuted_tokens);
  call.probs_out = outputs.permuted_probs ? SpecOf(*outputs.permuted_probs) : NotGiven();
  call.indices_out = SpecOf(outputs.sorted_indices);
  return call;
}

GradCall CallOf(GradInputs& inputs, GradOutputs& outputs) {
  GradCall call;
  call.rows = SpecOf(*inputs.permuted_tokens_grad);
  call.probs = inputs.permuted_probs_grad ? SpecOf(*inputs.permuted_probs_grad) : NotGiven();
  call.indices = SpecOf(inputs.sorted_indices);
  call.map = inputs.routing_map ? SpecOf(*inputs.routing_map) : NotGiven();
  call.num_experts = inputs.num_experts;
  call.num_tokens = inputs.num_tokens;
  call.drop_and_pad = inputs.drop_and_pad;
  call.tokens_out = SpecOf(*outputs.tokens_grad);
  call.probs_out = outputs.probs_grad ? SpecOf(*outputs.probs_grad) : NotGiven();
  return call;
}

std::ostream& operator<<(std::ostream& out, const Codes& codes) {
  return out << codes.phase1 << ", " << codes.phase2 << ", " << codes.synchronize;
}

int Phase1(const ForwardCall& call) { return RunPhase1<Forward>(call); }
int Phase1(const GradCall& call) { return RunPhase1<Grad>(call); }
Codes RunCall(const ForwardCall& call, Stream& stream) { return RunBoth<Forward>(call, stream); }
Codes RunCall(const GradCall& call, Stream& stream) { return RunBoth<Grad>(call, stream); }

}  // namespace moeperm::test
