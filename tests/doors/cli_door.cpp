// SPDX-License-Identifier: Apache-2.0
// The tool, on files that this writes and reads by itself.
#include <map>
#include <string>

#include "../cli/support.hpp"
#include "doors.hpp"

namespace moeperm::test::cli_door {
namespace {

using cli_test::Json;

class Directory : public cli_test::CliTest {
 public:
  using CliTest::ReadHeader;
  using CliTest::ReadTensor;
  using CliTest::RunOk;
  using CliTest::WriteRaw;

 private:
  void TestBody() override {}
};

const std::map<DType, const char*> kNames = {{DType::kFloat32, "F32"},   {DType::kFloat16, "F16"},
                                             {DType::kBFloat16, "BF16"}, {DType::kInt8, "I8"},
                                             {DType::kBool, "BOOL"},     {DType::kInt32, "I32"},
                                             {DType::kInt64, "I64"}};

// A file to be.
class File {
 public:
  File& Add(const char* name, const Tensor& tensor) {
    const std::size_t begin = data_.size();
    const std::size_t bytes = SizeOf(tensor.dtype());
    for (std::int64_t r = 0; r < tensor.rows(); ++r) {
      for (std::int64_t c = 0; c < tensor.cols(); ++c) {
        const std::uint64_t bits = tensor.Bits(r, c);
        data_.append(reinterpret_cast<const char*>(&bits), bytes);
      }
    }
    header_[name] = {{"dtype", kNames.at(tensor.dtype())},
                     {"shape", tensor.shape()},
                     {"data_offsets", {begin, data_.size()}}};
    return *this;
  }
  File& Add(const char* name, const std::optional<Tensor>& tensor) {
    return tensor ? Add(name, *tensor) : *this;
  }
  File& Say(const char* name, std::int64_t value) {
    header_["__metadata__"][name] = std::to_string(value);
    return *this;
  }
  File& Say(const char* name, bool value) {
    header_["__metadata__"][name] = value ? "true" : "false";
    return *this;
  }
  void Write(const Directory& directory, const char* name) const {
    directory.WriteRaw(name, header_.dump(), data_);
  }

