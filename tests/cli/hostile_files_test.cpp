// SPDX-License-Identifier: Apache-2.0
// Files that are not what they seem end in a message and exit status 2, never in a crash.
#include <sys/stat.h>

#include "support.hpp"

namespace moeperm::cli_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class HostileFiles : public CliTest {
 protected:
  void ExpectRefused(const std::string& name, const std::string& message) const {
    const Outcome outcome = Run({"routes", name});
    EXPECT_EQ(outcome.status, 2) << message;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("moeperm: error: " + name + ": "));
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_LT(outcome.err.size(), 500U);
  }
  // Of a header, with 8 bytes of data behind it.
  void ExpectHeaderRefused(const std::string& header, const std::string& message) const {
    WriteRaw("f", header, "12345678");
    ExpectRefused("f", message);
  }
};

std::string Tensor(const std::string& fields) { return R"({"x": {)" + fields + "}}"; }

TEST_F(HostileFiles, NotARegularFile) {
  ExpectRefused("missing", "No such file");
  std::filesystem::create_directory(Path("directory"));
  ExpectRefused("directory", "is a directory");
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  ExpectRefused("pipe", "is not a regular file");
  ExpectRefused("/dev/zero", "is not a regular file");
}

TEST_F(HostileFiles, TooShortOrTooLong) {
  WriteBytes("f", "");
  ExpectRefused("f", "0 bytes are too short");
  WriteBytes("f", "1234567");
  ExpectRefused("f", "7 bytes are too short");
  WriteBytes("f", BytesOf<std::uint64_t>({0}));
  ExpectRefused("f", "does not begin with '{'");
  WriteBytes("f", BytesOf<std::uint64_t>({3}) + "{}");
  ExpectRefused("f", "header length 3 does not fit into the 10 bytes");
  WriteBytes("f", BytesOf<std::uint64_t>({100'000'000}) + "{}");
  ExpectRefused("f", "header length 100000000 does not fit");
  WriteBytes("f", BytesOf<std::uint64_t>({100'000'001}) + "{}");
  ExpectRefused("f", "above the limit");
  WriteBytes("f", BytesOf<std::uint64_t>({~std::uint64_t{0}}) + "{}");
  ExpectRefused("f", "above the limit");
  WriteBytes("f", "a text file that is no safetensors file");
  ExpectRefused("f", "not a safetensors file");
}

TEST_F(HostileFiles, TruncatedAnywhere) {
  RunOk({"make-case", "c", "--tokens", "4", "--hidden", "3", "--experts", "2", "--top-k", "1"});
  const std::string whole = ReadBytes("c");
  for (std::size_t size = 0; size < whole.size(); size += 37) {
    WriteBytes("f", whole.substr(0, size));
    EXPECT_EQ(Run({"permute", "f", "p"}).status, 2) << size;
  }
  WriteBytes("f", whole + "x");
  ExpectRefused("f", "the last 1 bytes of the data belong to no tensor");
}

TEST_F(HostileFiles, NotJson) {
  ExpectHeaderRefused("[]", "does not begin with '{'");
  ExpectHeaderRefused(" {}", "does not begin with '{'");
  ExpectHeaderRefused("{", "is not JSON (byte 2)");
  ExpectHeaderRefused("{}{}", "is not JSON");
  ExpectHeaderRefused("{\"a\xFF\": 1}", "is not JSON");
  ExpectHeaderRefused(Tensor(R"("shape": [NaN])"), "is not JSON");
  ExpectHeaderRefused(Tensor(R"("shape": [1e999])"), "is not JSON");
  ExpectHeaderRefused(R"({"x": {"shape": [1,]}})", "is not JSON");
  ExpectHeaderRefused(std::string("{}\0{", 4), "is not JSON (byte 3): a NUL byte");
}

TEST_F(HostileFiles, WrongStructure) {
  ExpectHeaderRefused(R"({"x": 1})", "'x': the number 1 stands where it may not");
  ExpectHeaderRefused(R"({"x": null})", "null stands");
  ExpectHeaderRefused(R"({"x": []})", "an array stands");
  ExpectHeaderRefused(R"({"x": "y"})", "the text 'y' stands");
  ExpectHeaderRefused(R"({"x": {}})", "tensor 'x': needs");
  ExpectHeaderRefused(Tensor(R"("dtype": {})"), "an object stands");
  ExpectHeaderRefused(Tensor(R"("dtype": 1)"), "the number 1 stands");
  ExpectHeaderRefused(Tensor(R"("dtype": "F33")"), "unknown dtype 'F33'");
  ExpectHeaderRefused(Tensor(R"("dtype": "F32", "dtype": "F32")"), "'dtype' occurs twice");
  ExpectHeaderRefused(Tensor(R"("colour": "red")"), "unknown key 'colour'");
  ExpectHeaderRefused(Tensor(R"("shape": 1)"), "the number 1 stands");
  ExpectHeaderRefused(Tensor(R"("shape": [[1]])"), "an array stands");
  ExpectHeaderRefused(Tensor(R"("shape": [-1])"), "shape has the dimension -1");
  ExpectHeaderRefused(Tensor(R"("shape": [1.5])"), "the number '1.5' stands");
  ExpectHeaderRefused(Tensor(R"("shape": [true])"), "true stands");
  ExpectHeaderRefused(Tensor(R"("shape": [9223372036854775808])"), "which is too large");
  ExpectHeaderRefused(Tensor(R"("shape": [99999999999999999999])"), "stands where it may not");
  ExpectHeaderRefused(Tensor(R"("data_offsets": [0])"), "two numbers but has 1");
  ExpectHeaderRefused(Tensor(R"("data_offsets": [0, 1, 2])"), "more than two");
  ExpectHeaderRefused(Tensor(R"("data_offsets": [-8, 8])"), "data_offsets has the number -8");
  ExpectHeaderRefused(R"({"__metadata__": {"a": 1}})", "__metadata__: the number 1 stands");
  ExpectHeaderRefused(R"({"__metadata__": {"a": {}}})", "__metadata__: an object stands");
  ExpectHeaderRefused(R"({"__metadata__": {"a": "1", "a": "2"}})", "'a' occurs twice");
  ExpectHeaderRefused(R"({"__metadata__": {}, "__metadata__": {}})", "occurs twice");
}

