// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors_writer.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "io/error.hpp"
#include "io/output_file.hpp"

namespace moeperm::io {
namespace {

constexpr std::size_t kAlignment = 64;  // the format asks for 8; a cache line suits streaming

std::string HeaderText(const std::vector<TensorInfo>& tensors, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (const TensorInfo& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.type->name},
                           {"shape", tensor.shape},
                           {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string text = header.dump();
  const std::size_t end = kLengthBytes + text.size();
  text.append((kAlignment - end % kAlignment) % kAlignment, ' ');
  return text;
}

std::vector<TensorInfo> Layout(const std::string& path, const std::vector<OutputTensor>& tensors) {
  std::vector<TensorInfo> layout;
  std::uint64_t begin = 0;
  for (const OutputTensor& tensor : tensors) {
    TensorInfo info{tensor.name, FindElementType(tensor.dtype), tensor.shape, begin, 0};
    std::uint64_t bytes = 0;
    if (!DenseBytes(info.shape, info.type->size, &bytes) ||
        __builtin_add_overflow(begin, bytes, &info.end) || info.end > INT64_MAX) {
      Fail("{}: tensor {} [{}] is too large for a file", path, Quote(info.name),
           fmt::join(info.shape, ", "));
    }
    begin = info.end;
    layout.push_back(std::move(info));
  }
  return layout;
}

}  // namespace

OutputTensor InMemory(std::string name, const ConstTensorView& view) {
  std::uint64_t bytes = SizeOf(view.dtype());
  for (const std::int64_t dim : view.shape()) bytes *= static_cast<std::uint64_t>(dim);
  const std::span data(static_cast<const std::byte*>(view.data()), bytes);
  return {std::move(name),
          view.dtype(),
          {view.shape().begin(), view.shape().end()},
          [data](const Sink& sink) {
            constexpr std::size_t kPiece = std::size_t{1} << 24;  // progress a few times a second
            for (std::size_t at = 0; at < data.size(); at += kPiece) {
              sink(data.subspan(at, std::min(kPiece, data.size() - at)));
            }
          }};
}

void WriteSafetensors(const std::string& path, std::vector<OutputTensor> tensors,
                      const Metadata& metadata, const WriteProgress& progress) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const OutputTensor& a, const OutputTensor& b) {
                     return SizeOf(a.dtype) > SizeOf(b.dtype);
                   });
  const std::vector<TensorInfo> layout = Layout(path, tensors);
  const std::string header = HeaderText(layout, metadata);
  const std::uint64_t data_bytes = layout.empty() ? 0 : layout.back().end;

  OutputFile file(path, kLengthBytes + header.size() + data_bytes);
  std::array<std::byte, kLengthBytes> length{};
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length[i] = static_cast<std::byte>(header.size() >> (8 * i) & 0xFF);
  }
  file.Write(length);
  file.Write(std::as_bytes(std::span(header)));

  std::uint64_t written = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].write([&](std::span<const std::byte> piece) {
      file.Write(piece);
      written += piece.size();
      if (progress) progress(written, data_bytes);
    });
    if (written != layout[i].end) {
      Fail("{}: tensor {} wrote {} bytes where {} belong", path, Quote(layout[i].name),
           written - layout[i].begin, layout[i].bytes());
    }
  }
  file.Commit();
}

}  // namespace moeperm::io
