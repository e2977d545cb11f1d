#include "tools/fsdpc-log/Follow.h"

#include "base/Error.h"
#include "base/OutputPath.h"
#include "base/PrintableText.h"
#include "base/StandardOutput.h"
#include "tools/fsdpc-log/LogTable.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace fsdpc_log {

using base::Error;

static constexpr std::size_t kCompared = 1 << 20; // bytes
static constexpr auto kPollInterval = std::chrono::milliseconds(200);

/// Whether the file was written since the last call. Without this a log to which nobody writes
/// would be read again in each poll.
bool LogFollower::changed() {
  struct stat status;
  if (fstat(file.get(), &status) != 0)
    return true;
  const bool isSame = status.st_size == size && status.st_mtim.tv_sec == modified.tv_sec &&
                      status.st_mtim.tv_nsec == modified.tv_nsec;
  size = status.st_size, modified = status.st_mtim;
  return !isSame;
}

/// Returns to the position after the last line that the file still has.
void LogFollower::stepBack() {
  const std::int64_t begin = position - static_cast<std::int64_t>(latest.size());
  std::string now(latest.size(), '\0');
  now.resize(static_cast<std::size_t>(
      std::max<ssize_t>(0, pread(file.get(), now.data(), now.size(), begin))));
  if (now == latest)
    return;
  const auto same = static_cast<std::size_t>(
      std::mismatch(now.begin(), now.end(), latest.begin()).first - now.begin());
  const std::size_t kept = latest.substr(0, same).rfind('\n') + 1; // of npos 0
  const std::int64_t before = stream.lines;
  stream.lines -=
      std::count(latest.begin() + static_cast<std::ptrdiff_t>(kept), latest.end(), '\n');
  position = begin + static_cast<std::int64_t>(kept);
  if (kept == 0) // the lines before are no longer known
    stream.lines = position = 0;
  latest.resize(kept);
  stream.drop();
  if (stream.lines < before)
    say(std::to_string(before - stream.lines) + " lines were removed from the log");
}

void LogFollower::readOn() {
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = pread(file.get(), buffer, sizeof buffer, position);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw Error("cannot read '" + path + "': " + std::strerror(errno));
    if (got == 0)
      break;
    const std::string_view bytes(buffer, static_cast<std::size_t>(got));
    position += got;
    stream.add(bytes);
    latest += bytes;
    if (latest.size() > 2 * kCompared)
      latest.erase(0, latest.size() - kCompared);
  }
  reportSkipped();
}

void LogFollower::reportSkipped() {
  for (const std::string &text : stream.skipped.describe(path))
    note(text);
  stream.skipped = SkippedLines();
}

void LogFollower::poll() {
  struct stat status;
  const bool exists = stat(path.c_str(), &status) == 0;
  if (file && changed()) {
    stepBack();
    readOn(); // also of a file that has another name now
  }
  if (!exists || (file && status.st_dev == device && status.st_ino == inode))
    return;
  base::requireReadable(path);
  base::Descriptor next(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!next && errno == ENOENT)
    return;
  if (!next || fstat(next.get(), &status) != 0)
    throw Error("cannot open '" + path + "': " + std::strerror(errno));
  if (file)
    say("'" + path + "' is a new log");
  file = std::move(next);
  device = status.st_dev, inode = status.st_ino;
  stream.end();
  stream.skipped = SkippedLines();
  stream.lines = 0, position = 0;
  latest.clear();
  size = -1;
  readOn();
}

void watchLog(const std::string &path, const std::vector<std::string> &fields, std::int64_t every) {
  std::string text;
  std::optional<LogTable> table(std::in_place, fields, every);
  LogFollower follower(
      path, [&](const LogEntry &entry) { text += table->add(entry); },
      [&](const std::string &what) {
        text += table->finish() + "-- " + base::printableMessage(what) + "\n";
      });
  for (bool isFirst = true;; isFirst = false) {
    follower.poll();
    if (isFirst && text.empty())
      note("waiting for lines in '" + path + "'");
    base::printResult(text);
    text.clear();
    std::this_thread::sleep_for(kPollInterval);
  }
}

} // namespace fsdpc_log
