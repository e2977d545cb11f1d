//===- Follow.h - a log that grows ------------------------------*- C++ -*-===//

#ifndef TOOLS_FSDPC_LOG_FOLLOW_H
#define TOOLS_FSDPC_LOG_FOLLOW_H

#include "base/Descriptor.h"
#include "tools/fsdpc-log/LogReader.h"

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace fsdpc_log {

/// FNV-1a of the bytes of a line, its end included.
class LineHash {
public:
  void add(char byte) { value = (value ^ static_cast<unsigned char>(byte)) * 1099511628211u; }
  bool operator==(const LineHash &other) const { return value == other.value; }

private:
  std::uint64_t value = 14695981039346656037u;
};

/// Reads lines that are appended to the file at a path. A run renames an existing log and begins
/// another one at its path; a restart or a resume removes the lines of later steps and continues in
/// the same file. Both are noticed.
class LogFollower {
public:
  LogFollower(std::string path, TakeEntry take, std::function<void(const std::string &)> say)
      : path(std::move(path)), stream(std::move(take)), say(std::move(say)) {}

  /// Reads the new lines. The file need not exist. Throws an error if it cannot be read.
  void poll();

private:
  void readOn();
  bool changed();
  void stepBack();
  void rewind();
  std::string_view readAt(std::int64_t offset);
  void reportSkipped();

  std::string path;
  EntryStream stream;
  std::function<void(const std::string &)> say;
  base::Descriptor file;
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = -1;              ///< of the file in the last poll
  timespec modified{};          ///< likewise
  std::int64_t position = 0;    ///< of the next byte
  std::string latest;           ///< the bytes before it, which are compared with the file
  std::vector<LineHash> hashes; ///< of the lines before it, to find how many of them the file keeps
  LineHash partial;             ///< of the incomplete line before it
  char buffer[1 << 16];
};

/// Prints the table of a log, and the rows that are added, until a signal ends the process.
[[noreturn]] void watchLog(const std::string &path, const std::vector<std::string> &fields,
                           std::int64_t every);

} // namespace fsdpc_log

#endif // TOOLS_FSDPC_LOG_FOLLOW_H
