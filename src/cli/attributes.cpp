// SPDX-License-Identifier: Apache-2.0
#include "cli/attributes.hpp"

#include <charconv>
#include <string>
#include <string_view>

#include "cli/command.hpp"
#include "io/error.hpp"

namespace moeperm::cli {
namespace {

constexpr const char* kNumOutTokens = "num_out_tokens";
constexpr const char* kTopK = "top_k";
constexpr const char* kDropAndPad = "drop_and_pad";

const std::string* Find(const io::SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? nullptr : &found->second;
}

std::optional<std::int64_t> FindCount(const io::SafetensorsFile& file, const char* key) {
  const std::string* const text = Find(file, key);
  if (text == nullptr) return std::nullopt;
  std::int64_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || stop != end) {
    io::Fail("{}: __metadata__: {} is {}, not a number", file.path(), key, io::Quote(*text));
  }
  return value;
}

std::int64_t Product(const io::SafetensorsFile& file, std::string_view what, std::int64_t a,
                     std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    io::Fail("{}: {} = {} * {} is too large", file.path(), what, a, b);
  }
  return product;
}

}  // namespace

void AttributeOptions::AddDropAndPadTo(CLI::App& app, const char* otherwise) {
  // Not bound to the value: a bound flag that is not given reads as false.
  app.add_flag_function(
      "--drop-and-pad,!--no-drop-and-pad", [this](std::int64_t given) { drop_and_pad = given > 0; },
      std::string("Drop-and-pad mode, or not (default: as ") + otherwise + " says)");
}

void AttributeOptions::AddTo(CLI::App& app) {
  AddDropAndPadTo(app, "the case");
  CLI::Option* const rows =
      app.add_option("--num-out-tokens", num_out_tokens, "Rows of the permuted tokens")
          ->check(Range(0, kMaxCount))
          ->type_name("N");
  app.add_option("--capacity", capacity, "Drop-and-pad: rows an expert")
      ->check(Range(0, kMaxCount))
      ->type_name("N")
      ->excludes(rows);
  app.add_option("--top-k", top_k, "Not padded: slots a token")
      ->check(Range(0, kMaxCount))
      ->type_name("K");
}

std::optional<bool> FindDropAndPad(const io::SafetensorsFile& file) {
  const std::string* const text = Find(file, kDropAndPad);
  if (text == nullptr) return std::nullopt;
  if (*text == "false") return false;
  if (*text == "true") return true;
  io::Fail("{}: __metadata__: {} is {}, neither true nor false", file.path(), kDropAndPad,
           io::Quote(*text));
}

std::optional<std::int64_t> FindNumOutTokens(const io::SafetensorsFile& file) {
  return FindCount(file, kNumOutTokens);
}

Attributes ResolveAttributes(const AttributeOptions& options, const io::SafetensorsFile& file,
                             std::int64_t tokens, std::int64_t experts) {
  Attributes attributes;
  attributes.drop_and_pad = options.drop_and_pad.value_or(FindDropAndPad(file).value_or(false));
  if (!attributes.drop_and_pad) {
    if (options.capacity) io::Fail("--capacity is an attribute of drop-and-pad only");
    const auto top_k = options.top_k ? options.top_k : FindCount(file, kTopK);
    if (!top_k) {
      io::Fail("{}: its metadata do not say top_k; give it with --top-k", file.path());
    }
    attributes.top_k = *top_k;
  }
  auto rows = options.num_out_tokens;
  if (options.capacity) rows = Product(file, kNumOutTokens, *options.capacity, experts);
  // Slots the options ask for count more than rows of the file.
  if (!rows && !(options.top_k && !attributes.drop_and_pad)) rows = FindCount(file, kNumOutTokens);
  if (!rows && !attributes.drop_and_pad) {
    rows = Product(file, kNumOutTokens, tokens, attributes.top_k);
  }
  if (!rows) {
    io::Fail("{}: its metadata do not say num_out_tokens; give --capacity or --num-out-tokens",
             file.path());
  }
  attributes.num_out_tokens = *rows;
  return attributes;
}

void AddToMetadata(const Attributes& attributes, io::Metadata* metadata) {
  (*metadata)[kNumOutTokens] = std::to_string(attributes.num_out_tokens);
  (*metadata)[kDropAndPad] = attributes.drop_and_pad ? "true" : "false";
  if (!attributes.drop_and_pad) (*metadata)[kTopK] = std::to_string(attributes.top_k);
}

}  // namespace moeperm::cli
