// SPDX-License-Identifier: Apache-2.0
#include "cli/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "cli/output.hpp"
#include "cli/svg.hpp"

namespace moeperm::cli {
namespace {

// 0 to 8 eighths of a cell.
constexpr std::array<const char*, 9> kRising = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, 9> kGrowing = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};

// A value that is not 0 shows at least a sliver.
std::int64_t Eighths(std::int64_t value, std::int64_t most, int cells) {
  if (value <= 0 || most <= 0) return 0;
  const double part = static_cast<double>(value) / static_cast<double>(most);
  return std::max<std::int64_t>(1, std::llround(part * cells * 8));
}

// 1, 2 or 5 times a power of ten, for about `ticks` steps up to `most`.
double NiceStep(double most, int ticks) {
  const double raw = std::max(most, 1.0) / ticks;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return std::max(1.0, factor * power);
  }
  return std::max(1.0, 10 * power);
}

// The plot area of the SVG, and where a load lies in it.
struct Plot {
  static constexpr double kWidth = 960, kHeight = 440;
  static constexpr double kLeft = 76, kRight = 936, kTop = 92, kBottom = 372;
  double most;
  double experts;

  [[nodiscard]] double Y(double load) const { return kBottom - load / most * (kBottom - kTop); }
  [[nodiscard]] double X(double expert) const {
    return kLeft + expert / experts * (kRight - kLeft);
  }
};

// Gridlines with the loads at the left, expert numbers below.
std::string SvgAxes(const Plot& plot, double step) {
  std::string svg;
  for (int i = 0; i * step <= plot.most * (1 + 1e-9); ++i) {
    const double load = i * step;
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\"/>\n"
        "<text x=\"{4:.1f}\" y=\"{5:.1f}\" text-anchor=\"end\">{6}</text>\n",
        Plot::kLeft, Plot::kRight, plot.Y(load), load > 0 ? "#e3e6ea" : "#6b7480", Plot::kLeft - 8,
        plot.Y(load) + 4, FormatCount(std::llround(load)));
  }
  const double expert_step = NiceStep(plot.experts, 8);
  for (int i = 0; i * expert_step < plot.experts; ++i) {
    const double expert = i * expert_step;
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.0f}</text>\n",
                       plot.X(expert + 0.5), Plot::kBottom + 18, expert);
  }
  svg += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">expert</text>\n"
      "<text transform=\"translate(20 {:.1f}) rotate(-90)\" text-anchor=\"middle\">tokens</text>\n",
      (Plot::kLeft + Plot::kRight) / 2, Plot::kBottom + 40, (Plot::kTop + Plot::kBottom) / 2);
  return svg;
}

// One path a colour: thousands of experts stay a small file.
std::string SvgBars(const Plot& plot, const ExpertLoad& load) {
  std::string kept;
  std::string dropped;
  const double width = plot.X(1) - plot.X(0);
  const double gap = width > 4 ? width * 0.15 : 0;
  for (std::size_t e = 0; e < load.tokens_per_expert.size(); ++e) {
    const double x = plot.X(static_cast<double>(e)) + gap / 2;
    const auto bar = [&](std::string& path, std::int64_t from, std::int64_t to) {
      if (to <= from) return;
      path += fmt::format("M{:.2f} {:.2f}V{:.2f}h{:.2f}V{:.2f}z", x,
                          plot.Y(static_cast<double>(from)), plot.Y(static_cast<double>(to)),
                          width - gap, plot.Y(static_cast<double>(from)));
    };
    const std::int64_t tokens = load.tokens_per_expert[e];
    const std::int64_t fits = load.capacity ? std::min(tokens, *load.capacity) : tokens;
    bar(kept, 0, fits);
    bar(dropped, fits, tokens);
  }
  std::string svg = fmt::format("<path fill=\"#4c78a8\" d=\"{}\"/>\n", kept);
  if (!dropped.empty()) svg += fmt::format("<path fill=\"#e07b39\" d=\"{}\"/>\n", dropped);
  return svg;
}

std::string LevelLine(const Plot& plot, double load, std::string_view colour,
                      std::string_view dash) {
  return fmt::format(
      "<line x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" "
      "stroke-width=\"2\" stroke-dasharray=\"{4}\"/>\n",
      Plot::kLeft, Plot::kRight, plot.Y(load), colour, dash);
}

