// SPDX-License-Identifier: Apache-2.0
// Tilings that fit neither the tensors nor a core: a status, and not a byte outside.
#include "support.hpp"

namespace moeperm::test {
namespace {

using testing::Test;

constexpr std::int64_t kUb = 196352;

class ModelHostile : public Test {
 protected:
  ModelHostile()
      : rows_(6 * 8, 0x11), indices_(Memory::Of(std::vector<std::int32_t>{0, 4, 1, 2, 3, 5})) {
    tiling_ = GradTiling({.rows = 6, .hidden = 2, .experts = 3, .tokens = 3}, DType::kFloat32, {});
  }

  Status Run(host::DType dtype = host::DType::kFloat32, std::int64_t ub = kUb) {
    model::PermuteGradBuffers buffers;
    buffers.rows = rows_.in();
    buffers.probs = rows_.in();
    buffers.sorted_indices = indices_.in();
    buffers.tokens_grad = grads_.out();
    buffers.probs_grad = grads_.out();
    Status status = RunPermuteGrad(tiling_, dtype, ub, buffers, &report_);
    EXPECT_TRUE(grads_.GuardsIntact());
    return status;
  }
  void Set(std::string_view name, std::int64_t value) {
    for (host::TilingField& field : tiling_.fields) {
      if (field.name == name) field.value = value;
    }
  }

  Memory rows_;
  Memory indices_;
  Memory grads_{24, 0};
  host::Tiling tiling_;
  model::Report report_;
};

void ExpectRefused(const Status& status, const std::string& text) {
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
}

TEST_F(ModelHostile, TheUntouchedTilingRuns) { EXPECT_TRUE(Run().ok()); }

TEST_F(ModelHostile, AnotherKey) {
  tiling_.key = 2;
  ExpectRefused(Run(), "tiling key 2");
}

TEST_F(ModelHostile, AnotherDType) { ExpectRefused(Run(host::DType::kFloat64), "float64"); }

TEST_F(ModelHostile, AFieldIsMissing) {
  tiling_.fields.pop_back();
  ExpectRefused(Run(), "has 16 fields, not 17");
}

TEST_F(ModelHostile, TooManyCores) {
  tiling_.block_dim = std::int64_t{1} << 40;
  ExpectRefused(Run(), "block_dim = 1099511627776");
  tiling_.block_dim = -1;
  ExpectRefused(Run(), "block_dim = -1");
}

TEST_F(ModelHostile, MoreTokensThanTheTensorsHave) {
  Set("tokens_core_length", 2);
  Set("tokens_splited_length", 2);
  ExpectRefused(Run(), "sorted_indices, which has 24");
}

TEST_F(ModelHostile, ALongerRowThanTheTensorsHave) {
  Set("hidden_size", 3);
  Set("hidden_splited_length", 3);
  ExpectRefused(Run(), "would touch bytes");
}

TEST_F(ModelHostile, MoreThanTheUnifiedBuffer) {
  Set("hidden_splited_length", 1 << 20);
  ExpectRefused(Run(), "unified buffer: no room for the rows");
  Set("hidden_splited_length", 2);
  ExpectRefused(Run(host::DType::kFloat32, 1000), "unified buffer: no room");
}

TEST_F(ModelHostile, ATokenTileAboveItsPiece) {
  Set("tokens_splited_remain", 1 << 20);
  EXPECT_FALSE(Run().ok());
}

TEST_F(ModelHostile, EveryFieldAtItsExtremes) {
  const host::Tiling sound = tiling_;
  for (const std::int64_t key : {0, 1000}) {
    for (std::size_t i = 0; i < sound.fields.size(); ++i) {
      for (const std::int64_t value :
           {INT64_MIN, INT64_MIN + 1, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1},
            std::int64_t{7}, std::int64_t{1} << 31, std::int64_t{1} << 62, INT64_MAX}) {
        tiling_ = sound;
        tiling_.key = key;
        tiling_.fields[i].value = value;
        (void)Run();  // any status; neither a crash nor a byte outside, nor for ever
        EXPECT_LE(report_.Total().ub_peak, kUb);
      }
    }
  }
}

TEST_F(ModelHostile, AnIndexThatIsNoToken) {
  tiling_ = GradTiling({.rows = 6, .hidden = 2, .experts = 3, .tokens = 2, .padded = true},
                       DType::kFloat32, {});
  const Status status = Run();
  EXPECT_EQ(status.code(), Code::kIndexOutOfRange);
  EXPECT_EQ(status.message(), "sorted_indices[1] = 4 but there are 2 tokens");
}

TEST(ModelIndexAdd, NothingToAddIsRefused) {
  host::Tiling tiling;
  for (const model::IndexAddShape& shape :
       {model::IndexAddShape{0, 4, 4}, {4, 0, 4}, {4, 4, 0}, {4, 4, -1}}) {
    EXPECT_EQ(model::IndexAddTiling(shape, host::DType::kFloat32, {}, &tiling).code(),
              Code::kInvalidArgument);
  }
  EXPECT_EQ(model::IndexAddTiling({4, 4, 4}, host::DType::kInt32, {}, &tiling).code(),
            Code::kInvalidArgument);
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_EQ(model::IndexAddTiling({kHuge, kHuge, kHuge}, host::DType::kFloat32, {}, &tiling).code(),
            Code::kInvalidArgument);
}

TEST(ModelIndexAdd, FieldsOfAKnownShape) {
  host::Tiling tiling;
  host::Platform platform;
  platform.vector_cores = 48;
  ASSERT_TRUE(
      model::IndexAddTiling({4096, 4096, 7168}, host::DType::kBFloat16, platform, &tiling).ok());
  // (196352 - 13312) / 7 = 26148, in blocks of 32 bytes 26144: 13072 elements. A row fits.
  EXPECT_EQ(tiling.key, 3);
  EXPECT_EQ(tiling["maxSize"], 13072);
  EXPECT_EQ(tiling["eachLoop"], 1);
  EXPECT_EQ(tiling["eachTail"], 7168);
  EXPECT_EQ(tiling["usedCoreNum"], 48);
  EXPECT_EQ(tiling["eachIndexCount"], 86);
  EXPECT_EQ(tiling["lastIndexCount"], 4096 - 86 * 47);
}

TEST(ModelIndexAdd, EveryFieldAtItsExtremes) {
  host::Tiling sound;
  ASSERT_TRUE(model::IndexAddTiling({3, 4, 5}, host::DType::kFloat16, {}, &sound).ok());
  const Memory value(4 * 5 * 2, 0x11);
  const Memory indices = Memory::Of(std::vector<std::int32_t>{0, 0, 1, 2});
  const Memory positions = Memory::Of(std::vector<std::int32_t>{1, 3, 0, 2});
  for (std::size_t i = 0; i < sound.fields.size(); ++i) {
    for (const std::int64_t bad : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1},
                                   std::int64_t{6}, std::int64_t{1} << 40, INT64_MAX}) {
      host::Tiling tiling = sound;
      tiling.fields[i].value = bad;
      Memory var(3 * 5 * 2, 0);
      model::IndexAddBuffers buffers;
      buffers.value = value.in();
      buffers.sorted_indices = indices.in();
      buffers.positions = positions.in();
      buffers.var = var.out();
      model::Report report;
      (void)RunIndexAdd(tiling, host::DType::kFloat16, kUb, buffers, &report);
      EXPECT_TRUE(var.GuardsIntact());
      EXPECT_LE(report.Total().ub_peak, kUb);
    }
  }
}

}  // namespace
}  // namespace moeperm::test
