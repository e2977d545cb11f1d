//===- RunLog.h - the log of a run as it begins -----------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_RUNLOG_H
#define FSDP_RUNTIME_TRAIN_RUNLOG_H

#include "runtime/train/LogFile.h"
#include "runtime/train/RunFiles.h"
#include "runtime/train/RunHeader.h"
#include "runtime/train/RunStart.h"

#include <optional>

namespace fsdp::rt {

/// Opens `log` if the run has --log: a new one, or that of the previous run or of the attempt
/// before a restart; reports what happened to an existing file, and writes the lines before that of
/// the first step. Errors: those of LogFile.
void openRunLog(std::optional<LogFile> &log, const RunHeader &header, const RunOutputs &outputs,
                RunStart &runStart);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_RUNLOG_H