// What each colour and line is, with its number, above the plot.
class Legend {
 public:
  void Box(std::string_view colour, std::string_view text) {
    svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"64\" width=\"14\" height=\"12\" fill=\"{}\"/>\n",
                        x_, colour);
    Text(14, text);
  }
  void Line(std::string_view colour, std::string_view dash, std::string_view text) {
    svg_ += fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"70\" y2=\"70\" stroke=\"{}\" stroke-width=\"2\" "
        "stroke-dasharray=\"{}\"/>\n",
        x_, x_ + 26, colour, dash);
    Text(26, text);
  }
  [[nodiscard]] const std::string& svg() const { return svg_; }

 private:
  void Text(double symbol, std::string_view text) {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"74\">{}</text>\n", x_ + symbol + 6, text);
    x_ += symbol + 6 + 7.2 * static_cast<double>(text.size()) + 18;
  }
  double x_ = Plot::kLeft;
  std::string svg_;
};

}  // namespace

std::string TextBar(std::int64_t value, std::int64_t most, int width) {
  std::int64_t eighths = Eighths(value, most, width);
  std::string bar;
  for (; eighths >= 8; eighths -= 8) bar += kGrowing[8];
  return bar + kGrowing[static_cast<std::size_t>(eighths)];
}

std::string TextChart(const ExpertLoad& load) {
  constexpr std::size_t kColumns = 64;
  constexpr int kLines = 8;
  const std::vector<std::int64_t>& tokens = load.tokens_per_expert;
  if (tokens.empty() || load.most == 0) return "";
  const std::size_t group = (tokens.size() + kColumns - 1) / kColumns;
  std::vector<std::int64_t> columns;
  for (std::size_t first = 0; first < tokens.size(); first += group) {
    const std::size_t last = std::min(tokens.size(), first + group);
    columns.push_back(*std::max_element(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                                        tokens.begin() + static_cast<std::ptrdiff_t>(last)));
  }
  const int mean_line = static_cast<int>(load.mean / static_cast<double>(load.most) * kLines);
  std::string text;
  for (int line = kLines - 1; line >= 0; --line) {
    std::string label;
    if (line == mean_line) label = fmt::format("mean {:.1f}", load.mean);
    if (line == kLines - 1) label = FormatCount(load.most);
    text += fmt::format("{:>14} {} ", label, label.empty() ? "│" : "┤");
    for (const std::int64_t value : columns) {
      const std::int64_t left = Eighths(value, load.most, kLines) - std::int64_t{8} * line;
      text += kRising[static_cast<std::size_t>(std::clamp<std::int64_t>(left, 0, 8))];
    }
    text += '\n';
  }
  text += fmt::format("{:>14} └", 0);
  for (std::size_t i = 0; i < columns.size() + 1; ++i) text += "─";
  text += fmt::format("\n{:>16} experts 0 to {}{}\n", "", tokens.size() - 1,
                      group == 1 ? "" : fmt::format(", the busiest of {} a column", group));
  return text;
}

std::string SvgChart(const ExpertLoad& load, std::string_view title) {
  // Up to the gridline above the highest bar or line.
  const double highest = static_cast<double>(std::max(load.most, load.capacity.value_or(0)));
  const double step = NiceStep(highest, 5);
  const Plot plot{std::max(1.0, std::ceil(highest / step)) * step,
                  std::max(1.0, static_cast<double>(load.tokens_per_expert.size()))};
  Legend legend;
  legend.Box("#4c78a8", load.capacity ? "kept" : "tokens");
  if (load.dropped > 0)
    legend.Box("#e07b39", fmt::format("dropped ({:.1f} %)", load.drop_rate() * 100));
  legend.Line("#222222", "7 4", fmt::format("mean {:.1f}", load.mean));
  if (load.capacity) legend.Line("#c0392b", "none", fmt::format("capacity {}", *load.capacity));

  std::string svg = SvgBegin(Plot::kWidth, Plot::kHeight);
  svg += fmt::format(
      "<text x=\"{0}\" y=\"30\" font-size=\"18\" font-weight=\"bold\">{1}</text>\n"
      "<text x=\"{0}\" y=\"50\">{2} routes to {3} experts; busiest {4}, {5:.2f} times the mean; "
      "{6} empty</text>\n",
      Plot::kLeft, EscapeXml(title), FormatCount(load.routes), load.tokens_per_expert.size(),
      FormatCount(load.most), load.imbalance(), load.empty);
  svg += legend.svg() + SvgAxes(plot, step) + SvgBars(plot, load);
  // The mean last: it is dashed, so the capacity shows through where they are the same.
  if (load.capacity) svg += LevelLine(plot, static_cast<double>(*load.capacity), "#c0392b", "none");
  svg += LevelLine(plot, load.mean, "#222222", "7 4");
  return svg.append(kSvgEnd);
}

}  // namespace moeperm::cli
