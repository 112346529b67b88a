// SPDX-License-Identifier: Apache-2.0
// The attributes of an operator: from the options, else from a file's metadata.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

#include "io/safetensors.hpp"
#include "io/safetensors_reader.hpp"

namespace moeperm::cli {

// A case says its routes by a routing_map [tokens, experts], or by indices [tokens, top_k]: the
// index form.
struct Attributes {
  std::int64_t num_out_tokens = 0;
  std::int64_t top_k = 0;  // not padded only
  bool drop_and_pad = false;
  bool index_form = false;
  std::int64_t first_row = 0;    // index form only
  std::int64_t num_experts = 0;  // index form only; 0: not known
};

struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
// --rows BEGIN:END
CLI::Option* AddRows(CLI::App& app, std::optional<RowRange>& rows);

// Must stay where it is once added to an app.
struct AttributeOptions {
  std::optional<std::int64_t> num_out_tokens;
  std::optional<std::int64_t> capacity;
  std::optional<std::int64_t> top_k;
  std::optional<bool> drop_and_pad;
  std::optional<RowRange> rows;             // index form
  std::optional<std::int64_t> num_experts;  // index form

  void AddTo(CLI::App& app);
  // The only one the gradient has. `otherwise`: what says the mode where the option is not given.
  void AddDropAndPadTo(CLI::App& app, const char* otherwise);
};

// Throws io::Error where an attribute is found nowhere, or makes no number.
Attributes ResolveAttributes(const AttributeOptions& options, const io::SafetensorsFile& file,
                             std::int64_t tokens, std::int64_t experts);
Attributes ResolveIndexAttributes(const AttributeOptions& options, const io::SafetensorsFile& file,
                                  std::int64_t tokens, std::int64_t top_k);

// Whether the file has indices; throws where it has a routing_map too.
bool IsIndexForm(const io::SafetensorsFile& file);

// What a file's metadata say, if they do. Permuted files of the index form, and only these, say
// first_row.
std::optional<bool> FindDropAndPad(const io::SafetensorsFile& file);
std::optional<std::int64_t> FindNumOutTokens(const io::SafetensorsFile& file);
// The rows that num_out_tokens makes; `experts` count in drop-and-pad mode.
std::optional<std::int64_t> FindRows(const io::SafetensorsFile& file, bool drop_and_pad,
                                     std::int64_t experts);
std::optional<std::int64_t> FindNumTokens(const io::SafetensorsFile& file);
std::optional<std::int64_t> FindNumExperts(const io::SafetensorsFile& file);
std::optional<std::int64_t> FindTopK(const io::SafetensorsFile& file);
std::optional<std::int64_t> FindFirstRow(const io::SafetensorsFile& file);

// Throws where `permuted` was made from a case of the other form than `file`.
void CheckSameForm(const io::SafetensorsFile& permuted, const io::SafetensorsFile& file);

// Puts them where ResolveAttributes() finds them, and takes away what the other form says.
void AddToMetadata(const Attributes& attributes, io::Metadata* metadata);

}  // namespace moeperm::cli
