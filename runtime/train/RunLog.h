//===- RunLog.h - the log of a run as it begins -----------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_RUNLOG_H
#define FSDP_RUNTIME_TRAIN_RUNLOG_H

#include "runtime/train/LogFile.h"
#include "runtime/train/RunFiles.h"
#include "runtime/train/RunHeader.h"
#include "runtime/train/RunStart.h"

#include <optional>

namespace fsdp::rt {

/// Opens `log` where the run has --log, a new one, or that of the run before it or of the attempt
/// before a restart; says what became of the file that was there, and writes the lines before that
/// of the first step. Errors: those of LogFile.
void openRunLog(std::optional<LogFile> &log, const RunHeader &header, const RunOutputs &outputs,
                RunStart &runStart);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_RUNLOG_H
