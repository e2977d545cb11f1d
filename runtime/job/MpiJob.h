//===- MpiJob.h - a rank that communicates over MPI -----------------------===//
#ifndef FSDP_RUNTIME_JOB_MPIJOB_H
#define FSDP_RUNTIME_JOB_MPIJOB_H

#include "runtime/job/Job.h"
#include "runtime/job/Launcher.h"

namespace fsdp::rt {

/// Runs `body` as this process's rank in MPI, and returns the exit status. Processes share no
/// memory. Errors: the runtime was built without MPI; the size of MPI's world is not that of the
/// mesh; the arenas do not fit into the machine's memory; a rank was started differently than rank
/// 0.
int runMpiRank(const Mesh &mesh, const JobOptions &options, const LaunchEnvironment &launched,
               const std::function<int(Job &)> &body);

/// Whether the runtime was built with MPI.
bool builtWithMpi();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_MPIJOB_H
