// SPDX-License-Identifier: Apache-2.0
#include "cli/replay_inputs.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "bench/synthetic.hpp"

namespace moeperm::cli {
namespace {

namespace ref = moeperm_reference;
using synthetic::Generator;
using synthetic::Stream;

ref::Type TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return ref::Type::kFloat16;
    case DType::kBFloat16:
      return ref::Type::kBFloat16;
    default:
      return ref::Type::kFloat32;
  }
}

// Uniform in the range, rounded to the dtype.
void Fill(ref::Matrix* matrix, std::int64_t rows, const ValueRange& range, std::uint64_t key) {
  Generator random(key);
  // Halves first: the width of a range of finite numbers need not be finite.
  const double middle = range.low / 2 + range.high / 2;
  const double half = range.high / 2 - range.low / 2;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = 0; col < matrix->cols; ++col) {
      const double unit = static_cast<double>(random.Next() >> 11) * 0x1p-52 - 1;  // [-1, 1)
      constexpr double kMost = std::numeric_limits<float>::max();
      const double value = std::clamp(middle + half * unit, -kMost, kMost);
      matrix->Set(row, col, ref::Narrow(matrix->type, static_cast<float>(value)));
    }
  }
}

class Maker {
 public:
  Maker(const CaseProblem& problem, std::uint64_t seed, std::int64_t id, bool ragged)
      : problem_(problem),
        seed_(synthetic::Mix(seed + synthetic::kGolden) + static_cast<std::uint64_t>(id)),
        ragged_(ragged) {
    data_.map = {
        problem.tokens, problem.experts,
        std::vector<std::uint8_t>(static_cast<std::size_t>(problem.tokens * problem.experts))};
  }

  CaseData Make() {
    if (problem_.padded) {
      RouteByExpert();
    } else {
      RouteByToken();
    }
    const bool forward = problem_.op == CaseOperator::kPermute;
    const std::int64_t rows = forward ? problem_.tokens : problem_.rows;
    // Rows of no route are zero.
    const std::int64_t filled = forward ? rows : std::min(rows, routes_);
    data_.tokens = ref::Matrix(TypeOf(problem_.dtype), rows, problem_.hidden);
    Fill(&data_.tokens, filled, problem_.token_range, Key(Stream::kTokens));
    if (problem_.probs_dtype) {
      data_.probs =
          ref::Matrix(TypeOf(*problem_.probs_dtype), rows, forward ? problem_.experts : 1);
      Fill(&*data_.probs, filled, problem_.probs_range, Key(Stream::kProbs));
    }
    return std::move(data_);
  }

 private:
  [[nodiscard]] std::uint64_t Key(Stream stream) const { return synthetic::Key(seed_, stream); }
  std::uint8_t& Route(std::int64_t token, std::int64_t expert) {
    ++routes_;
    return data_.map.bytes[static_cast<std::size_t>(token * problem_.experts + expert)];
  }

  // Tokens of an expert, in random order: a partial shuffle.
  void RouteByExpert() {
    Generator random(Key(Stream::kRoutes));
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(problem_.tokens));
    std::iota(tokens.begin(), tokens.end(), 0);
    data_.sorted_indices.reserve(static_cast<std::size_t>(problem_.rows));
    for (std::int64_t expert = 0; expert < problem_.experts; ++expert) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(problem_.capacity); ++i) {
        std::swap(tokens[i], tokens[i + random.Below(tokens.size() - i)]);
        Route(tokens[i], expert) = 1;
        data_.sorted_indices.push_back(tokens[i]);
      }
    }
  }

  // Each subset of the experts is equally likely.
  void RouteByToken() {
    Generator random(Key(Stream::kRoutes));
    std::vector<std::int64_t> next(static_cast<std::size_t>(problem_.experts) + 1);
    for (std::int64_t token = 0; token < problem_.tokens; ++token) {
      auto left = static_cast<std::uint64_t>(problem_.top_k);
      if (ragged_ && left > 0) left = 1 + random.Below(left);
      for (std::int64_t expert = 0; left > 0; ++expert) {
        if (random.Below(static_cast<std::uint64_t>(problem_.experts - expert)) >= left) continue;
        --left;
        Route(token, expert) = 1;
        ++next[static_cast<std::size_t>(expert) + 1];
      }
    }
    // Rows: expert by expert, tokens ascending.
    std::partial_sum(next.begin(), next.end(), next.begin());
    data_.sorted_indices.assign(static_cast<std::size_t>(problem_.tokens * problem_.top_k), -1);
    for (std::int64_t token = 0; token < problem_.tokens; ++token) {
      auto slot = static_cast<std::size_t>(token * problem_.top_k);
      for (std::int64_t expert = 0; expert < problem_.experts; ++expert) {
        if (data_.map.bytes[static_cast<std::size_t>(token * problem_.experts + expert)] == 0) {
          continue;
        }
        data_.sorted_indices[slot++] =
            static_cast<std::int32_t>(next[static_cast<std::size_t>(expert)]++);
      }
    }
  }

  const CaseProblem& problem_;
  std::uint64_t seed_;
  bool ragged_;
  std::int64_t routes_ = 0;
  CaseData data_;
};

// A number behind a word of a file the kernel writes; nothing where it says none.
std::optional<std::uint64_t> NumberIn(const char* path, const std::string& word) {
  std::ifstream file(path);
  std::string at = word;
  while (!word.empty() && file >> at && at != word) continue;
  std::uint64_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

}  // namespace

CaseData MakeCaseData(const CaseProblem& problem, std::uint64_t seed, std::int64_t id,
                      bool ragged) {
  return Maker(problem, seed, id, ragged).Make();
}

std::uint64_t CaseBytes(const CaseProblem& problem) {
  __extension__ using Wide = unsigned __int128;
  const auto matrix = [](std::int64_t rows, std::int64_t cols, std::size_t element) {
    return Wide(static_cast<std::uint64_t>(rows)) * static_cast<std::uint64_t>(cols) * element;
  };
  const std::size_t element = SizeOf(problem.dtype);
  const std::size_t prob = problem.probs_dtype ? SizeOf(*problem.probs_dtype) : 0;
  const bool forward = problem.op == CaseOperator::kPermute;
  const Wide tokens = matrix(problem.tokens, problem.hidden, element);
  const Wide rows = matrix(problem.rows, problem.hidden, element);
  const Wide probs = matrix(problem.tokens, problem.experts, prob);
  // The input once, each output twice: the library's and the reference's; then indices and maps.
  Wide bytes = forward ? tokens + 2 * rows + probs : rows + 2 * tokens + 2 * probs;
  bytes += 2 * matrix(problem.tokens, problem.experts, 1);
  bytes += matrix(problem.rows, 1, 32 + 2 * prob);
  bytes += matrix(problem.tokens, 1, 16) + matrix(problem.experts, 1, 64);
  return static_cast<std::uint64_t>(
      std::min(bytes, Wide(std::numeric_limits<std::uint64_t>::max())));
}

std::uint64_t AvailableMemory() {
  std::uint64_t available = std::numeric_limits<std::uint64_t>::max();
  if (const auto kib = NumberIn("/proc/meminfo", "MemAvailable:")) available = *kib * 1024;
  const auto limit = NumberIn("/sys/fs/cgroup/memory.max", "");
  const auto used = NumberIn("/sys/fs/cgroup/memory.current", "");
  if (limit && used) available = std::min(available, *limit > *used ? *limit - *used : 0);
  return available;
}

}  // namespace moeperm::cli
