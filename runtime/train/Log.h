//===- Log.h - lines of the log and of progress -----------------*- C++ -*-===//
//
// Nothing here allocates after construction, so a step with a log allocates nothing.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_LOG_H
#define FSDP_RUNTIME_TRAIN_LOG_H

#include "base/Numbers.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace fsdp::rt {

/// One JSON object on one line, built in place. Numbers are printed with enough digits to be read
/// back exactly (9 for float, 17 for double); values that are not finite are null.
class JsonLine {
public:
  void add(const char *prefix, const char *name, double value);
  void add(const char *prefix, const char *name, float value);
  void add(const char *prefix, const char *name, std::int64_t value);
  template <typename T> void add(const char *name, T value) { add("", name, value); }

  /// Ends the object and starts a new one with the next `add`. Valid until then.
  const char *finish(std::size_t &bytes);

private:
  void key(const char *prefix, const char *name);
  void print(const char *pattern, ...) __attribute__((format(printf, 2, 3)));

  char text[131072]; ///< room for a thousand prints of a model
  std::size_t used = 0;
  bool complete = false;
};

/// The progress line: rewritten in place on a terminal, else, or where other lines follow each,
/// printed every two seconds.
class ProgressLine {
public:
  /// `unit` is the unit of the rate, such as "samples".
  ProgressLine(std::int64_t steps, const char *unit, bool isFollowed = false);

  /// Reports a finished step, which took `seconds`; `rate` is in units per second. Returns whether
  /// it is shown.
  bool step(std::int64_t number, double loss, double gradNorm, double lr, double seconds,
            double rate);
  /// Ends the line, so that the next output begins on a new one.
  void end();

private:
  std::int64_t steps;
  const char *unit;
  bool terminal;
  bool open = false;
  double secondsPerStep = 0; ///< smoothed
  double lastShown = -1e9;
};

/// `1:02:03` or `4:05`, rounded up to whole seconds.
void formatDuration(double seconds, char (&text)[32]);

/// The number without the sign of a NaN, which has no meaning.
double shownNumber(double value);

/// `617 B`, `12.3 KiB`, `4.56 GiB`.
std::string formatBytes(double bytes);

/// `617`, `12.3k`, `4.56M`, `7B`: three digits.
std::string formatCount(double count);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_LOG_H
