//===- MpiJob.h - a rank whose peers may be on other machines ---------------===//
#ifndef FSDP_RUNTIME_JOB_MPIJOB_H
#define FSDP_RUNTIME_JOB_MPIJOB_H

#include "runtime/job/Job.h"
#include "runtime/job/Launcher.h"

namespace fsdp::rt {

/// Runs `body` as the rank that MPI says this process is, and returns the exit status. Nothing is
/// shared between processes. Errors: the runtime was built without MPI; MPI's world is not the
/// mesh; the ranks of this machine do not fit into its memory; ranks that were started otherwise
/// than rank 0.
int runMpiRank(const Mesh &mesh, const JobOptions &options, const LaunchEnvironment &launched,
               const std::function<int(Job &)> &body);

/// Whether the runtime was built with MPI.
bool builtWithMpi();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_MPIJOB_H
