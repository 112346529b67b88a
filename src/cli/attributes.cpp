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
constexpr const char* kNumTokens = "num_tokens";
constexpr const char* kNumExperts = "num_experts";
constexpr const char* kFirstRow = "first_row";

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

std::optional<std::int64_t> ReadCount(std::string_view text) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size() || value < 0 ||
      value > kMaxCount) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

CLI::Option* AddRows(CLI::App& app, std::optional<RowRange>& rows) {
  return app
      .add_option_function<std::string>(
          "--rows",
          [&rows](const std::string& text) {
            const std::size_t colon = text.find(':');
            const auto begin = ReadCount(std::string_view(text).substr(0, colon));
            const auto end = colon == std::string::npos
                                 ? std::nullopt
                                 : ReadCount(std::string_view(text).substr(colon + 1));
            if (!begin || !end || *begin > *end) {
              throw CLI::ValidationError(
                  "--rows", io::Quote(text) + " is no range BEGIN:END with 0 <= BEGIN <= END");
            }
            rows = {*begin, *end};
          },
          "Cases with indices: only these rows, END not among them; for a process that holds some "
          "of the experts")
      ->type_name("BEGIN:END");
}

void AttributeOptions::AddDropAndPadTo(CLI::App& app, const char* otherwise) {
  // Not bound to the value: a bound flag that is not given reads as false.
  app.add_flag_function(
      "--drop-and-pad,!--no-drop-and-pad", [this](std::int64_t given) { drop_and_pad = given > 0; },
      std::string("Drop-and-pad mode, or not (default: as ") + otherwise + " says)");
}

void AttributeOptions::AddTo(CLI::App& app) {
  AddDropAndPadTo(app, "the case");
  CLI::Option* const count =
      app.add_option("--num-out-tokens", num_out_tokens, "Rows of the permuted tokens")
          ->check(Range(0, kMaxCount))
          ->type_name("N");
  app.add_option("--capacity", capacity, "Drop-and-pad: rows an expert")
      ->check(Range(0, kMaxCount))
      ->type_name("N")
      ->excludes(count);
  app.add_option("--top-k", top_k, "Not padded: slots a token")
      ->check(Range(0, kMaxCount))
      ->type_name("K");
  AddRows(app, rows)->excludes(count);
  app.add_option("--num-experts", num_experts, "Cases with indices: experts there are")
      ->check(Range(1, kMaxCount))
      ->type_name("N");
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
std::optional<std::int64_t> FindRows(const io::SafetensorsFile& file, bool drop_and_pad,
                                     std::int64_t experts) {
  const auto rows = FindNumOutTokens(file);
  if (!rows || !drop_and_pad) return rows;
  return experts <= 0 ? 0 : *rows / experts * experts;
}
std::optional<std::int64_t> FindNumTokens(const io::SafetensorsFile& file) {
  return FindCount(file, kNumTokens);
}
std::optional<std::int64_t> FindNumExperts(const io::SafetensorsFile& file) {
  return FindCount(file, kNumExperts);
}
std::optional<std::int64_t> FindTopK(const io::SafetensorsFile& file) {
  return FindCount(file, kTopK);
}
std::optional<std::int64_t> FindFirstRow(const io::SafetensorsFile& file) {
  return FindCount(file, kFirstRow);
}

bool IsIndexForm(const io::SafetensorsFile& file) {
  if (file.Find("indices") == nullptr) return false;
  if (file.Find("routing_map") != nullptr) {
    io::Fail("{}: has a tensor 'indices' and a tensor 'routing_map'; which one counts?",
             file.path());
  }
  return true;
}

void CheckSameForm(const io::SafetensorsFile& permuted, const io::SafetensorsFile& file) {
  const bool index_form = IsIndexForm(file);
  if (index_form && FindDropAndPad(permuted)) {
    io::Fail("{}: was permuted by a routing_map (its metadata say {}), but {} has 'indices'",
             permuted.path(), kDropAndPad, file.path());
  }
  if (!index_form && FindFirstRow(permuted)) {
    io::Fail("{}: was permuted by indices (its metadata say {}), but {} has no tensor 'indices'",
             permuted.path(), kFirstRow, file.path());
  }
}

Attributes ResolveAttributes(const AttributeOptions& options, const io::SafetensorsFile& file,
                             std::int64_t tokens, std::int64_t experts) {
  if (options.rows || options.num_experts) {
    io::Fail("{}: has no tensor 'indices'; {} is for cases with it", file.path(),
             options.rows ? "--rows" : "--num-experts");
  }
  Attributes attributes;
  attributes.drop_and_pad = options.drop_and_pad.value_or(FindDropAndPad(file).value_or(false));
  if (!attributes.drop_and_pad) {
    if (options.capacity) io::Fail("--capacity is an attribute of drop-and-pad only");
    const auto top_k = options.top_k ? options.top_k : FindTopK(file);
    if (!top_k) {
      io::Fail("{}: its metadata do not say top_k; give it with --top-k", file.path());
    }
    attributes.top_k = *top_k;
  }
  auto rows = options.num_out_tokens;
  if (options.capacity) rows = Product(file, kNumOutTokens, *options.capacity, experts);
  // Slots the options ask for count more than rows of the file.
  if (!rows && !(options.top_k && !attributes.drop_and_pad)) rows = FindNumOutTokens(file);
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

Attributes ResolveIndexAttributes(const AttributeOptions& options, const io::SafetensorsFile& file,
                                  std::int64_t tokens, std::int64_t top_k) {
  const char* const unfit = options.top_k      ? "--top-k"
                            : options.capacity ? "--capacity"
                            : options.drop_and_pad.value_or(FindDropAndPad(file).value_or(false))
                                ? kDropAndPad
                                : nullptr;
  if (unfit != nullptr) {
    io::Fail("{}: has a tensor 'indices'; {} is for cases with a routing_map", file.path(), unfit);
  }
  Attributes attributes;
  attributes.index_form = true;
  attributes.top_k = top_k;
  attributes.num_experts =
      options.num_experts ? *options.num_experts : FindNumExperts(file).value_or(0);
  if (options.rows) {
    attributes.first_row = options.rows->begin;
    attributes.num_out_tokens = options.rows->end - options.rows->begin;
    return attributes;
  }
  attributes.first_row = FindFirstRow(file).value_or(0);
  const auto rows = options.num_out_tokens ? options.num_out_tokens : FindNumOutTokens(file);
  attributes.num_out_tokens = rows ? *rows : Product(file, kNumOutTokens, tokens, top_k);
  return attributes;
}

void AddToMetadata(const Attributes& attributes, io::Metadata* metadata) {
  (*metadata)[kNumOutTokens] = std::to_string(attributes.num_out_tokens);
  metadata->erase(attributes.index_form ? kDropAndPad : kFirstRow);
  if (attributes.index_form) {
    (*metadata)[kFirstRow] = std::to_string(attributes.first_row);
  } else {
    (*metadata)[kDropAndPad] = attributes.drop_and_pad ? "true" : "false";
  }
  if (!attributes.drop_and_pad) (*metadata)[kTopK] = std::to_string(attributes.top_k);
}

}  // namespace moeperm::cli
