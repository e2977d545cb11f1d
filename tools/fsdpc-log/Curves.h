//===- Curves.h - the values of logs as curves ------------------*- C++ -*-===//

#ifndef TOOLS_FSDPC_LOG_CURVES_H
#define TOOLS_FSDPC_LOG_CURVES_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fsdpc_log {

/// A point of a curve; y is NaN where the log has a value that is not finite, which is a gap.
struct Point {
  double x, y;
};

/// A restart or a rollback.
struct Mark {
  double x;
  std::string text;
};

/// The curves of one log.
struct RunCurves {
  std::string name;
  std::vector<std::vector<Point>> ofField; ///< of each field of the chart
  std::vector<Mark> marks;
};

/// A direction of a chart.
struct Axis {
  std::string field;
  bool isLog = false;
  double low = 0, high = 1; ///< in units of the field

  /// The place of a value, 0 at `low` and 1 at `high`.
  double place(double value) const;
};

/// Whether an axis can show the value: finite, and so far from the limits of a double that no
/// difference or quotient of two leaves them; above 0 on a logarithmic axis.
bool isDrawable(double value, bool isLog);

/// Reads logs for a chart of `fields` over `x`. Prints on standard error how many values a chart
/// cannot show. Errors: those of readLog; no log has a field, or none of its values can be shown.
std::vector<RunCurves> readCurves(const std::vector<std::string> &files,
                                  const std::vector<std::string> &fields, const Axis &x,
                                  bool isLogY);

/// The points that `columns` columns show, of `points` in the order of a log: the first, the least,
/// the greatest and the last of each column, and each gap.
std::vector<Point> downsample(const std::vector<Point> &points, const Axis &x, std::size_t columns);

/// Sets the ends of an axis around values in [least, most].
void fitAxis(Axis &axis, double least, double most);

/// Positions of labels, from `low` to `high`: multiples of 1, 2 or 5 times a power of ten; of a
/// logarithmic axis powers of ten, with their doubles and fivefolds where these are few.
std::vector<double> ticksOf(const Axis &axis);

} // namespace fsdpc_log

#endif // TOOLS_FSDPC_LOG_CURVES_H
