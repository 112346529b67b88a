// SPDX-License-Identifier: Apache-2.0
// The header is read event by event, without a document in memory: what is not expected is refused
// where it stands, so nesting, size and duplicate keys need no limits of their own.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "io/error.hpp"
#include "io/safetensors.hpp"

namespace moeperm::io {
namespace {

using nlohmann::json;

class HeaderReader {  // the interface of nlohmann::json_sax
 public:
  HeaderReader(std::string_view path, Header* header) : path_(path), header_(*header) {}

  bool start_object(std::size_t) {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kRoot;
        return true;
      case Place::kRootValue:
        place_ = tensor_ == kMetadataKey ? Place::kMetadata : Place::kTensor;
        seen_ = 0;
        return true;
      default:
        Unexpected("an object");
    }
  }

  bool end_object() {
    switch (place_) {
      case Place::kTensor:
        if (seen_ != (kDType | kShape | kOffsets)) {
          Fail("{}: needs \"dtype\", \"shape\" and \"data_offsets\"", Where());
        }
        header_.tensors.push_back(std::exchange(info_, TensorInfo{}));
        [[fallthrough]];
      case Place::kMetadata:
        place_ = Place::kRoot;
        return true;
      default:
        place_ = Place::kEnd;
        return true;
    }
  }

  bool key(std::string& name) {
    switch (place_) {
      case Place::kRoot:
        if (!names_.insert(name).second) Fail("{}: {} occurs twice", path_, Quote(name));
        tensor_ = name;
        info_.name = name;
        place_ = Place::kRootValue;
        return true;
      case Place::kMetadata:
        metadata_key_ = name;
        if (header_.metadata.contains(name)) Fail("{}: {} occurs twice", Where(), Quote(name));
        place_ = Place::kMetadataValue;
        return true;
      default:
        TensorKey(name);
        return true;
    }
  }

  bool start_array(std::size_t) {
    if (place_ == Place::kShapeValue) {
      place_ = Place::kDims;
    } else if (place_ == Place::kOffsetsValue) {
      place_ = Place::kOffsetPair;
      offsets_ = 0;
    } else {
      Unexpected("an array");
    }
    return true;
  }

  bool end_array() {
    if (place_ == Place::kOffsetPair && offsets_ != 2) {
      Fail("{}: data_offsets needs two numbers but has {}", Where(), offsets_);
    }
    place_ = Place::kTensor;
    return true;
  }

  bool string(std::string& value) {
    if (place_ == Place::kMetadataValue) {
      header_.metadata.emplace(metadata_key_, value);
      place_ = Place::kMetadata;
    } else if (place_ == Place::kDTypeValue) {
      info_.type = FindElementType(value);
      if (info_.type == nullptr) Fail("{}: unknown dtype {}", Where(), Quote(value));
      place_ = Place::kTensor;
    } else {
      Unexpected(fmt::format("the text {}", Quote(value)));
    }
    return true;
  }

  bool number_unsigned(std::uint64_t value) {
    if (place_ == Place::kDims) {
      if (value > static_cast<std::uint64_t>(INT64_MAX)) {
        Fail("{}: shape has the dimension {}, which is too large", Where(), value);
      }
      if (info_.shape.size() == kMaxDims) Fail("{}: has more than {} dims", Where(), kMaxDims);
      info_.shape.push_back(static_cast<std::int64_t>(value));
    } else if (place_ == Place::kOffsetPair) {
      ++offsets_;
      if (offsets_ == 1) info_.begin = value;
      if (offsets_ == 2) info_.end = value;
      if (offsets_ > 2) Fail("{}: data_offsets has more than two numbers", Where());
    } else {
      Unexpected(fmt::format("the number {}", value));
    }
    return true;
  }

  bool number_integer(std::int64_t value) {
    if (place_ == Place::kDims) Fail("{}: shape has the dimension {}", Where(), value);
    if (place_ == Place::kOffsetPair) Fail("{}: data_offsets has the number {}", Where(), value);
    Unexpected(fmt::format("the number {}", value));
  }
  bool number_float(double, const std::string& text) {
    Unexpected(fmt::format("the number {}", Quote(text)));
  }
  bool null() { Unexpected("null"); }
  bool boolean(bool value) { Unexpected(value ? "true" : "false"); }
  bool binary(json::binary_t&) { Unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." -> what follows "] "
    std::string_view what = error.what();
    if (const auto end = what.find("] "); end != std::string_view::npos)
      what.remove_prefix(end + 2);
    Fail("{}: the header is not JSON (byte {}): {}", path_, position, what);
  }

