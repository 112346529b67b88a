// SPDX-License-Identifier: Apache-2.0
// The drawing of a tiling: for each stage the cores and their loads, what each core owns, how a
// core steps through it, how a row is cut, and what fills the unified buffer.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "cli/svg.hpp"
#include "cli/tiling_case.hpp"

namespace moeperm::cli {
namespace {

namespace host = cann::host;
using Groups = std::vector<host::Group>;

constexpr double kWidth = 1080;
constexpr double kLeft = 150, kRight = 1040;
constexpr double kBarsHeight = 110;
constexpr double kRibbonHeight = 20;
constexpr double kRibbonPitch = 54;
constexpr double kHeaderHeight = 86;
constexpr std::string_view kSmall = " font-size=\"11\" fill=\"#6b7480\"";
constexpr std::string_view kBold = " font-weight=\"bold\"";
constexpr std::array<std::string_view, 2> kTones = {"#4c78a8", "#9fbad6"};
constexpr std::array<std::string_view, 6> kParts = {"#4c78a8", "#e07b39", "#72a06a",
                                                    "#b279a2", "#8a8f98", "#c9b458"};
constexpr std::string_view kFree = "#eceff2";

std::int64_t CountOf(const Groups& groups) {
  Groups ones = groups;
  for (host::Group& group : ones) group.each = 1;
  return host::TotalOf(ones);
}

std::int64_t MostOf(const Groups& groups) {
  std::int64_t most = 0;
  for (const host::Group& group : groups) {
    if (group.count > 0) most = std::max(most, group.each);
  }
  return most;
}

double Part(std::int64_t value, std::int64_t of) {
  return of > 0 ? static_cast<double>(value) / static_cast<double>(of) : 0;
}

// A box for each core, as high as its load; cores of one load are one path.
std::string Bars(const host::Stage& stage, std::int64_t all_cores, double top) {
  const double bottom = top + kBarsHeight;
  const std::int64_t cores = std::max(CountOf(stage.cores), std::max<std::int64_t>(all_cores, 1));
  const std::int64_t most = std::max<std::int64_t>(MostOf(stage.cores), 1);
  const double pitch = (kRight - kLeft) / static_cast<double>(cores);
  const double gap = pitch > 4 ? pitch * 0.15 : 0;
  std::string svg = SvgLine(kLeft, bottom, kRight, bottom, "#6b7480") +
                    SvgLine(kLeft, top, kRight, top, "#e3e6ea") +
                    SvgText(kLeft - 8, top + 4, FormatCount(most), "end") +
                    SvgText(kLeft - 8, bottom + 4, "0", "end") +
                    SvgText(kLeft - 8, top + kBarsHeight / 2 + 4, stage.unit, "end", kSmall);
  std::string path;
  std::int64_t core = 0;
  for (const host::Group& group : stage.cores) {
    const double height = Part(group.each, most) * kBarsHeight;
    const double first = kLeft + static_cast<double>(core) * pitch;
    if (group.count > 2048) {  // narrower than can be seen
      path += fmt::format("M{:.2f} {:.2f}v{:.2f}h{:.2f}v{:.2f}z", first, bottom, -height,
                          static_cast<double>(group.count) * pitch, height);
    } else {
      for (std::int64_t i = 0; i < group.count; ++i) {
        path += fmt::format("M{:.2f} {:.2f}v{:.2f}h{:.2f}v{:.2f}z",
                            first + static_cast<double>(i) * pitch + gap / 2, bottom, -height,
                            pitch - gap, height);
      }
    }
    core += group.count;
  }
  svg += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", kTones[0], path);
  const std::int64_t step = std::max<std::int64_t>(1, (cores + 15) / 16);
  for (std::int64_t i = 0; i < cores; i += step) {
    svg += SvgText(kLeft + (static_cast<double>(i) + 0.5) * pitch, bottom + 15,
                   fmt::format("{}", i), "middle", kSmall);
  }
  return svg + SvgText(kLeft - 8, bottom + 16, "core", "end", kSmall);
}

// The mean over all cores that there are, the idle ones too.
std::string MeanLine(const host::Stage& stage, std::int64_t all_cores, double top) {
  const std::int64_t most = MostOf(stage.cores);
  const std::int64_t cores = std::max(CountOf(stage.cores), all_cores);
  if (most == 0 || cores == 0) return "";
  const double mean = static_cast<double>(host::TotalOf(stage.cores)) / static_cast<double>(cores);
  const double y = top + kBarsHeight * (1 - mean / static_cast<double>(most));
  return SvgLine(kLeft, y, kRight, y, "#222222", "7 4");
}

// Parts of a whole side by side, their colours alternating, with numbers where parts begin.
std::string Ribbon(const Groups& groups, double y, std::string_view name, std::string_view detail) {
  std::string svg = SvgText(kLeft - 8, y + 14, name, "end");
  const std::int64_t total = host::TotalOf(groups);
  if (total <= 0) return svg + SvgText(kLeft, y + 14, "nothing", "start", kSmall);
  const double scale = (kRight - kLeft) / static_cast<double>(total);
  std::array<std::string, 2> paths;
  double number_end = 0;
  std::size_t tone = 0;
  std::int64_t at = 0;
  const std::string end = FormatCount(total);
  const double end_begin = kRight - SvgTextWidth(end);
  for (const host::Group& group : groups) {
    const double width = static_cast<double>(group.each) * scale;
    if (width < 0.5 || group.count > 4096) {  // too narrow to tell apart
      paths[tone] += fmt::format("M{:.2f} {:.2f}h{:.2f}v{:.1f}h{:.2f}z",
                                 kLeft + static_cast<double>(at) * scale, y,
                                 width * static_cast<double>(group.count), kRibbonHeight,
                                 -width * static_cast<double>(group.count));
      at += group.count * group.each;
      tone = 1 - tone;
      continue;
    }
    for (std::int64_t i = 0; i < group.count; ++i, at += group.each, tone = 1 - tone) {
      const double x = kLeft + static_cast<double>(at) * scale;
      paths[tone] +=
          fmt::format("M{:.2f} {:.2f}h{:.2f}v{:.1f}h{:.2f}z", x, y, width, kRibbonHeight, -width);
      const std::string number = FormatCount(at);
      const double number_width = SvgTextWidth(number) * 0.85;
      if (x < number_end || x + number_width + 14 > end_begin) continue;
      svg += SvgText(x, y + kRibbonHeight + 12, number, "start", kSmall);
      number_end = x + number_width + 14;
    }
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].empty()) continue;
    svg += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", kTones[i], paths[i]);
  }
  svg += SvgText(kRight, y + kRibbonHeight + 12, end, "end", kSmall);
  return svg + SvgText(kLeft, y - 5, detail, "start", kSmall);
}

