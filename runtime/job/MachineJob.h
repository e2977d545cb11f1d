//===- MachineJob.h - one machine's ranks of a job of several ----------------===//
#ifndef FSDP_RUNTIME_JOB_MACHINEJOB_H
#define FSDP_RUNTIME_JOB_MACHINEJOB_H

#include "runtime/job/Job.h"
#include "runtime/job/Machines.h"

namespace fsdp::rt {

/// Forks this machine's share of the mesh's ranks, in world order, which meet those of the others
/// over TCP; returns when the ranks of all machines have ended, with the status that all return.
/// With `options.onFailure` a failure goes there, on every machine, unless a machine is lost: then,
/// and without, it is printed.
int runMachineRanks(const Mesh &mesh, const JobOptions &options, Machines &machines,
                    const std::function<int(Job &)> &body);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_MACHINEJOB_H