 private:
  enum class Place {
    kStart,  // expecting ...
    kRoot,
    kRootValue,
    kMetadata,
    kMetadataValue,
    kTensor,
    kDTypeValue,
    kShapeValue,
    kDims,
    kOffsetsValue,
    kOffsetPair,
    kEnd
  };
  static constexpr unsigned kDType = 1, kShape = 2, kOffsets = 4;
  static constexpr std::string_view kMetadataKey = "__metadata__";

  void TensorKey(const std::string& name) {
    unsigned bit = 0;
    if (name == "dtype") {
      bit = kDType;
      place_ = Place::kDTypeValue;
    } else if (name == "shape") {
      bit = kShape;
      place_ = Place::kShapeValue;
    } else if (name == "data_offsets") {
      bit = kOffsets;
      place_ = Place::kOffsetsValue;
    } else {
      Fail("{}: unknown key {}", Where(), Quote(name));
    }
    if ((seen_ & bit) != 0) Fail("{}: {} occurs twice", Where(), Quote(name));
    seen_ |= bit;
  }

  [[nodiscard]] std::string Where() const {
    if (place_ == Place::kStart || place_ == Place::kRoot || tensor_.empty()) {
      return fmt::format("{}: the header", path_);
    }
    if (tensor_ == kMetadataKey) return fmt::format("{}: {}", path_, tensor_);
    return fmt::format("{}: tensor {}", path_, Quote(tensor_));
  }
  [[noreturn]] void Unexpected(std::string_view what) const {
    Fail("{}: {} stands where it may not", Where(), what);
  }

  std::string_view path_;
  Header& header_;
  Place place_ = Place::kStart;
  std::string tensor_;
  std::string metadata_key_;
  TensorInfo info_;
  unsigned seen_ = 0;
  int offsets_ = 0;
  std::unordered_set<std::string> names_;
};

void CheckExtents(std::string_view path, const std::vector<TensorInfo>& tensors,
                  std::uint64_t data_bytes) {
  for (const TensorInfo& tensor : tensors) {
    const auto where = [&] { return fmt::format("{}: tensor {}", path, Quote(tensor.name)); };
    if (tensor.begin > tensor.end || tensor.end > data_bytes) {
      Fail("{}: data_offsets [{}, {}] do not lie in the {} bytes of data", where(), tensor.begin,
           tensor.end, data_bytes);
    }
    std::uint64_t dense = 0;
    if (!DenseBytes(tensor.shape, tensor.type->size, &dense)) {
      Fail("{}: shape [{}] has more elements than any file", where(),
           fmt::join(tensor.shape, ", "));
    }
    if (dense != tensor.bytes()) {
      Fail("{}: {} [{}] is {} bytes but data_offsets [{}, {}] are {}", where(), tensor.type->name,
           fmt::join(tensor.shape, ", "), dense, tensor.begin, tensor.end, tensor.bytes());
    }
  }
}

// As the format demands: every byte of the data belongs to one tensor.
void CheckCover(std::string_view path, const std::vector<TensorInfo>& sorted,
                std::uint64_t data_bytes) {
  std::uint64_t covered = 0;
  const TensorInfo* before = nullptr;
  for (const TensorInfo& tensor : sorted) {
    if (tensor.begin < covered) {
      Fail("{}: tensors {} and {} overlap at byte {}", path, Quote(before->name),
           Quote(tensor.name), tensor.begin);
    }
    if (tensor.begin > covered) {
      Fail("{}: bytes {} to {} of the data belong to no tensor", path, covered, tensor.begin);
    }
    covered = tensor.end;
    before = &tensor;
  }
  if (covered != data_bytes) {
    Fail("{}: the last {} bytes of the data belong to no tensor", path, data_bytes - covered);
  }
}

}  // namespace

Header ParseHeader(std::string_view path, std::string_view text, std::uint64_t data_bytes) {
  if (text.empty() || text.front() != '{') Fail("{}: the header does not begin with '{{'", path);
  // The parser takes a NUL for the end, and would not look at what stands behind it.
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos) {
    Fail("{}: the header is not JSON (byte {}): a NUL byte", path, at + 1);
  }
  Header header;
  HeaderReader reader(path, &header);
  json::sax_parse(text.begin(), text.end(), &reader);
  CheckExtents(path, header.tensors, data_bytes);
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const TensorInfo& a, const TensorInfo& b) {
                     return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                   });
  CheckCover(path, header.tensors, data_bytes);
  return header;
}

}  // namespace moeperm::io
