// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace moeperm::cli_test {
namespace {

namespace fs = std::filesystem;

std::string Slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string ShellQuote(const std::string& text) {
  std::string quoted("'");
  for (const char c : text) {
    if (c == '\'') {
      quoted.append("'\\''");
    } else {
      quoted.push_back(c);
    }
  }
  quoted.push_back('\'');
  return quoted;
}

std::uint64_t HeaderLength(const std::string& bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return length;
}

}  // namespace

CliTest::CliTest() {
  std::string name = (fs::temp_directory_path() / "moeperm-cli-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
  directory_ = name;
}

CliTest::~CliTest() {
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

Outcome CliTest::Run(const std::vector<std::string>& arguments,
                     const std::string& shell_prefix) const {
  // The captured output lies outside the directory, so that tests can look at what is in there.
  const std::string out = directory_.string() + ".out";
  const std::string err = directory_.string() + ".err";
  std::string command;
  command.append("(cd ").append(ShellQuote(directory_.string()));
  command.append("; ").append(shell_prefix).append(" ").append(ShellQuote(MOEPERM_CLI));
  for (const std::string& argument : arguments) command.append(" ").append(ShellQuote(argument));
  command.append(") > ").append(ShellQuote(out)).append(" 2> ").append(ShellQuote(err));
  command.append(" < /dev/null");
  const int status = std::system(command.c_str());
  Outcome outcome;
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = Slurp(out);
  outcome.err = Slurp(err);
  fs::remove(out);
  fs::remove(err);
  return outcome;
}

Json CliTest::RunJson(std::vector<std::string> arguments, int status) const {
  arguments.emplace_back("--json");
  const Outcome outcome = Run(arguments);
  EXPECT_EQ(outcome.status, status) << outcome.err;
  Json json = Json::parse(outcome.out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << outcome.out;
  return json;
}

void CliTest::RunOk(const std::vector<std::string>& arguments) const {
  const Outcome outcome = Run(arguments);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
}

std::vector<std::string> CliTest::FilesInDirectory() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void CliTest::WriteBytes(const std::string& name, std::string_view bytes) const {
  std::ofstream file(Path(name), std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.good());
}

std::string CliTest::ReadBytes(const std::string& name) const { return Slurp(Path(name)); }

void CliTest::WriteRaw(const std::string& name, std::string_view header,
                       std::string_view data) const {
  std::string bytes(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, sizeof(length));
  WriteBytes(name, bytes.append(header).append(data));
}

Json CliTest::ReadHeader(const std::string& name) const {
  const std::string bytes = ReadBytes(name);
  return Json::parse(bytes.substr(8, HeaderLength(bytes)));
}

std::string CliTest::ReadTensor(const std::string& name, const std::string& tensor) const {
  const std::string bytes = ReadBytes(name);
  const std::uint64_t length = HeaderLength(bytes);
  const Json header = Json::parse(bytes.substr(8, length));
  const std::uint64_t begin = header.at(tensor).at("data_offsets")[0];
  const std::uint64_t end = header.at(tensor).at("data_offsets")[1];
  return bytes.substr(8 + length + begin, end - begin);
}

}  // namespace moeperm::cli_test
