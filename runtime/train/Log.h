//===- Log.h - what a training run tells ------------------------*- C++ -*-===//
//
// Nothing here allocates after construction: a step that logs is still a step
// that allocates nothing.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_LOG_H
#define FSDP_RUNTIME_TRAIN_LOG_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace fsdp::rt {

/// One JSON object on one line, built in place. Numbers are printed such that
/// they read back exactly (9 digits for float, 17 for double); what is not finite is null.
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

  char text[16384];
  std::size_t used = 0;
  bool complete = false;
};

/// The progress line: on a terminal it is rewritten in place, elsewhere a line appears once in a
/// while.
class ProgressLine {
public:
  /// `unit` is what the rate counts, such as "samples".
  ProgressLine(std::int64_t steps, const char *unit);

  /// Tells of a finished step. `seconds` is what it took, `rate` units a second.
  void step(std::int64_t number, double loss, double gradNorm, double lr, double seconds,
            double rate);
  /// Leaves the line standing, so that what is printed next begins on its own.
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

/// The number as people are shown it: NaN has a sign in memory (`-nan`) that means nothing.
double shownNumber(double value);

/// `617 B`, `12.3 KiB`, `4.56 GiB`.
std::string formatBytes(double bytes);

/// `617`, `12.3k`, `4.56M`, `7B`: three digits.
std::string formatCount(double count);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_LOG_H
