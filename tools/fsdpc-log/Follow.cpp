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
#include <unistd.h>
#include <utility>

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

/// Bytes of the file; none at its end.
std::string_view LogFollower::readAt(std::int64_t offset) {
  for (;;) {
    const ssize_t got = pread(file.get(), buffer, sizeof buffer, offset);
    if (got >= 0)
      return {buffer, static_cast<std::size_t>(got)};
    if (errno != EINTR)
      throw Error("cannot read '" + path + "': " + std::strerror(errno));
  }
}

/// Returns to the position after the last line that the file still has, where that is before the
/// bytes in `latest`: compares the lines from the first one on.
void LogFollower::rewind() {
  std::size_t kept = 0;
  position = 0;
  LineHash hash;
  std::int64_t offset = 0;
  for (bool isSame = true; isSame;) {
    const std::string_view bytes = readAt(offset);
    if (bytes.empty())
      break;
    for (const char byte : bytes) {
      ++offset;
      hash.add(byte);
      if (byte != '\n')
        continue;
      isSame = kept < hashes.size() && hashes[kept] == hash;
      if (!isSame)
        break;
      ++kept, position = offset;
      hash = LineHash();
    }
  }
  stream.lines = static_cast<std::int64_t>(kept);
  latest.resize(std::min<std::size_t>(kCompared, static_cast<std::size_t>(position)));
  latest.resize(static_cast<std::size_t>(
      std::max<ssize_t>(0, pread(file.get(), latest.data(), latest.size(),
                                 position - static_cast<std::int64_t>(latest.size())))));
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
  latest.resize(kept);
  if (kept == 0)
    rewind();
  hashes.resize(static_cast<std::size_t>(stream.lines));
  partial = LineHash();
  stream.drop();
  if (stream.lines < before)
    say(before - stream.lines == 1
            ? "1 line was removed from the log"
            : std::to_string(before - stream.lines) + " lines were removed from the log");
}

void LogFollower::readOn() {
  for (;;) {
    const std::string_view bytes = readAt(position);
    if (bytes.empty())
      break;
    position += static_cast<std::int64_t>(bytes.size());
    stream.add(bytes);
    for (const char byte : bytes) {
      partial.add(byte);
      if (byte == '\n')
        hashes.push_back(std::exchange(partial, LineHash()));
    }
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
  hashes.clear();
  partial = LineHash();
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
    base::waitWhileRead(kPollInterval);
  }
}

} // namespace fsdpc_log
