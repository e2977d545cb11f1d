//===- LineChart.cpp ------------------------------------------------------===//

#include "passes/printing/LineChart.h"
#include "passes/printing/ShardingGrid.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <set>

using namespace mlir;
using namespace mlir::fsdp;

/// Of a chart, in pixels: the frame, and the margins for labels; to the right are the names of
/// lines.
static constexpr double kFrameWidth = 480, kFrameHeight = 240, kLeftMargin = 96, kTopMargin = 40,
                        kRightMargin = 150, kBottomMargin = 56;

std::vector<double> mlir::fsdp::findTicks(double least, double most, bool isLogarithmic) {
  if (isLogarithmic) {
    const double first = std::floor(std::log10(least) + 1e-9);
    const double last = std::max(first + 1, std::ceil(std::log10(most) - 1e-9));
    std::vector<double> ticks;
    for (double power = first; power <= last; ++power)
      ticks.push_back(std::pow(10, power));
    return ticks;
  }
  if (most <= 0)
    return {0, 1};
  const double power = std::pow(10, std::floor(std::log10(most)));
  const double step = power / (most < 2 * power ? 5 : most < 5 * power ? 2 : 1);
  std::vector<double> ticks = {0};
  while (ticks.back() < most * (1 - 1e-9))
    ticks.push_back(static_cast<double>(ticks.size()) * step);
  return ticks;
}

