//===- Chart.h - charts of logs as SVG --------------------------*- C++ -*-===//

#ifndef TOOLS_FSDPC_LOG_CHART_H
#define TOOLS_FSDPC_LOG_CHART_H

#include "tools/fsdpc-log/Curves.h"

#include <string>
#include <vector>

namespace fsdpc_log {

/// Where one field is drawn, in pixels of the picture.
struct Panel {
  Axis y;
  double top;
};

/// A picture with a panel for each field, below one another, all over the same axis.
class Chart {
public:
  static constexpr double kWidth = 960, kLeft = 80, kRight = 20, kPanel = 300, kGap = 46;
  static constexpr double kPlot = kWidth - kLeft - kRight; ///< width of the axes

  /// The runs of readCurves, each with at least one point in each field of some run.
  Chart(std::vector<RunCurves> runs, const std::vector<std::string> &fields, Axis x, bool isLogY);

  /// The element `<svg>`. `isFile`: as a self-contained file.
  std::string svg(bool isFile) const;

  const std::vector<RunCurves> &runs() const { return curves; } ///< downsampled
  const std::vector<Panel> &panels() const { return areas; }
  const Axis &x() const { return along; }
  double height() const;
  double pixelX(double value) const { return kLeft + along.place(value) * kPlot; }
  double pixelY(const Panel &panel, double value) const {
    return panel.top + (1 - panel.y.place(value)) * kPanel;
  }
  static const char *colorOf(std::size_t run);

private:
  void drawPanel(std::size_t index, std::string &text) const;
  void drawLegend(std::string &text) const;

  std::vector<RunCurves> curves;
  std::vector<Panel> areas;
  Axis along;
  double legend = 0; ///< height
};

/// `text` within an element or attribute of XML and HTML.
std::string escapedXml(const std::string &text);

} // namespace fsdpc_log

#endif // TOOLS_FSDPC_LOG_CHART_H
