//===- LogReader.h - lines of a program's log -------------------*- C++ -*-===//
// docs/logs.md describes the log: JSON objects, one per line. Other lines are counted and reported,
// and the objects are read.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_LOG_LOGREADER_H
#define TOOLS_FSDPC_LOG_LOGREADER_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fsdpc_log {

/// A line of a log.
struct LogEntry {
  enum Kind { Step, Run, Restart, Rollback };

  Kind kind = Step;
  std::int64_t line = 0; ///< its number, from 1
  std::int64_t step = 0; ///< of Step
  /// Of Step: the numbers of the line, `step` among them; NaN where the line has null, NaN or
  /// Infinity.
  std::vector<std::pair<std::string, double>> values;
  nlohmann::json record; ///< of the others: the object under `run`, `restart` or `rollback`

  /// Null: the line does not have it.
  const double *find(std::string_view name) const;
};

/// Parses a line without its end into `entry`, except for the number of the line. Returns nothing,
/// or the fault, as text that follows "a line that": "is not a JSON object".
std::string parseEntry(std::string_view text, LogEntry &entry);

/// Skipped lines, by fault.
class SkippedLines {
public:
  void add(const std::string &fault, std::int64_t line);
  bool empty() const { return byFault.empty(); }
  /// "'a.jsonl': skipped 12 lines, each of which is not a JSON object: 4, 9, 17, 18, 20, … and 7
  /// more"
  std::vector<std::string> describe(const std::string &file) const;

private:
  struct Lines {
    std::int64_t count = 0;
    std::vector<std::int64_t> first;
  };
  std::map<std::string, Lines> byFault;
};

using TakeEntry = std::function<void(const LogEntry &)>;

/// Takes the bytes of a log in parts of any size.
class EntryStream {
public:
  explicit EntryStream(TakeEntry take) : take(std::move(take)) {}

  void add(std::string_view bytes);
  /// The end of a file: an incomplete last line is skipped.
  void end();
  /// Forgets an incomplete line, as the next bytes are of another file or place.
  void drop() { rest.clear(), isLong = false; }

  SkippedLines skipped;
  std::int64_t lines = 0; ///< whole ones so far
  std::int64_t taken = 0;

private:
  void line(std::string_view text);

  TakeEntry take;
  LogEntry entry;
  std::string rest;
  bool isLong = false; ///< `rest` would be longer than any line of a log
};

/// Passes the bytes of a file in parts. Error: it cannot be read.
void readBytes(const std::string &path, const std::function<void(std::string_view)> &take);

/// Calls the visitor with every entry of the file. Prints skipped lines on standard error. Throws
/// an error if the file cannot be read, or has lines but no line of a log.
void readLog(const std::string &path, const TakeEntry &take);

/// The names of the fields of all steps that are added.
class FieldNames {
public:
  void add(const LogEntry &entry);
  /// Throws an error if no step has a field of `fields`, the values of `option`; the message lists
  /// the existing fields. `mayLack`: fields that may be absent. Without steps, no field is refused.
  void require(const std::vector<std::string> &fields, const char *option,
               const std::vector<std::string> &files,
               const std::vector<std::string> &mayLack = {}) const;

  /// Whether none of the fields would be refused.
  bool haveAll(const std::vector<std::string> &fields,
               const std::vector<std::string> &mayLack) const;

private:
  std::set<std::string, std::less<>> names;
};

/// Prints a note of this tool on standard error.
void note(const std::string &text);

} // namespace fsdpc_log

#endif // TOOLS_FSDPC_LOG_LOGREADER_H
