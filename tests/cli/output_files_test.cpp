// SPDX-License-Identifier: Apache-2.0
// An output appears whole or not at all.
#include <unistd.h>

#include "support.hpp"

namespace moeperm::cli_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class OutputFiles : public CliTest {
 protected:
  [[nodiscard]] Outcome Make(const std::string& name, const std::string& shell_prefix = "") const {
    return Run({"make-case", name, "--tokens", "64", "--hidden", "64"}, shell_prefix);
  }
};

TEST_F(OutputFiles, NothingIsLeftWhenTheFileIsTooLarge) {
  WriteBytes("c", "before");
  const Outcome outcome = Make("c", "ulimit -f 8;");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("File too large"));
  EXPECT_THAT(FilesInDirectory(), ElementsAre("c"));
  EXPECT_EQ(ReadBytes("c"), "before");
}

TEST_F(OutputFiles, AFullDiskIsNamed) {
  // More than any disk has.
  const Outcome outcome = Run({"make-case", "c", "--tokens", "100000", "--hidden", "2147483647",
                               "--experts", "1", "--top-k", "0"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, testing::AnyOf(HasSubstr("No space left"), HasSubstr("File too large"),
                                          HasSubstr("out of memory")));
  EXPECT_THAT(FilesInDirectory(), testing::IsEmpty());
}

TEST_F(OutputFiles, PlacesThatTakeNoFile) {
  EXPECT_THAT(Make("missing/c").err, HasSubstr("No such file or directory"));
  std::filesystem::create_directory(Path("directory"));
  EXPECT_THAT(Make("directory").err, HasSubstr("is a directory"));
  EXPECT_THAT(Make("/dev/null").err, HasSubstr("not a regular file"));
  EXPECT_EQ(Make("").status, 2);
  if (::geteuid() != 0) {
    std::filesystem::permissions(Path("directory"), std::filesystem::perms::owner_read);
    EXPECT_THAT(Make("directory/c").err, HasSubstr("Permission denied"));
  }
}

TEST_F(OutputFiles, ALinkStaysALink) {
  WriteBytes("target", "before");
  std::filesystem::create_symlink("target", Path("link"));
  ASSERT_EQ(Make("link").status, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  EXPECT_GT(std::filesystem::file_size(Path("target")), 1000U);
  EXPECT_THAT(FilesInDirectory(), ElementsAre("link", "target"));
}

TEST_F(OutputFiles, RightsAreThoseOfAnyNewFile) {
  ASSERT_EQ(Make("c", "umask 027;").status, 0);
  EXPECT_EQ(std::filesystem::status(Path("c")).permissions(), std::filesystem::perms(0640));
}

TEST_F(OutputFiles, AReplacedFileKeepsItsRights) {
  ASSERT_EQ(Make("c").status, 0);
  std::filesystem::permissions(Path("c"), std::filesystem::perms(0600));
  ASSERT_EQ(Make("c").status, 0);
  EXPECT_EQ(std::filesystem::status(Path("c")).permissions(), std::filesystem::perms(0600));
}

TEST_F(OutputFiles, AnInputIsNotReplacedByTheOutput) {
  ASSERT_EQ(Make("c").status, 0);
  RunOk({"permute", "c", "p"});
  std::filesystem::create_hard_link(Path("c"), Path("other_name"));
  const std::string before = ReadBytes("c");
  const std::string permuted = ReadBytes("p");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"permute", "c", "c"},
                                             {"permute", "c", "./c"},
                                             {"permute", "c", "other_name"},
                                             {"grad", "c", "p", "c"},
                                             {"grad", "c", "p", "p"}}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, testing::HasSubstr("is also an input"));
  }
  EXPECT_TRUE(ReadBytes("c") == before);
  EXPECT_TRUE(ReadBytes("p") == permuted);
}

TEST_F(OutputFiles, NamesThatAreNoPlace) {
  ASSERT_EQ(Make("c").status, 0);
  EXPECT_THAT(Run({"permute", "c", ""}).err, testing::HasSubstr("has no name"));
  std::filesystem::create_symlink("nowhere", Path("dangling"));
  EXPECT_THAT(Run({"permute", "c", "dangling"}).err, testing::HasSubstr("does not exist"));
  EXPECT_TRUE(std::filesystem::is_symlink(Path("dangling")));
}

TEST_F(OutputFiles, AnInterruptLeavesNothing) {
  const Outcome outcome =
      Run({"make-case", "c", "--tokens", "30000", "--hidden", "8192", "--dtype", "bfloat16"},
          "timeout 0.2");
  if (outcome.status == 0) GTEST_SKIP() << "faster than the interrupt";
  EXPECT_THAT(FilesInDirectory(), testing::IsEmpty());
}

TEST_F(OutputFiles, AnErrorWritesNothing) {
  ASSERT_EQ(Make("c").status, 0);
  EXPECT_EQ(Run({"permute", "c", "p", "--top-k", "1"}).status, 2);
  EXPECT_THAT(FilesInDirectory(), ElementsAre("c"));
}

}  // namespace
}  // namespace moeperm::cli_test
