// SPDX-License-Identifier: Apache-2.0
// The door as a test uses it: handles that go away by themselves, calls of both phases.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "support/pair.hpp"

namespace moeperm::test {

aclDataType ToAcl(DType dtype);

// What a tensor is made of; a test changes what it wants wrong.
struct Spec {
  std::vector<std::int64_t> dims;
  int dtype = ACL_FLOAT;
  void* data = nullptr;
  std::vector<std::int64_t> strides = {};  // none: row-major
  std::int64_t offset = 0;
  std::vector<std::int64_t> storage = {};  // none: dims
  aclFormat format = ACL_FORMAT_ND;
  bool given = true;  // false: a null pointer is passed
  bool stale = false;
};
// The view with its storage from the lowest address on, one dimension, as torch says it.
Spec SpecOf(const TensorView& view);
Spec SpecOf(Tensor& tensor);
Spec NotGiven();

class AclTensor {
 public:
  explicit AclTensor(const Spec& spec);
  ~AclTensor() { Destroy(); }
  AclTensor(const AclTensor&) = delete;
  AclTensor& operator=(const AclTensor&) = delete;

  [[nodiscard]] aclTensor* get() const { return handle_; }
  void Destroy();

 private:
  aclTensor* handle_ = nullptr;
  bool live_ = false;
};

// A stream; the first one of the process initialises.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] aclrtStream get() const { return stream_; }
  int Synchronize() { return aclrtSynchronizeStream(stream_); }

 private:
  aclrtStream stream_ = nullptr;
};

// The text of the last error; empty where there is none.
std::string TakeError();

struct ForwardCall {
  Spec tokens, map, probs, tokens_out, probs_out, indices_out;
  std::int64_t num_out_tokens = 0;
  bool drop_and_pad = false;
  bool null_size = false;
  bool null_executor = false;
};
struct GradCall {
  Spec rows, probs, indices, map;
  std::int64_t num_experts = 0;
  std::int64_t num_tokens = 0;
  bool drop_and_pad = false;
  Spec tokens_out, probs_out;
  bool null_size = false;
  bool null_executor = false;
};
ForwardCall CallOf(ForwardInputs& inputs, ForwardOutputs& outputs);
GradCall CallOf(GradInputs& inputs, GradOutputs& outputs);

struct Codes {
  int phase1 = 0;
  int phase2 = 0;
  int synchronize = 0;
  friend bool operator==(const Codes&, const Codes&) = default;
};
std::ostream& operator<<(std::ostream& out, const Codes& codes);

// Phase 1 alone; an executor that comes out is destroyed.
int Phase1(const ForwardCall& call);
int Phase1(const GradCall& call);
// Both phases; the tensors are destroyed before the stream is synchronised.
Codes RunCall(const ForwardCall& call, Stream& stream);
Codes RunCall(const GradCall& call, Stream& stream);

}  // namespace moeperm::test