/// 1200000 as "1.2M".
static std::string shorten(double value) {
  static constexpr std::pair<double, const char *> units[] = {
      {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto [unit, letter] : units)
    if (value >= unit) {
      os << llvm::format("%.4g", value / unit) << letter;
      return text;
    }
  os << llvm::format("%.4g", value);
  return text;
}

namespace {
/// Where the values of a chart are in its frame.
struct Scale {
  double firstX = HUGE_VAL, lastX = 0;
  std::set<double> xs;
  std::vector<double> ticks;
  bool isLogarithmic;

  explicit Scale(const LineChart &chart) : isLogarithmic(chart.isLogarithmic) {
    double least = HUGE_VAL, most = 0;
    for (const ChartLine &line : chart.lines)
      for (auto [x, y] : line.points) {
        xs.insert(x);
        least = std::min(least, y);
        most = std::max(most, y);
      }
    firstX = *xs.begin();
    lastX = *xs.rbegin();
    ticks = findTicks(isLogarithmic ? least : 0, most, isLogarithmic);
  }

  double ofX(double x) const {
    return firstX == lastX
               ? kLeftMargin + kFrameWidth / 2
               : kLeftMargin + kFrameWidth * std::log(x / firstX) / std::log(lastX / firstX);
  }
  double ofY(double y) const {
    const double part = isLogarithmic
                            ? std::log(y / ticks.front()) / std::log(ticks.back() / ticks.front())
                            : y / ticks.back();
    return kTopMargin + kFrameHeight * (1 - part);
  }
};
} // namespace

static std::string textAt(double x, double y, const char *anchor, StringRef text,
                          StringRef attributes = "") {
  return llvm::formatv("<text x=\"{0:f1}\" y=\"{1:f1}\" text-anchor=\"{2}\"{3}>{4}</text>\n", x, y,
                       anchor, attributes, escapeMarkup(text))
      .str();
}

/// A circle, square, triangle or diamond.
static std::string markAt(size_t kind, double x, double y, StringRef color) {
  if (kind % 4 == 0)
    return llvm::formatv("<circle cx=\"{0:f1}\" cy=\"{1:f1}\" r=\"4\" fill=\"{2}\"/>\n", x, y,
                         color)
        .str();
  const char *shapes[] = {"h8v8h-8z", "l-4 8h8z", "l4 4l-4 4l-4 -4z"};
  const bool isSquare = kind % 4 == 1;
  return llvm::formatv("<path d=\"M{0:f1} {1:f1}{2}\" fill=\"{3}\"/>\n", isSquare ? x - 4 : x,
                       y - 4, shapes[kind % 4 - 1], color)
      .str();
}

static void drawFrame(const LineChart &chart, const Scale &scale, llvm::raw_ostream &os) {
  os << textAt(kLeftMargin, 22, "start", chart.title, " font-weight=\"bold\"");
  double free = -HUGE_VAL; // where the next label of x may begin
  for (double x : scale.xs) {
    const std::string text = llvm::formatv("{0:f0}", x).str();
    const double at = scale.ofX(x), half = 4.5 * static_cast<double>(text.size());
    os << llvm::formatv("<path d=\"M{0:f1} {1:f1}v5\" stroke=\"black\"/>\n", at,
                        kTopMargin + kFrameHeight);
    if (at - half < free)
      continue;
    os << textAt(at, kTopMargin + kFrameHeight + 20, "middle", text);
    free = at + half;
  }
  for (double tick : scale.ticks)
    os << llvm::formatv("<path d=\"M{0:f1} {1:f1}h{2:f1}\" stroke=\"#ddd\"/>\n", kLeftMargin,
                        scale.ofY(tick), kFrameWidth)
       << textAt(kLeftMargin - 8, scale.ofY(tick) + 4, "end", shorten(tick));
  os << llvm::formatv("<path d=\"M{0:f1} {1:f1}v{2:f1}h{3:f1}\" fill=\"none\" stroke=\"black\"/>\n",
                      kLeftMargin, kTopMargin, kFrameHeight, kFrameWidth)
     << textAt(kLeftMargin + kFrameWidth / 2, kTopMargin + kFrameHeight + 42, "middle",
               chart.xLabel)
     << textAt(0, 0, "middle", chart.yLabel,
               llvm::formatv(" transform=\"translate(24 {0:f1}) rotate(-90)\"",
                             kTopMargin + kFrameHeight / 2)
                   .str());
}

static void drawLines(const LineChart &chart, const Scale &scale, llvm::raw_ostream &os) {
  static constexpr const char *colors[] = {"#0b5394", "#b45f06", "#38761d", "#741b47"};
  static constexpr const char *dashes[] = {"none", "8 4", "3 3", "10 3 3 3"};
  size_t kind = 0;
  for (auto [row, line] : llvm::enumerate(chart.lines)) {
    const char *color = line.isIdeal ? "#888" : colors[kind % 4];
    const char *dash = line.isIdeal ? "1 3" : dashes[kind % 4];
    const double nameY = kTopMargin + 12 + 20 * static_cast<double>(row),
                 nameX = kLeftMargin + kFrameWidth + 16;
    std::string path, marks;
    for (auto [x, y] : line.points) {
      path +=
          llvm::formatv("{0}{1:f1} {2:f1}", path.empty() ? "M" : "L", scale.ofX(x), scale.ofY(y));
      if (!line.isIdeal)
        marks += markAt(kind, scale.ofX(x), scale.ofY(y), color);
    }
    os << llvm::formatv("<path d=\"{0}M{1:f1} {2:f1}h28\" fill=\"none\" stroke=\"{3}\" "
                        "stroke-width=\"{4}\" stroke-dasharray=\"{5}\"/>\n",
                        path, nameX, nameY - 4, color, line.isIdeal ? 1 : 2, dash)
       << marks << (line.isIdeal ? "" : markAt(kind, nameX + 14, nameY - 4, color))
       << textAt(nameX + 34, nameY, "start", line.name);
    kind += !line.isIdeal;
  }
}

void mlir::fsdp::drawSvg(ArrayRef<LineChart> charts, llvm::raw_ostream &os) {
  SmallVector<LineChart> shown;
  for (const LineChart &chart : charts) {
    LineChart &copy = shown.emplace_back(chart);
    llvm::erase_if(copy.lines, [](const ChartLine &line) { return line.points.empty(); });
    if (copy.lines.empty())
      shown.pop_back();
  }
  const double width = kLeftMargin + kFrameWidth + kRightMargin,
               height = kTopMargin + kFrameHeight + kBottomMargin;
  const double all = height * static_cast<double>(shown.size());
  os << llvm::formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:f0}\" "
                      "height=\"{1:f0}\" viewBox=\"0 0 {0:f0} {1:f0}\" font-family=\"sans-serif\" "
                      "font-size=\"13\">\n",
                      width, all)
     << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  for (auto [index, chart] : llvm::enumerate(shown)) {
    const Scale scale(chart);
    os << llvm::formatv("<g transform=\"translate(0 {0:f0})\">\n",
                        height * static_cast<double>(index));
    drawFrame(chart, scale, os);
    drawLines(chart, scale, os);
    os << "</g>\n";
  }
  os << "</svg>\n";
}
