//===- LineChart.h - curves as a picture ------------------------*- C++ -*-===//

#ifndef PASSES_PRINTING_LINECHART_H
#define PASSES_PRINTING_LINECHART_H

#include "mlir/Support/LLVM.h"

#include <string>
#include <utility>
#include <vector>

namespace mlir::fsdp {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points; ///< x > 0, rising
  bool isIdeal = false;                          ///< drawn thin, without marks
};

/// Curves over a logarithmic axis, which has a label at each x. Labels of axes name the unit.
struct LineChart {
  std::string title, xLabel, yLabel;
  bool isLogarithmic = false; ///< in y, all of which are above 0; else y begins at 0
  std::vector<ChartLine> lines;
};

/// The positions of at least two labels from at most `least` to at least `most`: 0 and multiples of
/// 1, 2 or 5 times a power of ten, or, for a logarithmic axis, powers of ten. `least` counts there
/// only, where it is above 0.
std::vector<double> findTicks(double least, double most, bool isLogarithmic);

/// One picture with the charts below one another: a self-contained file without scripts. Lines also
/// differ in dashes and marks, so that they can be told apart without colour. Charts without points
/// are left out.
void drawSvg(ArrayRef<LineChart> charts, llvm::raw_ostream &os);

} // namespace mlir::fsdp

#endif // PASSES_PRINTING_LINECHART_H