// The buffer as one bar, and below it what its colours are.
std::string Buffer(const host::Stage& stage, double y) {
  std::string svg = SvgText(kLeft - 8, y + 14, "unified buffer", "end");
  double x = kLeft;
  double legend = kLeft;
  std::size_t colour = 0;
  std::int64_t used = 0;
  for (const host::BufferPart& part : stage.buffer) {
    const bool free = part.name == "free";
    const std::string_view fill = free ? kFree : kParts[colour++ % kParts.size()];
    if (!free) used += part.bytes;
    const double width = std::min(Part(part.bytes, stage.ub_bytes) * (kRight - kLeft), kRight - x);
    svg += SvgRect(x, y, width, kRibbonHeight, fill);
    x += width;
    const std::string text = fmt::format("{} {}", part.name, FormatCount(part.bytes));
    svg += SvgRect(legend, y + kRibbonHeight + 7, 10, 10, fill) +
           SvgText(legend + 15, y + kRibbonHeight + 16, text, "start", kSmall);
    legend += 15 + SvgTextWidth(text) * 0.88 + 18;
  }
  const std::string detail =
      fmt::format("{} of {} bytes ({:.1f} %)", FormatCount(used), FormatCount(stage.ub_bytes),
                  100 * Part(used, stage.ub_bytes));
  return svg + SvgText(kLeft, y - 5, detail, "start", kSmall);
}

