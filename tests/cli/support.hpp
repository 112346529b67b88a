// SPDX-License-Identifier: Apache-2.0
// Runs the tool, and writes and reads its files without any code of the tool.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace moeperm::cli_test {

using Json = nlohmann::json;

struct Outcome {
  int status = -1;  // exit status; 128 + the signal where one ended it
  std::string out;
  std::string err;
};

// A test with a directory of its own, which is also the tool's working directory.
class CliTest : public testing::Test {
 protected:
  CliTest();
  ~CliTest() override;

  // Runs `moeperm ARGUMENTS...`. `shell_prefix` goes before, for instance "ulimit -f 1;".
  [[nodiscard]] Outcome Run(const std::vector<std::string>& arguments,
                            const std::string& shell_prefix = "") const;
  // The same with --json, expecting `status`; null where the output is not JSON.
  [[nodiscard]] Json RunJson(std::vector<std::string> arguments, int status = 0) const;
  void RunOk(const std::vector<std::string>& arguments) const;

  [[nodiscard]] std::string Path(const std::string& name) const { return directory_ / name; }
  [[nodiscard]] std::vector<std::string> FilesInDirectory() const;
  void WriteBytes(const std::string& name, std::string_view bytes) const;
  [[nodiscard]] std::string ReadBytes(const std::string& name) const;
  // A safetensors file of this header and data, whatever they say.
  void WriteRaw(const std::string& name, std::string_view header, std::string_view data) const;
  [[nodiscard]] Json ReadHeader(const std::string& name) const;
  // The bytes of one tensor.
  [[nodiscard]] std::string ReadTensor(const std::string& name, const std::string& tensor) const;

 private:
  std::filesystem::path directory_;
};

template <class T>
std::vector<T> As(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values.data()));
  return values;
}
template <class T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace moeperm::cli_test
