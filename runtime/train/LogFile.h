//===- LogFile.h - the file of --log ----------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_LOGFILE_H
#define FSDP_RUNTIME_TRAIN_LOGFILE_H

#include "base/Descriptor.h"
#include "base/OutputPath.h"
#include "runtime/train/Log.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// One JSON object per line, written when its step is done. If a line cannot be written, the log
/// ends with the last complete line and training continues; `finish` reports the error again.
/// Without training the log is a result, of which `finish` alone reports the error.
class LogFile {
public:
  /// Begins a log. An existing file is renamed: `.1` is appended to its name, or the first number
  /// that is free and not one of `others`, which this run will write. The file is locked until the
  /// process ends. Errors: another run has locked it; it cannot be created or renamed. `after`: an
  /// existing log is continued instead, after the line of that step; lines of later steps and an
  /// incomplete last line are removed. A file that is not a log is renamed as above.
  explicit LogFile(const base::OutputPath &path, const std::vector<base::FileIdentity> &others = {},
                   std::optional<std::int64_t> after = std::nullopt);

  /// The new name of the previous log, or empty.
  const std::string &previous() const { return previousLog; }
  /// The number of steps removed from the continued log.
  std::int64_t dropped() const { return droppedSteps; }
  /// The last step of the continued log; nothing for a new log.
  std::optional<std::int64_t> lastStep() const { return last; }
  /// `seconds` of the last line of the continued log; 0 without it.
  double lastSeconds() const { return seconds; }
  /// Removes the lines after that of step `step`, of a regular file. On failure as write().
  void goBack(std::int64_t step);
  /// The identity of the open file.
  base::FileIdentity identity() const { return base::identityOfDescriptor(descriptor.get()); }

  /// Writes the line of a step. On failure, such as a full disk, prints a note on standard error;
  /// later lines are not written, so that the log has no gap.
  void write(JsonLine &line, std::int64_t step);

  /// The log is the result of an evaluation: a run that cannot write it has failed.
  void holdsResult() { isResult = true; }

  /// Writes a line before that of the first step, in the same way.
  void writeHeader(const std::string &line);

  /// Flushes the file to the device; finish() reports a failure.
  void flush();
  /// Flushes to the device. Error, a refusal: the log is not complete.
  void finish();

private:
  void writeLine(const char *next, std::size_t left, std::int64_t step);
  void replaceFile(const std::string &file, const std::vector<base::FileIdentity> &others,
                   std::optional<std::int64_t> after);
  bool continueAfter(const std::string &file, std::int64_t after);
  /// The bytes of a log up to its line of step `after`; nothing: it is not a log.
  std::optional<std::int64_t> findEnd(const std::string &file, std::int64_t after);
  void giveUp(std::int64_t step, int reason);

  std::string path, previousLog;
  std::optional<std::int64_t> last;
  base::Descriptor descriptor;
  bool regular = false, isResult = false;
  double seconds = 0;
  std::int64_t droppedSteps = 0;
  std::int64_t bytes = 0; ///< of whole lines
  /// The first missing step, which is 0 if weights without a step are evaluated.
  std::optional<std::int64_t> firstLostStep;
  int lossReason = 0;
};

/// Error if `output` would replace a log that another run is writing.
void requireNoLogOfARun(const base::OutputPath &output);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_LOGFILE_H
