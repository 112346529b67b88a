// SPDX-License-Identifier: Apache-2.0
// Any tensors for any of the ten operators beside the pair: every code is a documented one, and
// nothing is written outside the storages.
#include <algorithm>
#include <array>
#include <deque>
#include <set>

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
#include "support/random.hpp"

namespace moeperm::test {
namespace {

struct Arguments {
  std::array<aclTensor*, 8> t;
  const aclIntArray* ints;
  std::int64_t number;
  bool flag;
  std::uint64_t* size;
  aclOpExecutor** executor;
};

// Of each operator: the kinds of its tensors (f floats, i indices, m a map), and its call.
struct Operator {
  std::string kinds;
  int (*phase1)(const Arguments&);
};
const Operator kOperators[] = {
    {"fifi",
     [](const Arguments& a) {
       return aclnnMoeTokenPermuteGetWorkspaceSize(a.t[0], a.t[1], a.number, a.flag, a.t[2], a.t[3],
                                                   a.size, a.executor);
     }},
    {"fiffif",
     [](const Arguments& a) {
       return aclnnMoeTokenPermuteWithEpGetWorkspaceSize(a.t[0], a.t[1], a.t[2], a.ints, a.number,
                                                         a.flag, a.t[3], a.t[4], a.t[5], a.size,
                                                         a.executor);
     }},
    {"fif",
     [](const Arguments& a) {
       return aclnnMoeTokenPermuteGradGetWorkspaceSize(a.t[0], a.t[1], a.number, a.flag, a.t[2],
                                                       a.size, a.executor);
     }},
    {"fifff",
     [](const Arguments& a) {
       return aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
           a.t[0], a.t[1], a.t[2], a.number, a.ints, a.flag, a.t[3], a.t[4], a.size, a.executor);
     }},
    {"fiff",
     [](const Arguments& a) {
       return aclnnMoeTokenUnpermuteGetWorkspaceSize(a.t[0], a.t[1], a.t[2], a.flag, a.ints, a.t[3],
                                                     a.size, a.executor);
     }},
    {"fiff",
     [](const Arguments& a) {
       return aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(
           a.t[0], a.t[1], a.t[2], a.number, a.ints, a.flag, nullptr, a.t[3], a.size, a.executor);
     }},
    {"ffifff",
     [](const Arguments& a) {
       return aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
           a.t[0], a.t[1], a.t[2], a.t[3], a.flag, a.ints, a.t[4], a.t[5], a.size, a.executor);
     }},
    {"fiffff",
     [](const Arguments& a) {
       return aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(a.t[0], a.t[1], a.t[2], a.t[3],
                                                               a.flag, nullptr, a.ints, a.number,
                                                               a.t[4], a.t[5], a.size, a.executor);
     }},
    {"fimffiif",
     [](const Arguments& a) {
       return aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
           a.t[0], a.t[1], a.t[2], a.t[3], a.flag, a.ints, a.t[4], a.t[5], a.t[6], a.t[7], a.size,
           a.executor);
     }},
    {"fiimffff",
     [](const Arguments& a) {
       return aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
           a.t[0], a.t[1], a.t[2], a.t[3], a.t[4], a.t[5], a.flag, a.ints, a.t[6], a.t[7], a.size,
           a.executor);
     }},
};

TEST(CannFamilyHostile, AnyTensors) {
  Stream stream;
  Random random(20270);
  const std::set<int> first = {0, 161001, 161002, 561002, 561103};
  std::array<std::array<std::int32_t, 64>, 8> memory{};
  int good = 0;
  for (int i = 0; i < 60000; ++i) {
    const Operator& one = kOperators[random.Below(std::ssize(kOperators))];
    const std::int64_t sizes[] = {random.Below(5), random.Below(5), 1 + random.Below(3)};
    std::array<Spec, 8> specs;
    for (std::size_t at = 0; at < specs.size(); ++at) {
      for (std::int32_t& value : memory[at]) value = static_cast<std::int32_t>(random.Below(9)) - 1;
      Spec& spec = specs[at];
      spec.given = at < one.kinds.size() && !random.Chance(8);
      const char kind = at < one.kinds.size() ? one.kinds[at] : 'f';
      spec.dtype = kind == 'i' ? ACL_INT32 : kind == 'm' ? ACL_INT8 : ACL_FLOAT;
      const std::int64_t rows = random.OneOf<std::int64_t>({sizes[0], sizes[0] * sizes[2], 3, 6});
      spec.dims =
          kind == 'i' || random.Chance(10) ? std::vector{rows} : std::vector{rows, sizes[1]};
      if (random.Chance(3)) spec.dims[0] = random.OneOf<std::int64_t>({-1, 1LL << 40, INT64_MAX});
      if (random.Chance(3)) spec.offset = random.OneOf<std::int64_t>({-1, 60, INT64_MAX});
      spec.storage = {64 - 2};
      spec.data = memory[at].data() + 1;
      memory[at].front() = memory[at].back() = 77;
    }
    std::deque<AclTensor> tensors;
    Arguments arguments{};
    for (std::size_t at = 0; at < specs.size(); ++at) {
      arguments.t[at] = tensors.emplace_back(specs[at]).get();
    }
    const auto bound = [&] {
      return random.OneOf<std::int64_t>(
          {0, 1, 3, 6, -1, INT64_MIN, INT64_MAX, sizes[0] * sizes[2]});
    };
    const std::int64_t numbers[] = {bound(), bound()};
    aclIntArray* const ints = aclCreateIntArray(numbers, random.Chance(10) ? 1 : 2);
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    arguments.ints = random.Chance(20) ? nullptr : ints;
    arguments.number = random.Chance(20) ? bound() : sizes[2];
    arguments.flag = random.Chance(30);
    arguments.size = &size;
    arguments.executor = &executor;
    const int code = one.phase1(arguments);
    ASSERT_TRUE(first.count(code)) << code << ' ' << TakeError();
    if (code == 0) {
      const int second = aclnnMoeTokenPermute(nullptr, size, executor, stream.get());
      ASSERT_TRUE(second == 0 || second == 161002) << second << ' ' << TakeError();
      const int third = stream.Synchronize();
      ASSERT_TRUE(third == 0 || third == 507035) << third << ' ' << TakeError();
      good += second == 0 && third == 0 ? 1 : 0;
    }
    ASSERT_EQ(aclDestroyIntArray(ints), 0);
    for (const auto& bytes : memory) {
      ASSERT_EQ(bytes.front(), 77);
      ASSERT_EQ(bytes.back(), 77);
    }
    if (i % 64 == 0) TakeError();
  }
  EXPECT_GT(good, 1500);
}

}  // namespace
}  // namespace moeperm::test
