// SPDX-License-Identifier: Apache-2.0
// A vector core: a unified buffer of a fixed size, copies between it and global memory, vector
// operations on it. All of it is counted, and everything is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cann/host/op_def.hpp"
#include "cann/model/model.hpp"

namespace moeperm::cann::model {

// Ends a run; Guarded() turns it into its status.
struct Fault {
  Status status;
};

// 64-bit arithmetic that ends the run where it overflows.
std::int64_t Product(std::int64_t a, std::int64_t b);
std::int64_t Add(std::int64_t a, std::int64_t b);
std::int64_t RoundUp(std::int64_t value, std::int64_t step);  // value >= 0

std::int64_t BytesOf(host::DType dtype);  // 0: no kernel has it

// Global memory with the name it has in messages.
struct Source {
  std::string_view name;
  Input memory;
};
struct Sink {
  std::string_view name;
  Output memory;
};

// A piece of a core's unified buffer.
struct Piece {
  std::string_view name;
  std::vector<std::byte> bytes;
};

class Core {
 public:
  Core(std::int64_t id, std::int64_t ub_bytes, CoreReport* report)
      : id_(id), budget_(ub_bytes), report_(report) {}

  // Whole blocks of 32 bytes. Its bytes are not zero: whatever was there before.
  Piece Allocate(std::string_view name, std::int64_t bytes);

  // Byte offsets in global memory; both copy to and from the start of the piece.
  void CopyIn(Piece& piece, const Source& source, std::int64_t offset, std::int64_t bytes);
  void CopyIn(Piece& piece, const Sink& source, std::int64_t offset, std::int64_t bytes);
  void CopyOut(const Sink& sink, std::int64_t offset, const Piece& piece, std::int64_t bytes);

  // Vector operations over the first `count` elements. Floats unless a dtype says otherwise.
  void Fill(Piece& to, float value, std::int64_t count);
  void Move(Piece& to, const Piece& from, std::int64_t count);
  void Widen(Piece& to, const Piece& from, host::DType dtype, std::int64_t count);
  void Narrow(Piece& to, const Piece& from, host::DType dtype, std::int64_t count);
  void Accumulate(Piece& sum, const Piece& value, std::int64_t count);

  // The scalar unit's look at a piece.
  static std::int32_t Int32At(const Piece& piece, std::int64_t i);

  void Finished(std::int64_t units) { report_->units += units; }
  [[nodiscard]] std::int64_t id() const { return id_; }

 private:
  static void CheckRoom(const Piece& piece, std::int64_t element_bytes, std::int64_t count);
  void CountVector(std::int64_t elements);
  void CopyIn(Piece& piece, std::string_view name, const void* data, std::int64_t size,
              std::int64_t offset, std::int64_t bytes);

  std::int64_t id_;
  std::int64_t budget_;
  std::int64_t used_ = 0;
  CoreReport* report_;
};

// A queue of pieces between copies and vector operations: the next ones are on their way while one
// is worked on.
class InputQueue {
 public:
  InputQueue(Core& core, std::string_view name, std::int64_t depth, std::int64_t piece_bytes);

  [[nodiscard]] bool full() const { return waiting_ == pieces_.size(); }
  Piece& Next();   // to copy into
  Piece& Front();  // the oldest; to work on
  void Pop();

 private:
  std::vector<Piece> pieces_;
  std::size_t first_ = 0;
  std::size_t waiting_ = 0;
};

// A fresh report of so many cores.
void StartReport(std::int64_t block_dim, std::int64_t ub_bytes, Report* report);

Status StatusOfCurrentException() noexcept;

// Runs `body`; a Fault becomes the result.
template <class Body>
Status Guarded(Body&& body) noexcept {
  try {
    body();
  } catch (...) {
    return StatusOfCurrentException();
  }
  return {};
}

}  // namespace moeperm::cann::model
