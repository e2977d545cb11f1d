//===- Supervision.h - restarts of jobs -------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_SUPERVISION_H
#define FSDP_RUNTIME_TRAIN_SUPERVISION_H

#include "runtime/train/CommandLine.h"

#include <functional>
#include <string>

namespace fsdp::rt {

/// Errors: --max-restarts under a launcher; --elastic where no plan has fewer ranks than `plan`.
void requireSupervision(Plans plans, const Program &plan, const Options &options);

/// Runs one job of `plan` and returns its status. Sets `cause` to the cause of a failure, which is
/// then not printed.
using RunJob = std::function<int(const Program &plan, std::string &cause)>;

/// Runs `first`, and restarts after a failure, at most --max-restarts times; with --elastic on
/// fewer ranks if there is a plan for them. Updates the number of restarts and the last cause in
/// `options`; RunStart has the checkpoint to continue from. Returns the last status. There is no
/// restart after a signal that requests the end of the run (StopSignals.h).
int runSupervised(Plans plans, const Program &first, Options &options, const RunJob &runJob);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_SUPERVISION_H
