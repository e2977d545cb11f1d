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

/// One object a line, there as soon as its step is done. A log that cannot be written any more is
/// given up, after the last whole line, and training goes on; `finish` says so again.
class LogFile {
public:
  /// Begins a log. One that is there already is renamed: `.1` is added to its name, or the first
  /// number that is free and none of `others`, which this run will write. The file is locked until
  /// the process ends. Errors: another run has it locked; it cannot be created or renamed.
  /// `after`: a log that is there already goes on instead, behind the line of that step; lines of
  /// later steps, and a last one that is cut off, are dropped. A file with anything else than lines
  /// of a log is renamed as above.
  explicit LogFile(const base::OutputPath &path, const std::vector<base::FileIdentity> &others = {},
                   std::optional<std::int64_t> after = std::nullopt);

  /// The new name of the log that was there before, or empty.
  const std::string &previous() const { return previousLog; }
  /// The number of steps that were dropped from the log that goes on.
  std::int64_t dropped() const { return droppedSteps; }
  /// The last step of the log that goes on, or nothing where it begins.
  std::optional<std::int64_t> lastStep() const { return last; }
  /// That of the open file.
  base::FileIdentity identity() const { return base::identityOfDescriptor(descriptor.get()); }

  /// Writes the line of a step. Where that is impossible, such as when the disk is full, says so on
  /// standard error; later lines are not written, so that the log has no gap.
  void write(JsonLine &line, std::int64_t step);

  /// Writes a line before that of the first step, likewise.
  void writeHeader(const std::string &line);

  /// Flushes to the device what was written; a failure shows in `finish`.
  void flush();
  /// Flushes to the device. Error: the log is not complete.
  void finish();

private:
  void writeLine(const char *next, std::size_t left, std::int64_t step);
  void replaceFile(const std::string &file, const std::vector<base::FileIdentity> &others,
                   std::optional<std::int64_t> after);
  bool continueAfter(const std::string &file, std::int64_t after);
  void giveUp(std::int64_t step, int reason);

  std::string path, previousLog;
  std::optional<std::int64_t> last;
  base::Descriptor descriptor;
  bool regular = false;
  std::int64_t droppedSteps = 0;
  std::int64_t bytes = 0;         ///< of whole lines
  std::int64_t firstLostStep = 0; ///< the first step that is not in it; 0: none
  int lossReason = 0;
};

/// Error where `output` is a log that another run writes, and would be replaced.
void requireNoLogOfARun(const base::OutputPath &output);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_LOGFILE_H
