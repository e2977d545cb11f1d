//===- LogTable.h - a log as a table ----------------------------*- C++ -*-===//

#ifndef TOOLS_FSDPC_LOG_LOGTABLE_H
#define TOOLS_FSDPC_LOG_LOGTABLE_H

#include "tools/fsdpc-log/LogReader.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsdpc_log {

/// How a value is shown: counts as 12.3k, `seconds` as 1:02:03, `mfu` as 41.2%, others with six
/// digits.
std::string shownValue(const std::string &field, double value);

/// "restart 1 after step 20, on fsdp=2: rank 1: was killed by signal 9 (Killed)"; of a run its
/// model, mesh and sizes.
std::string describeRecord(const LogEntry &entry);

/// Builds the lines of a table as entries arrive, so that logs may have any length.
class LogTable {
public:
  /// `fields`: the columns, with `step` before them unless it is one of them; none: the usual
  /// columns that the log has. `every`: rows are the steps that are multiples of it, the first, the
  /// last and those with an evaluation that is shown.
  LogTable(std::vector<std::string> fields, std::int64_t every);

  /// The usual columns that are shown from the first row on, even without values.
  static std::vector<std::string> lateColumns() { return {"val_loss", "val_perplexity"}; }
  void expect(const std::string &column) { columns.push_back(column); }

  /// The lines that `entry` adds, each with its end.
  std::string add(const LogEntry &entry);
  /// Those that the end of the log adds.
  std::string finish();
  /// The given fields that no step had.
  std::vector<std::string> missing() const;

private:
  std::string row(const LogEntry &entry);
  bool updateColumns(const LogEntry &entry);
  bool showsEvaluation(const LogEntry &entry) const;

  std::vector<std::string> given, columns;
  std::vector<bool> seen; ///< of `given`
  std::int64_t every;
  bool hasRow = false, hasHead = false;
  std::optional<LogEntry> waiting; ///< the latest step without a row
};

} // namespace fsdpc_log

#endif // TOOLS_FSDPC_LOG_LOGTABLE_H
