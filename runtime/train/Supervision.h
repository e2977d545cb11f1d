//===- Supervision.h - jobs that are restarted ------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_SUPERVISION_H
#define FSDP_RUNTIME_TRAIN_SUPERVISION_H

#include "runtime/train/CommandLine.h"

#include <functional>
#include <string>

namespace fsdp::rt {

/// Errors: --max-restarts where somebody else has started the ranks; --elastic where no plan
/// has fewer ranks than `plan`.
void requireSupervision(Plans plans, const Program &plan, const Options &options);

/// Runs one job of `plan`; `cause` becomes that of a failure, which then was not printed. Returns
/// the status.
using RunJob = std::function<int(const Program &plan, std::string &cause)>;

/// Runs `first`, and after a failure again as often as --max-restarts says, with --elastic for
/// fewer ranks where there is a plan for them. `options` are those of the next run: as they were
/// given, but for the number of restarts and the last one's cause; what it continues from is
/// RunStart's. Returns the last status. A signal that asks for the end of the run (StopSignals.h)
/// ends it: no failure after it is followed by a restart.
int runSupervised(Plans plans, const Program &first, Options &options, const RunJob &runJob);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_SUPERVISION_H