 private:
  Json header_;
  std::string data_;
};

void Read(const Directory& directory, const char* name, Tensor& tensor) {
  const Json header = directory.ReadHeader("out");
  ASSERT_TRUE(header.contains(name)) << "there is no " << name;
  EXPECT_EQ(header[name]["dtype"], kNames.at(tensor.dtype())) << name;
  EXPECT_EQ(header[name]["shape"], Json(tensor.shape())) << name;
  const std::string bytes = directory.ReadTensor("out", name);
  const std::size_t element = SizeOf(tensor.dtype());
  ASSERT_EQ(bytes.size(), static_cast<std::size_t>(tensor.size()) * element) << name;
  std::size_t at = 0;
  for (std::int64_t r = 0; r < tensor.rows(); ++r) {
    for (std::int64_t c = 0; c < tensor.cols(); ++c, at += element) {
      std::uint64_t bits = 0;
      bytes.copy(reinterpret_cast<char*>(&bits), element, at);
      tensor.SetBits(r, c, bits);
    }
  }
}
void Read(const Directory& directory, const char* name, std::optional<Tensor>& tensor) {
  if (tensor) Read(directory, name, *tensor);
}

// What says how the rows were made, as `permute` writes it.
File Permuted(const BackInputs& inputs) {
  File file;
  file.Add("permuted_tokens", inputs.rows).Add("sorted_indices", inputs.sorted_indices);
  file.Say("num_out_tokens", inputs.rows.rows()).Say("num_tokens", inputs.tokens.rows());
  if (inputs.with_map) return file.Say("drop_and_pad", inputs.drop_and_pad);
  return file.Say("first_row", inputs.first_row);
}

// The case, which only has to have what the weights need.
File Weights(const BackInputs& inputs) {
  File file;
  file.Add("probs", inputs.probs);
  if (inputs.with_map) return file.Add("routing_map", inputs.routing_map);
  return file.Add("indices", Tensor(DType::kInt32, inputs.probs->shape()));
}

}  // namespace

void Call(const ForwardInputs& inputs, ForwardOutputs& outputs) {
  const Directory directory;
  File()
      .Add("tokens", inputs.tokens)
      .Add("routing_map", inputs.routing_map)
      .Add("probs", inputs.probs)
      .Say("num_out_tokens", inputs.num_out_tokens)
      .Say("top_k", inputs.top_k)
      .Say("drop_and_pad", inputs.drop_and_pad)
      .Write(directory, "case");
  directory.RunOk({"permute", "case", "out"});
  Read(directory, "permuted_tokens", outputs.permuted_tokens);
  Read(directory, "permuted_probs", outputs.permuted_probs);
  Read(directory, "sorted_indices", outputs.sorted_indices);
  Read(directory, "tokens_per_expert", outputs.tokens_per_expert);
  Read(directory, "expert_offsets", outputs.expert_offsets);
}

void Call(const GradInputs& inputs, GradOutputs& outputs) {
  const Directory directory;
  File()
      .Add("routing_map", inputs.routing_map)
      .Add("permuted_tokens_grad", inputs.permuted_tokens_grad)
      .Add("permuted_probs_grad", inputs.permuted_probs_grad)
      .Write(directory, "case");
  File()
      .Add("sorted_indices", inputs.sorted_indices)
      .Say("drop_and_pad", inputs.drop_and_pad)
      .Write(directory, "permuted");
  directory.RunOk({"grad", "case", "permuted", "out"});
  Read(directory, "tokens_grad", outputs.tokens_grad);
  Read(directory, "probs_grad", outputs.probs_grad);
}

void Call(const TableInputs& inputs, TableOutputs& outputs) {
  const Directory directory;
  File()
      .Add("tokens", inputs.tokens)
      .Add("indices", inputs.indices)
      .Add("probs", inputs.probs)
      .Say("num_experts", inputs.num_experts)
      .Write(directory, "case");
  directory.RunOk({"permute", "case", "out", "--rows",
                   std::to_string(inputs.first_row) + ":" +
                       std::to_string(inputs.first_row + inputs.num_out_tokens)});
  Read(directory, "permuted_tokens", outputs.permuted_tokens);
  Read(directory, "permuted_probs", outputs.permuted_probs);
  Read(directory, "sorted_indices", outputs.sorted_indices);
  Read(directory, "tokens_per_expert", outputs.tokens_per_expert);
}

void Call(const TableGradInputs& inputs, TableGrads& outputs) {
  const Directory directory;
  File()
      .Add("indices", Tensor(DType::kInt32, {inputs.num_tokens, inputs.top_k()}))
      .Add("permuted_tokens_grad", inputs.permuted_tokens_grad)
      .Add("permuted_probs_grad", inputs.permuted_probs_grad)
      .Write(directory, "case");
  File()
      .Add("sorted_indices", inputs.sorted_indices)
      .Say("first_row", inputs.first_row)
      .Write(directory, "permuted");
  directory.RunOk({"grad", "case", "permuted", "out"});
  Read(directory, "tokens_grad", outputs.tokens_grad);
  Read(directory, "probs_grad", outputs.probs_grad);
}

void Call(const BackInputs& inputs, BackOutputs& outputs) {
  const Directory directory;
  Permuted(inputs).Write(directory, "permuted");
  Weights(inputs).Write(directory, "case");
  directory.RunOk({"unpermute", "permuted", "out", "--probs-from", "case"});
  Read(directory, "tokens", outputs.tokens);
  Read(directory, "gathered_probs", outputs.gathered_probs);
}

void Call(const BackInputs& inputs, BackGrads& outputs) {
  const Directory directory;
  Permuted(inputs).Write(directory, "permuted");
  Weights(inputs).Write(directory, "case");
  File().Add("tokens_grad", inputs.tokens).Write(directory, "grads");
  directory.RunOk({"unpermute-grad", "permuted", "grads", "out", "--probs-from", "case"});
  Read(directory, "permuted_tokens_grad", outputs.permuted_tokens_grad);
  Read(directory, "probs_grad", outputs.probs_grad);
}

}  // namespace moeperm::test::cli_door
