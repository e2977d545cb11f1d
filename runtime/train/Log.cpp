#include "runtime/train/Log.h"

#include "base/Error.h"
#include "base/WaitCounter.h"
#include "runtime/files/StandardStreams.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <unistd.h>
#include <utility>

namespace fsdp::rt {

using namespace base;

void JsonLine::print(const char *pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  const std::size_t room = sizeof(text) - used;
  const int length = std::vsnprintf(text + used, room, pattern, arguments);
  va_end(arguments);
  if (length < 0 || static_cast<std::size_t>(length) >= room)
    throw Error("a line of the log has more than " + std::to_string(sizeof(text)) +
                " bytes: give the model fewer metrics or shorter names");
  used += static_cast<std::size_t>(length);
}

void JsonLine::key(const char *prefix, const char *name) {
  if (complete)
    used = 0, complete = false;
  print(used == 0 ? "{\"" : ", \"");
  for (const char *part : {prefix, name})
    for (const char *c = part; *c; ++c)
      static_cast<unsigned char>(*c) < 0x20 ? print("\\u%04x", *c)
                                            : print(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
  print("\": ");
}

void JsonLine::add(const char *prefix, const char *name, double value) {
  key(prefix, name);
  std::isfinite(value) ? print("%.17g", value) : print("null");
}

void JsonLine::add(const char *prefix, const char *name, float value) {
  key(prefix, name);
  std::isfinite(value) ? print("%.9g", static_cast<double>(value)) : print("null");
}

void JsonLine::add(const char *prefix, const char *name, std::int64_t value) {
  key(prefix, name);
  print("%lld", static_cast<long long>(value));
}

const char *JsonLine::finish(std::size_t &bytes) {
  print(used == 0 ? "{}\n" : "}\n");
  bytes = used;
  complete = true;
  return text;
}

void formatDuration(double seconds, char (&text)[32]) {
  const auto whole = static_cast<long long>(std::ceil(std::min(std::max(seconds, 0.0), 1e12)));
  if (whole >= 3600)
    std::snprintf(text, sizeof(text), "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  else
    std::snprintf(text, sizeof(text), "%lld:%02lld", whole / 60, whole % 60);
}

/// Without an allocation.
static void formatCount(double count, char (&text)[32]) {
  static constexpr const char *units[] = {"", "k", "M", "B", "T"};
  int unit = 0;
  // 999.6 is 1k, not 1e+03.
  for (; count >= 999.5 && unit < 4; ++unit)
    count /= 1000;
  std::snprintf(text, sizeof(text), "%.3g%s", count, units[unit]);
}

double shownNumber(double value) { return std::isnan(value) ? NAN : value; }

std::string formatBytes(double bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit)
    bytes /= 1024;
  // 1000 KiB, not 1e+03 KiB.
  return format(bytes < 999.5 && unit > 0 ? "%.3g %s" : "%.0f %s", bytes, units[unit]);
}

std::string formatCount(double count) {
  char text[32];
  formatCount(count, text);
  return text;
}

ProgressLine::ProgressLine(std::int64_t steps, const char *unit, bool isFollowed)
    : steps(steps), unit(unit), terminal(!isFollowed && isatty(STDOUT_FILENO)) {}

bool ProgressLine::step(std::int64_t number, double loss, double gradNorm, double lr,
                        double seconds, double rate) {
  // The first step includes initialization, so it is not representative.
  secondsPerStep = number <= 2 ? seconds : secondsPerStep + 0.1 * (seconds - secondsPerStep);
  const double time = now();
  if (number != 1 && number != steps && time - lastShown < (terminal ? 0.1 : 2.0))
    return false;
  lastShown = time;
  char left[32], counted[32];
  formatCount(rate, counted);
  formatDuration(secondsPerStep * static_cast<double>(steps - number), left);
  std::printf("%sstep %lld/%lld  loss %.6g  grad norm %.4g  lr %.3g  %s %s/s  %s left%s",
              terminal ? "\r\033[K" : "", static_cast<long long>(number),
              static_cast<long long>(steps), shownNumber(loss), shownNumber(gradNorm), lr, counted,
              unit, left, terminal ? "" : "\n");
  showOutput();
  open = terminal;
  return true;
}

void ProgressLine::end() {
  if (std::exchange(open, false))
    std::printf("\n");
}

} // namespace fsdp::rt
