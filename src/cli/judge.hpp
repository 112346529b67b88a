// SPDX-License-Identifier: Apache-2.0
// Judges outputs, of the operators or in a file, by the plain reference's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/compare.hpp"
#include "cli/tensors.hpp"
#include "reference/reference.hpp"

namespace moeperm::cli {

std::vector<std::uint8_t> BytesOf(const InputTensor& tensor);
// A vector is one column. `path`: the file it is from.
moeperm_reference::Matrix MatrixOf(const std::string& path, const char* name,
                                   const InputTensor& tensor);
std::optional<moeperm_reference::Matrix> MatrixOf(const std::string& path, const char* name,
                                                  const std::optional<InputTensor>& tensor);
std::vector<std::int64_t> IntegersOf(const std::string& path, const char* name,
                                     const InputTensor& tensor);
// Must outlive the view.
ConstTensorView ViewOf(const moeperm_reference::Matrix& matrix);
ConstTensorView ViewOf(const std::vector<std::int64_t>& integers);

// "permute", "grad", ...: what Judge::Begin() takes.
std::vector<std::string> JudgedOperators();

class Judge {
 public:
  // Of the operators; or in the file `against`, which has the outputs of the operators `of`.
  Judge(const std::string& against, std::vector<std::string> of);

  [[nodiscard]] bool from_file() const { return file_.has_value(); }
  // What follows is about this operator. false: its outputs are not to be judged.
  bool Begin(const char* operation);
  // The outputs to judge, where they are not from a file.
  void Take(std::vector<OwnedTensor> tensors) { tensors_ = std::move(tensors); }

  // Compares the output of this name; one that is not there is not judged.
  void Matrix(const char* name, const moeperm_reference::Matrix& expected, Equality equality,
              int rank);
  void Integers(const char* name, const std::vector<std::int64_t>& expected);

  // Outputs of the operators that are judged.
  [[nodiscard]] std::vector<std::string> Outputs() const;
  // Tensors of the file that no comparison was about.
  [[nodiscard]] std::vector<std::string> NotChecked() const;
  // One an output, as Compare() gives it, with "operator".
  [[nodiscard]] const Json& comparisons() const { return comparisons_; }

 private:
  [[nodiscard]] std::optional<ConstTensorView> Find(std::string_view name);
  void Add(Json comparison);

  std::vector<std::string> of_;
  std::optional<io::SafetensorsFile> file_;
  std::vector<OwnedTensor> tensors_;
  std::vector<std::unique_ptr<InputTensor>> loaded_;
  std::string operation_;
  Json comparisons_ = Json::array();
};

}  // namespace moeperm::cli
