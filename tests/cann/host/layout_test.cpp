// SPDX-License-Identifier: Apache-2.0
// What layouts say of tilings.
#include "cann/host/layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "problems.hpp"

namespace moeperm::cann::host_test {
namespace {

using host::Layout;
using host::Platform;
using host::Stage;
using host::TotalOf;
using testing::HasSubstr;

Layout LayoutOf(const char* op, const host::Problem& problem, const Platform& platform = {}) {
  Layout layout;
  host::FindOp(op)->describe(problem, platform, TilingOf(op, problem, platform), &layout);
  return layout;
}

std::int64_t CoresOf(const Stage& stage) {
  std::int64_t cores = 0;
  for (const host::Group& group : stage.cores) cores += group.count;
  return cores;
}

void ExpectBufferIsFull(const Stage& stage, const Platform& platform) {
  std::int64_t bytes = 0;
  for (const host::BufferPart& part : stage.buffer) {
    EXPECT_GT(part.bytes, 0) << part.name;
    bytes += part.bytes;
  }
  EXPECT_EQ(bytes, platform.ub_bytes);
  EXPECT_EQ(stage.ub_bytes, platform.ub_bytes);
}

TEST(Layouts, GradNotPadded) {
  Sizes sizes;
  sizes.tokens = 4099;
  sizes.num_out_tokens = 4099 * 8;
  sizes.hidden = 20000;
  const Layout layout = LayoutOf(kGrad, GradProblem(sizes));
  ASSERT_EQ(layout.stages.size(), 1U);
  const Stage& stage = layout.stages[0];
  EXPECT_EQ(TotalOf(stage.cores), 4099);
  EXPECT_EQ(CoresOf(stage), 40);
  EXPECT_EQ(TotalOf(stage.steps), stage.cores[0].each);
  EXPECT_EQ(TotalOf(stage.row_parts), 20000);
  ExpectBufferIsFull(stage, {});
  EXPECT_TRUE(layout.notes.empty());
}

TEST(Layouts, GradPadded) {
  Sizes sizes;
  sizes.drop_and_pad = true;
  const Layout layout = LayoutOf(kGrad, GradProblem(sizes));
  ASSERT_EQ(layout.stages.size(), 1U);
  EXPECT_EQ(TotalOf(layout.stages[0].cores), 1024);
  EXPECT_EQ(CoresOf(layout.stages[0]), 40);
  EXPECT_TRUE(layout.stages[0].buffer.empty());
}

TEST(Layouts, GradNotes) {
  Sizes sizes;
  sizes.tokens = 4;
  sizes.num_out_tokens = 10;
  EXPECT_THAT(LayoutOf(kGrad, GradProblem(sizes)).notes[0], HasSubstr("does not divide"));
  sizes.num_out_tokens = 3;
  EXPECT_THAT(LayoutOf(kGrad, GradProblem(sizes)).notes[0], HasSubstr("no token has a slot"));
  Platform platform;
  platform.ub_bytes = 7936;
  const Layout layout = LayoutOf(kGrad, GradProblem({}), platform);
  EXPECT_THAT(layout.notes[0], HasSubstr("no part of a row fits"));
  EXPECT_TRUE(layout.stages[0].row_parts.empty());
}

TEST(Layouts, ForwardNotPadded) {
  Sizes sizes;
  sizes.tokens = 5000;
  sizes.experts = 70;
  sizes.num_out_tokens = 5000 * 6;
  for (const std::int64_t hidden : {1000, 100000}) {
    sizes.hidden = hidden;
    const Layout layout = LayoutOf(kForward, ForwardProblem(sizes));
    ASSERT_EQ(layout.stages.size(), 3U);
    EXPECT_EQ(TotalOf(layout.stages[0].cores), 5000 * 70);
    EXPECT_EQ(TotalOf(layout.stages[1].cores), 5000 * 6);
    EXPECT_EQ(TotalOf(layout.stages[2].cores), 5000);
    EXPECT_EQ(TotalOf(layout.stages[2].row_parts), hidden);
    for (const Stage& stage : layout.stages) {
      ExpectBufferIsFull(stage, {});
      EXPECT_EQ(TotalOf(stage.steps), stage.cores[0].each) << stage.title;
    }
  }
}

TEST(Layouts, ForwardPadded) {
  Sizes sizes;
  sizes.drop_and_pad = true;
  const Layout layout = LayoutOf(kForward, ForwardProblem(sizes));
  ASSERT_EQ(layout.stages.size(), 1U);
  EXPECT_EQ(TotalOf(layout.stages[0].cores), 64);
  EXPECT_EQ(CoresOf(layout.stages[0]), 40);
  ExpectBufferIsFull(layout.stages[0], {});
}

// The largest dimensions there are, also with more cores than anyone has.
TEST(Layouts, OfGiants) {
  Sizes sizes;
  sizes.tokens = std::int64_t{1} << 62;
  sizes.hidden = sizes.num_out_tokens = sizes.tokens;
  Platform platform;
  platform.vector_cores = (std::int64_t{1} << 31) - 1;
  for (const bool drop_and_pad : {false, true}) {
    sizes.drop_and_pad = drop_and_pad;
    EXPECT_FALSE(LayoutOf(kGrad, GradProblem(sizes), platform).stages.empty());
  }
  EXPECT_EQ(TotalOf({{std::int64_t{1} << 62, 4}}), std::numeric_limits<std::int64_t>::max());
}

TEST(Meanings, EveryFieldHasOne) {
  for (const host::OpDef& op : host::Ops()) {
    for (const bool drop_and_pad : {false, true}) {
      for (const bool probs : {false, true}) {
        host::CallSizes sizes;
        sizes.drop_and_pad = drop_and_pad;
        if (probs) sizes.probs = sizes.dtype;
        host::Tiling tiling;
        const Status status = op.compute_tiling(op.problem_of(sizes), {}, &tiling);
        // The padded way back without probs has no tiling.
        const bool none = op.type == "MoeTokenUnpermuteWithRoutingMap" && drop_and_pad && !probs;
        EXPECT_EQ(status.ok(), !none) << op.type << ": " << status.message();
        std::set<std::string_view> names;
        for (const host::TilingField& field : tiling.fields) {
          EXPECT_NE(host::MeaningOf(field.name), "") << field.name;
          EXPECT_TRUE(names.insert(field.name).second) << field.name;
        }
      }
    }
  }
  EXPECT_EQ(host::MeaningOf("nonsense"), "");
}

}  // namespace
}  // namespace moeperm::cann::host_test