TEST_F(HostileFiles, DeepAndLongHeaders) {
  std::string deep = R"({"x":)";
  for (int i = 0; i < 100'000; ++i) deep += '[';
  ExpectHeaderRefused(deep, "an array stands");
  std::string dims = R"("dtype": "F32", "shape": [1)";
  for (int i = 0; i < 100'000; ++i) dims += ",1";
  ExpectHeaderRefused(Tensor(dims + R"(], "data_offsets": [0, 4])"), "more than 32 dims");
  ExpectHeaderRefused("{\"" + std::string(100'000, 'n') + "\x7f\": 1}", "nnn...'");
  ExpectHeaderRefused(R"({"\u001b[31m": 1})", R"('\x1b[31m')");
}

TEST_F(HostileFiles, WrongExtents) {
  const auto expect = [&](const std::string& shape, const std::string& offsets,
                          const std::string& message) {
    ExpectHeaderRefused(
        Tensor(R"("dtype": "F32", "shape": [)" + shape + R"(], "data_offsets": [)" + offsets + "]"),
        message);
  };
  expect("2", "0, 16", "data_offsets [0, 16] do not lie in the 8 bytes");
  expect("2", "8, 0", "data_offsets [8, 0] do not lie");
  expect("2", "18446744073709551608, 0", "do not lie");
  expect("3", "0, 8", "F32 [3] is 12 bytes but data_offsets [0, 8] are 8");
  expect("1", "4, 8", "bytes 0 to 4 of the data belong to no tensor");
  expect("1", "0, 4", "the last 4 bytes of the data belong to no tensor");
  expect("4294967296, 4294967296", "0, 8", "more elements than any file");
  expect("9223372036854775807, 2", "0, 8", "more elements than any file");
  expect("4611686018427387904", "0, 0", "more elements than any file");
  ExpectHeaderRefused(
      R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
          "y": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
      "tensors 'x' and 'y' overlap at byte 4");
  ExpectHeaderRefused(
      R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
          "x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})",
      "'x' occurs twice");
}

// Shapes the format allows but the operators do not: the library's or the loader's words.
TEST_F(HostileFiles, WellFormedButUnfit) {
  const auto refused = [&](const std::string& header, const std::string& message) {
    WriteRaw("f", header, "12345678");
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"permute", "f", "p"}, {"grad", "f", "f", "g"}}) {
      const Outcome outcome = Run(arguments);
      EXPECT_EQ(outcome.status, 2) << header;
      EXPECT_THAT(outcome.err, StartsWith("moeperm: error: ")) << header;
      if (arguments[0] == "permute") {
        EXPECT_THAT(outcome.err, HasSubstr(message));
      }
    }
  };
  refused(Tensor(R"("dtype": "F32", "shape": [2], "data_offsets": [0, 8])"),
          "has no tensor 'tokens'");
  refused(R"({"tokens": {"dtype": "F64", "shape": [1, 1], "data_offsets": [0, 8]}})",
          "tensor 'tokens' has dtype F64");
  refused(R"({"tokens": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]},
              "routing_map": {"dtype": "BOOL", "shape": [4], "data_offsets": [4, 8]}})",
          "tensor 'routing_map' has shape [4]");
  refused(R"({"__metadata__": {"top_k": "1"},
              "tokens": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
              "routing_map": {"dtype": "BOOL", "shape": [2, 2], "data_offsets": [4, 8]}})",
          "tokens");
  refused(R"({"__metadata__": {"top_k": "1"},
              "tokens": {"dtype": "F32", "shape": [1, 1, 1, 1, 1], "data_offsets": [0, 4]},
              "routing_map": {"dtype": "BOOL", "shape": [2, 2], "data_offsets": [4, 8]}})",
          "tokens");
  refused(R"({"__metadata__": {"top_k": "1"},
              "tokens": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]},
              "routing_map": {"dtype": "F32", "shape": [1, 1], "data_offsets": [4, 8]}})",
          "routing_map");
}

// Claims without bytes: shapes with a 0 need none, whatever else they say.
TEST_F(HostileFiles, HugeEmptyShapes) {
  WriteRaw(
      "f",
      R"({"__metadata__": {"top_k": "9223372036854775807", "num_out_tokens": "4611686018427387904"},
               "tokens": {"dtype": "F32", "shape": [9223372036854775807, 0], "data_offsets": [0, 0]},
               "routing_map": {"dtype": "BOOL", "shape": [9223372036854775807, 0], "data_offsets": [0, 0]}})",
      "");
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"permute", "f", "p"},
                                                    {"routes", "f"},
                                                    {"check", "f"},
                                                    {"bench", "f"},
                                                    {"permute", "f", "p", "--drop-and-pad"}}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments[0];
    EXPECT_THAT(outcome.err, StartsWith("moeperm: error: "));
  }
}

}  // namespace
}  // namespace moeperm::cli_test
