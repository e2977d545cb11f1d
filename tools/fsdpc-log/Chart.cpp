#include "tools/fsdpc-log/Chart.h"

#include "base/Error.h"
#include "base/PrintableText.h"
#include "tools/fsdpc-log/LogTable.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace fsdpc_log {

using base::format;

namespace {

// The palette of Okabe and Ito, for colour-blind readers, without its yellow.
constexpr const char *kColors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                   "#56b4e9", "#e69f00", "#333333"};
constexpr const char *kDashes[] = {"", "6 3", "2 2", "8 3 2 3"};
constexpr double kRow = 18; ///< of the legend
constexpr std::size_t kColumns = static_cast<std::size_t>(Chart::kPlot);

std::string label(const std::string &field, double value) {
  const double size = std::abs(value);
  if (field == "mfu")
    return format("%.3g%%", 100 * value);
  if (field == "seconds")
    return shownValue(field, value);
  static constexpr const char *units[] = {"", "k", "M", "B", "T"};
  int unit = 0;
  double scaled = size;
  for (; scaled >= 999.5 && unit < 4; ++unit)
    scaled /= 1000;
  return size >= 10000 && scaled < 1000 ? format("%g%s", value < 0 ? -scaled : scaled, units[unit])
                                        : format("%.6g", value);
}

const char *dashOf(std::size_t run) {
  return kDashes[run / std::size(kColors) % std::size(kDashes)];
}

} // namespace

std::string escapedXml(const std::string &text) {
  std::string escaped;
  for (const char c : base::printable(text))
    switch (c) {
    case '&':
      escaped += "&amp;";
      break;
    case '<':
      escaped += "&lt;";
      break;
    case '>':
      escaped += "&gt;";
      break;
    case '"':
      escaped += "&quot;";
      break;
    default:
      escaped += c;
    }
  return escaped;
}

const char *Chart::colorOf(std::size_t run) { return kColors[run % std::size(kColors)]; }

Chart::Chart(std::vector<RunCurves> runs, const std::vector<std::string> &fields, Axis x,
             bool isLogY)
    : curves(std::move(runs)), along(std::move(x)) {
  double least = INFINITY, most = -INFINITY;
  for (const RunCurves &run : curves)
    for (const std::vector<Point> &points : run.ofField)
      for (const Point &point : points)
        least = std::min(least, point.x), most = std::max(most, point.x);
  fitAxis(along, least, most);
  legend = kRow * static_cast<double>(curves.size()) + 10;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    Panel &panel = areas.emplace_back();
    panel.y.field = fields[i];
    panel.y.isLog = isLogY;
    panel.top = 24 + legend + static_cast<double>(i) * (kPanel + kGap);
    least = INFINITY, most = -INFINITY;
    for (const RunCurves &run : curves)
      for (const Point &point : run.ofField[i])
        if (std::isfinite(point.y))
          least = std::min(least, point.y), most = std::max(most, point.y);
    fitAxis(panel.y, least, most);
  }
  for (RunCurves &run : curves)
    for (std::vector<Point> &points : run.ofField)
      points = downsample(points, along, kColumns);
}

double Chart::height() const { return areas.back().top + kPanel + 48; }

void Chart::drawLegend(std::string &text) const {
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const double y = 14 + kRow * static_cast<double>(i);
    text += format("<path d='M%g %gh28' stroke='%s' stroke-width='2' stroke-dasharray='%s'/>\n",
                   kLeft, y, colorOf(i), dashOf(i));
    text +=
        format("<text x='%g' y='%g'>", kLeft + 36, y + 4) + escapedXml(curves[i].name) +
        (curves[i].marks.empty() ? ""
                                 : format(" (%zu restart%s or rollback%s)", curves[i].marks.size(),
                                          curves[i].marks.size() == 1 ? "" : "s",
                                          curves[i].marks.size() == 1 ? "" : "s")) +
        "</text>\n";
  }
}

void Chart::drawPanel(std::size_t index, std::string &text) const {
  const Panel &panel = areas[index];
  const double bottom = panel.top + kPanel;
  for (const double tick : ticksOf(panel.y)) {
    const double y = pixelY(panel, tick);
    text += format("<path class='grid' d='M%g %.1fh%g'/><text class='y' x='%g' y='%.1f'>", kLeft, y,
                   kPlot, kLeft - 6, y + 4) +
            escapedXml(label(panel.y.field, tick)) + "</text>\n";
  }
  for (const double tick : ticksOf(along)) {
    const double x = pixelX(tick);
    text += format("<path class='grid' d='M%.1f %gv%g'/><text class='x' x='%.1f' y='%g'>", x,
                   panel.top, kPanel, x, bottom + 16) +
            escapedXml(label(along.field, tick)) + "</text>\n";
  }
  text += format("<text class='name' x='%g' y='%g'>", kLeft, panel.top - 6) +
          escapedXml(panel.y.field) + (panel.y.isLog ? " (logarithmic)" : "") + "</text>\n";
  for (std::size_t run = 0; run < curves.size(); ++run) {
    for (const Mark &mark : curves[run].marks)
      text += format("<path class='mark' stroke='%s' d='M%.1f %gv%g'><title>", colorOf(run),
                     pixelX(mark.x), panel.top, kPanel) +
              escapedXml(mark.text) + "</title></path>\n";
    const std::vector<Point> &points = curves[run].ofField[index];
    std::string path, dots;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!std::isfinite(points[i].y))
        continue;
      const bool begins = i == 0 || !std::isfinite(points[i - 1].y);
      const bool ends = i + 1 == points.size() || !std::isfinite(points[i + 1].y);
      const double x = pixelX(points[i].x), y = pixelY(panel, points[i].y);
      path += format("%s%.1f %.1f", begins ? "M" : "L", x, y);
      if (begins && ends) // not visible in a line
        dots += format("<circle cx='%.1f' cy='%.1f' r='2' fill='%s'/>", x, y, colorOf(run));
    }
    if (!path.empty())
      text += format("<path class='line' stroke='%s' stroke-dasharray='%s' d='", colorOf(run),
                     dashOf(run)) +
              path + "'/>" + dots + "\n";
  }
  text += format("<path class='frame' d='M%g %gv%gh%g'/>\n", kLeft, panel.top, kPanel, kPlot);
}

std::string Chart::svg(bool isFile) const {
  std::string text = isFile ? "<?xml version='1.0' encoding='UTF-8'?>\n" : "";
  text += format("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %g %g' width='%g' "
                 "height='%g' font-family='sans-serif' font-size='12'>\n",
                 kWidth, height(), kWidth, height());
  text += "<style>.grid{stroke:#e4e4e4;fill:none}.frame{stroke:#888;fill:none}"
          ".line{fill:none;stroke-width:1.5;stroke-linejoin:round}"
          ".mark{stroke-dasharray:3 3;stroke-width:1;fill:none}"
          ".y{text-anchor:end;fill:#444}.x{text-anchor:middle;fill:#444}"
          ".name{font-weight:bold}</style>\n";
  text += "<rect width='100%' height='100%' fill='#fff'/>\n";
  drawLegend(text);
  for (std::size_t i = 0; i < areas.size(); ++i)
    drawPanel(i, text);
  text += format("<text class='x' x='%g' y='%g'>", kLeft + kPlot / 2, height() - 10) +
          escapedXml(along.field) + (along.isLog ? " (logarithmic)" : "") + "</text>\n";
  return text + "</svg>\n";
}

} // namespace fsdpc_log
