#include "tools/fsdpc-log/Follow.h"

#include "base/Error.h"
#include "base/OutputPath.h"
#include "base/PrintableText.h"
#include "base/StandardOutput.h"
#include "tools/fsdpc-log/LogTable.h"

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

namespace {

constexpr std::size_t kRecent = 4096;
constexpr auto kPollInterval = std::chrono::milliseconds(200);

/// FNV-1a.
std::uint64_t digestOf(std::string_view text) {
  std::uint64_t digest = 0xcbf29ce484222325u;
  for (const char c : text)
    digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return digest;
}

} // namespace

/// Whether the file still has line `line` of `recent` where it was read.
bool LogFollower::isSame(std::size_t line) const {
  const std::int64_t begin = line == 0 ? 0 : recent[line - 1].end;
  if (line == 0 && stream.lines > static_cast<std::int64_t>(recent.size()))
    return false; // its beginning is no longer known
  std::string text(static_cast<std::size_t>(recent[line].end - begin), '\0');
  return pread(file.get(), text.data(), text.size(), begin) == static_cast<ssize_t>(text.size()) &&
         digestOf(text) == recent[line].digest;
}

/// Whether the lines that were read last are still in the file.
bool LogFollower::matches() const {
  struct stat status;
  if (fstat(file.get(), &status) != 0 || status.st_size < position)
    return false;
  std::string text(partial.size(), '\0');
  if (pread(file.get(), text.data(), text.size(), position - static_cast<off_t>(text.size())) !=
          static_cast<ssize_t>(text.size()) ||
      text != partial)
    return false;
  return recent.empty() || isSame(recent.size() - 1);
}

/// Returns to the position after the last line that the file still has.
void LogFollower::stepBack() {
  const std::int64_t before = stream.lines;
  while (!recent.empty() && !isSame(recent.size() - 1)) {
    recent.pop_back();
    --stream.lines;
  }
  if (recent.empty())
    stream.lines = 0;
  position = recent.empty() ? 0 : recent.back().end;
  partial.clear();
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
    std::string_view bytes(buffer, static_cast<std::size_t>(got));
    position += got;
    stream.add(bytes);
    for (std::size_t end; (end = bytes.find('\n')) != bytes.npos; bytes.remove_prefix(end + 1)) {
      partial += bytes.substr(0, end + 1);
      recent.push_back(
          {position - static_cast<std::int64_t>(bytes.size() - end - 1), digestOf(partial)});
      partial.clear();
      if (recent.size() > kRecent)
        recent.pop_front();
    }
    partial += bytes;
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
  if (file) {
    if (!matches())
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
  recent.clear(), partial.clear();
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
