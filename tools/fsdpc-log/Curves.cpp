#include "tools/fsdpc-log/Curves.h"

#include "base/Error.h"
#include "base/PrintableText.h"
#include "tools/fsdpc-log/LogReader.h"
#include "tools/fsdpc-log/LogTable.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace fsdpc_log {

using base::Error;

double Axis::place(double value) const {
  if (isLog)
    return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
  return (value - low) / (high - low);
}

bool isDrawable(double value, bool isLog) {
  constexpr double kMaxShown = 1e150;
  return std::abs(value) <= kMaxShown && (!isLog || value >= 1 / kMaxShown);
}

std::vector<RunCurves> readCurves(const std::vector<std::string> &files,
                                  const std::vector<std::string> &fields, const Axis &x,
                                  bool isLogY) {
  std::vector<RunCurves> runs;
  FieldNames names;
  std::vector<std::string> notes; // after the reasons that make a chart impossible
  std::vector<bool> isKnown(fields.size()), isShown(fields.size());
  for (const std::string &file : files) {
    RunCurves &run = runs.emplace_back();
    run.name = file;
    run.ofField.resize(fields.size());
    std::int64_t withoutX = 0, notFinite = 0, notPositive = 0;
    std::optional<double> last;
    std::vector<std::string> waiting; // marks before the first step
    readLog(file, [&](const LogEntry &entry) {
      if (entry.kind == LogEntry::Run)
        return;
      if (entry.kind != LogEntry::Step) {
        last ? run.marks.push_back({*last, describeRecord(entry)})
             : waiting.push_back(describeRecord(entry));
        return;
      }
      names.add(entry);
      const double *at = entry.find(x.field);
      if (!at || !isDrawable(*at, x.isLog)) {
        ++withoutX;
        return;
      }
      last = *at;
      for (std::string &text : waiting)
        run.marks.push_back({*at, std::move(text)});
      waiting.clear();
      for (std::size_t i = 0; i < fields.size(); ++i) {
        const double *value = entry.find(fields[i]);
        if (!value)
          continue;
        isKnown[i] = true;
        const bool shows = isDrawable(*value, isLogY), isBelow = isLogY && *value <= 0;
        notFinite += !shows && !isBelow;
        notPositive += isBelow;
        if (shows)
          isShown[i] = true;
        if (shows || run.ofField[i].empty() || std::isfinite(run.ofField[i].back().y))
          run.ofField[i].push_back({*at, shows ? *value : NAN});
      }
    });
    if (withoutX)
      notes.push_back(base::inQuotes(file) + ": " + std::to_string(withoutX) +
                      " step(s) without a " + (x.isLog ? "positive" : "finite") + " '" + x.field +
                      "' are not in the chart");
    if (notFinite)
      notes.push_back(base::inQuotes(file) + ": " + std::to_string(notFinite) +
                      " value(s) that are not finite are gaps in the chart");
    if (notPositive)
      notes.push_back(base::inQuotes(file) + ": " + std::to_string(notPositive) +
                      " value(s) that are not above 0 are gaps on the logarithmic axis");
  }
  names.require({x.field}, "--x", files);
  names.require(fields, "--fields", files);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!isKnown[i])
      throw Error("no step of the given logs has both " + base::inQuotes(x.field) + " and " +
                  base::inQuotes(fields[i]) + ": name fields of their lines with --fields and --x");
    if (!isShown[i])
      throw Error(
          "no value of " + base::inQuotes(fields[i]) + " can be drawn: all are " +
          (isLogY ? "not finite, or not above 0 as a logarithmic axis needs" : "not finite"));
  }
  for (const std::string &text : notes)
    note(text);
  return runs;
}

std::vector<Point> downsample(const std::vector<Point> &points, const Axis &x,
                              std::size_t columns) {
  std::vector<Point> result;
  const auto columnOf = [&](const Point &point) {
    return static_cast<std::int64_t>(std::floor(x.place(point.x) * static_cast<double>(columns)));
  };
  for (std::size_t begin = 0; begin < points.size();) {
    if (!std::isfinite(points[begin].y)) {
      result.push_back(points[begin++]);
      continue;
    }
    std::size_t end = begin, least = begin, most = begin;
    const std::int64_t column = columnOf(points[begin]);
    for (; end < points.size() && std::isfinite(points[end].y) && columnOf(points[end]) == column;
         ++end) {
      if (points[end].y < points[least].y)
        least = end;
      if (points[end].y > points[most].y)
        most = end;
    }
    std::size_t kept[] = {begin, std::min(least, most), std::max(least, most), end - 1};
    for (std::size_t i = 0; i < 4; ++i)
      if (i == 0 || kept[i] != kept[i - 1])
        result.push_back(points[kept[i]]);
    begin = end;
  }
  return result;
}

void fitAxis(Axis &axis, double least, double most) {
  if (axis.isLog) {
    const double room = least < most ? std::pow(most / least, 0.03) : 1.2;
    axis.low = least / room, axis.high = most * room;
    return;
  }
  double room = 0.03 * (most - least);
  if (!(room > 0))
    room = least == 0 ? 1 : std::abs(least) * 0.1;
  axis.low = least - room, axis.high = most + room;
}

std::vector<double> ticksOf(const Axis &axis) {
  std::vector<double> ticks;
  const double decades = axis.isLog ? std::log10(axis.high / axis.low) : 0;
  if (axis.isLog && decades >= 0.7) {
    const int first = static_cast<int>(std::floor(std::log10(axis.low)));
    const int last = static_cast<int>(std::ceil(std::log10(axis.high)));
    const int stride = std::max(1, static_cast<int>(decades / 8));
    for (int power = first; power <= last; power += stride)
      for (const double factor : {1.0, 2.0, 5.0})
        if (const double tick = factor * std::pow(10.0, power);
            (factor == 1 || decades < 3) && tick >= axis.low && tick <= axis.high)
          ticks.push_back(tick);
    return ticks;
  }
  const double width = (axis.high - axis.low) / 6;
  const double power = std::pow(10.0, std::floor(std::log10(width)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0})
    if (step = factor * power; step >= width)
      break;
  for (double i = std::ceil(axis.low / step); i * step <= axis.high && ticks.size() < 20; ++i)
    ticks.push_back(i == 0 ? 0 : i * step);
  return ticks;
}

} // namespace fsdpc_log
