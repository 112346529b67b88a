// SPDX-License-Identifier: Apache-2.0
#include "cann/model/core.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

#include "cann/model/messages.hpp"
#include "cann/model/numbers.hpp"

namespace moeperm::cann::model {
namespace {

constexpr std::int64_t kBlockBytes = 32;
// Cores a device can have; a count out of a damaged tiling must not exhaust the memory.
constexpr std::int64_t kMostCores = 65536;

template <class T>
T Load(const Piece& piece, std::int64_t i) {
  T value;
  std::memcpy(&value, piece.bytes.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void Store(Piece& piece, std::int64_t i, T value) {
  std::memcpy(piece.bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
}

bool Inside(std::int64_t offset, std::int64_t bytes, std::int64_t size) {
  return offset >= 0 && bytes >= 0 && bytes <= size && offset <= size - bytes;
}

}  // namespace

std::int64_t Product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw Fault{TooLarge("a product of tiling fields")};
  return result;
}

std::int64_t Add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) throw Fault{TooLarge("a sum of tiling fields")};
  return result;
}

std::int64_t RoundUp(std::int64_t value, std::int64_t step) {
  return Add(value, step - 1) / step * step;
}

std::int64_t BytesOf(host::DType dtype) {
  switch (dtype) {
    case host::DType::kFloat32:
      return 4;
    case host::DType::kFloat16:
    case host::DType::kBFloat16:
      return 2;
    default:
      return 0;
  }
}

Piece Core::Allocate(std::string_view name, std::int64_t bytes) {
  if (bytes < 0) throw Fault{BufferFull(name, bytes, used_, budget_)};
  const std::int64_t taken = RoundUp(bytes, kBlockBytes);
  if (taken > budget_ - used_) throw Fault{BufferFull(name, taken, used_, budget_)};
  used_ += taken;
  report_->ub_peak = std::max(report_->ub_peak, used_);
  // What is read before it is written shows as NaN, or as an index far outside.
  return {name, std::vector<std::byte>(static_cast<std::size_t>(taken), std::byte{0xFF})};
}

void Core::CopyIn(Piece& piece, std::string_view name, const void* data, std::int64_t size,
                  std::int64_t offset, std::int64_t bytes) {
  if (!Inside(offset, bytes, size)) throw Fault{OutsideTensor(name, id_, offset, bytes, size)};
  const auto room = static_cast<std::int64_t>(piece.bytes.size());
  if (bytes > room) throw Fault{OutsidePiece(piece.name, bytes, room)};
  if (bytes == 0) return;
  std::memcpy(piece.bytes.data(), static_cast<const std::byte*>(data) + offset,
              static_cast<std::size_t>(bytes));
  ++report_->copies_in;
  report_->bytes_in += bytes;
}

void Core::CopyIn(Piece& piece, const Source& source, std::int64_t offset, std::int64_t bytes) {
  CopyIn(piece, source.name, source.memory.data, source.memory.bytes, offset, bytes);
}

void Core::CopyIn(Piece& piece, const Sink& source, std::int64_t offset, std::int64_t bytes) {
  CopyIn(piece, source.name, source.memory.data, source.memory.bytes, offset, bytes);
}

void Core::CopyOut(const Sink& sink, std::int64_t offset, const Piece& piece, std::int64_t bytes) {
  const Output& to = sink.memory;
  if (!Inside(offset, bytes, to.bytes)) {
    throw Fault{OutsideTensor(sink.name, id_, offset, bytes, to.bytes)};
  }
  const auto room = static_cast<std::int64_t>(piece.bytes.size());
  if (bytes > room) throw Fault{OutsidePiece(piece.name, bytes, room)};
  if (bytes == 0) return;
  std::memcpy(static_cast<std::byte*>(to.data) + offset, piece.bytes.data(),
              static_cast<std::size_t>(bytes));
  if (to.write_counts != nullptr) {
    for (std::int64_t i = offset; i < offset + bytes; ++i) {
      if (to.write_counts[i] < 255) ++to.write_counts[i];
    }
  }
  ++report_->copies_out;
  report_->bytes_out += bytes;
}

void Core::CheckRoom(const Piece& piece, std::int64_t element_bytes, std::int64_t count) {
  const auto room = static_cast<std::int64_t>(piece.bytes.size());
  const std::int64_t bytes = Product(count, element_bytes);
  if (bytes > room) throw Fault{OutsidePiece(piece.name, bytes, room)};
}

void Core::CountVector(std::int64_t elements) {
  ++report_->vector_ops;
  report_->vector_elements += elements;
}

void Core::Fill(Piece& to, float value, std::int64_t count) {
  CheckRoom(to, 4, count);
  for (std::int64_t i = 0; i < count; ++i) Store(to, i, value);
  CountVector(count);
}

void Core::Move(Piece& to, const Piece& from, std::int64_t count) {
  CheckRoom(to, 4, count);
  CheckRoom(from, 4, count);
  std::copy_n(from.bytes.begin(), count * 4, to.bytes.begin());
  CountVector(count);
}

void Core::Widen(Piece& to, const Piece& from, host::DType dtype, std::int64_t count) {
  CheckRoom(to, 4, count);
  CheckRoom(from, 2, count);
  const auto widen = dtype == host::DType::kFloat16 ? FromFloat16 : FromBFloat16;
  for (std::int64_t i = 0; i < count; ++i) Store(to, i, widen(Load<std::uint16_t>(from, i)));
  CountVector(count);
}

void Core::Narrow(Piece& to, const Piece& from, host::DType dtype, std::int64_t count) {
  CheckRoom(to, 2, count);
  CheckRoom(from, 4, count);
  const auto narrow = dtype == host::DType::kFloat16 ? ToFloat16 : ToBFloat16;
  for (std::int64_t i = 0; i < count; ++i) Store(to, i, narrow(Load<float>(from, i)));
  CountVector(count);
}

void Core::Accumulate(Piece& sum, const Piece& value, std::int64_t count) {
  CheckRoom(sum, 4, count);
  CheckRoom(value, 4, count);
  for (std::int64_t i = 0; i < count; ++i) {
    Store(sum, i, Sum(Load<float>(sum, i), Load<float>(value, i)));
  }
  CountVector(count);
}

std::int32_t Core::Int32At(const Piece& piece, std::int64_t i) {
  CheckRoom(piece, 4, i + 1);
  return Load<std::int32_t>(piece, i);
}

InputQueue::InputQueue(Core& core, std::string_view name, std::int64_t depth,
                       std::int64_t piece_bytes) {
  for (std::int64_t i = 0; i < depth; ++i) pieces_.push_back(core.Allocate(name, piece_bytes));
}

Piece& InputQueue::Next() {
  Piece& piece = pieces_[(first_ + waiting_) % pieces_.size()];
  ++waiting_;
  return piece;
}

Piece& InputQueue::Front() { return pieces_[first_]; }

void InputQueue::Pop() {
  first_ = (first_ + 1) % pieces_.size();
  --waiting_;
}

void StartReport(std::int64_t block_dim, std::int64_t ub_bytes, Report* report) {
  *report = {};
  report->ub_budget = ub_bytes;
  if (block_dim < 0 || block_dim > kMostCores) {
    throw Fault{FieldOutOfRange("block_dim", block_dim, "0 to 65536")};
  }
  report->cores.resize(static_cast<std::size_t>(block_dim));
}

Status StatusOfCurrentException() noexcept {
  try {
    throw;
  } catch (const Fault& fault) {
    return fault.status;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  } catch (const std::length_error&) {
    return NoMemory();
  } catch (const std::exception& error) {
    return {Code::kInternal, error.what()};
  } catch (...) {
    return {Code::kInternal, "the model ended in an unknown error"};
  }
}

CoreReport Report::Total() const {
  CoreReport total;
  for (const CoreReport& core : cores) {
    total.units += core.units;
    total.copies_in += core.copies_in;
    total.bytes_in += core.bytes_in;
    total.copies_out += core.copies_out;
    total.bytes_out += core.bytes_out;
    total.vector_ops += core.vector_ops;
    total.vector_elements += core.vector_elements;
    total.ub_peak = std::max(total.ub_peak, core.ub_peak);
  }
  return total;
}

double Report::Imbalance() const {
  std::int64_t most = 0;
  std::int64_t all = 0;
  for (const CoreReport& core : cores) {
    most = std::max(most, core.bytes_in + core.bytes_out);
    all += core.bytes_in + core.bytes_out;
  }
  if (all == 0) return 0;
  return static_cast<double>(most) * static_cast<double>(cores.size()) / static_cast<double>(all);
}

}  // namespace moeperm::cann::model