std::string Balance(const host::Stage& stage, std::int64_t all_cores) {
  const std::int64_t total = host::TotalOf(stage.cores);
  const std::int64_t working = CountOf(stage.cores);
  if (total == 0) return "no core has anything to do";
  const std::int64_t cores = std::max(working, all_cores);
  const double mean = static_cast<double>(total) / static_cast<double>(cores);
  return fmt::format(
      "{} {}; {} of {} cores work, the busiest has {:.2f} times the mean of all "
      "(dashed)",
      FormatCount(total), stage.unit, FormatCount(working), FormatCount(cores),
      static_cast<double>(MostOf(stage.cores)) / mean);
}

double HeightOf(const host::Stage& stage) {
  const int ribbons = 1 + (stage.steps.empty() ? 0 : 1) + (stage.row_parts.empty() ? 0 : 1) +
                      (stage.buffer.empty() ? 0 : 1);
  return 62 + kBarsHeight + 46 + ribbons * kRibbonPitch;
}

std::string Panel(const host::Stage& stage, int number, std::int64_t all_cores, double top) {
  std::string svg = SvgText(40, top + 18, fmt::format("{}. {}", number, stage.title), "start",
                            std::string(kBold) + " font-size=\"15\"") +
                    SvgText(40, top + 37, Balance(stage, all_cores));
  double y = top + 58;
  svg += Bars(stage, all_cores, y) + MeanLine(stage, all_cores, y);
  y += kBarsHeight + 46;
  svg += Ribbon(
      stage.cores, y, "who has what",
      fmt::format("{} from the first to the last; the tone changes with the core", stage.unit));
  if (!stage.steps.empty()) {
    y += kRibbonPitch;
    svg += Ribbon(stage.steps, y, "core 0",
                  CountOf(stage.steps) == 1
                      ? "in one step"
                      : fmt::format("in {} steps", FormatCount(CountOf(stage.steps))));
  }
  if (!stage.row_parts.empty()) {
    y += kRibbonPitch;
    const std::int64_t parts = CountOf(stage.row_parts);
    svg += Ribbon(stage.row_parts, y, "a row",
                  parts == 1 ? "its elements, in one part"
                             : fmt::format("its elements, in {} parts", FormatCount(parts)));
  }
  if (!stage.buffer.empty()) svg += Buffer(stage, y + kRibbonPitch);
  return svg;
}

}  // namespace

std::string TilingPicture(const TilingCase& made) {
  double height = kHeaderHeight + 20 * static_cast<double>(made.layout.notes.size()) + 16;
  for (const host::Stage& stage : made.layout.stages) height += HeightOf(stage);
  std::string svg = SvgBegin(kWidth, height);
  svg += SvgText(40, 34, fmt::format("Tiling of {}", made.op->name), "start",
                 std::string(kBold) + " font-size=\"18\"");
  svg += SvgText(
      40, 56,
      fmt::format("{}, {} vector cores; tiling key {}, block dim {}, workspace {} bytes",
                  made.soc_name.empty() ? made.platform.soc : std::string_view(made.soc_name),
                  FormatCount(made.platform.vector_cores), made.tiling.key,
                  FormatCount(made.tiling.block_dim), FormatCount(made.tiling.workspace_bytes)));
  double y = kHeaderHeight;
  int number = 0;
  for (const host::Stage& stage : made.layout.stages) {
    svg += Panel(stage, ++number, made.platform.vector_cores, y);
    y += HeightOf(stage);
  }
  for (const std::string& note : made.layout.notes) {
    svg += SvgText(40, y + 12, "Note: " + note, "start", kSmall);
    y += 20;
  }
  return svg.append(kSvgEnd);
}

}  // namespace moeperm::cli
