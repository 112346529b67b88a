// SPDX-License-Identifier: Apache-2.0
// The attributes of an operator: from the options, else from a file's metadata.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

#include "io/safetensors.hpp"
#include "io/safetensors_reader.hpp"

namespace moeperm::cli {

struct Attributes {
  std::int64_t num_out_tokens = 0;
  std::int64_t top_k = 0;  // not padded only
  bool drop_and_pad = false;
};

// Must stay where it is once added to an app.
struct AttributeOptions {
  std::optional<std::int64_t> num_out_tokens;
  std::optional<std::int64_t> capacity;
  std::optional<std::int64_t> top_k;
  std::optional<bool> drop_and_pad;

  void AddTo(CLI::App& app);
  // The only one the gradient has. `otherwise`: what says the mode where the option is not given.
  void AddDropAndPadTo(CLI::App& app, const char* otherwise);
};

// Throws io::Error where an attribute is found nowhere, or makes no number.
Attributes ResolveAttributes(const AttributeOptions& options, const io::SafetensorsFile& file,
                             std::int64_t tokens, std::int64_t experts);
// What a file's metadata say, if they do.
std::optional<bool> FindDropAndPad(const io::SafetensorsFile& file);
std::optional<std::int64_t> FindNumOutTokens(const io::SafetensorsFile& file);

// Puts them where ResolveAttributes() finds them.
void AddToMetadata(const Attributes& attributes, io::Metadata* metadata);

}  // namespace moeperm::cli
