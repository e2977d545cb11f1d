//===- Bootstrap.h - starts the ranks of a mesh ---------------------------===//
//
// `runRanks` is called once, directly after the command line is read and before any thread is
// started and any oneDNN or OpenMP call, as it may fork. Started alone it forks one process per
// rank, each with every rank's arena mapped, and waits for them. Under a launcher (Launcher.h) the
// process is one rank.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_JOB_BOOTSTRAP_H
#define FSDP_RUNTIME_JOB_BOOTSTRAP_H

#include "runtime/job/Job.h"

#include <functional>

namespace fsdp::rt {

/// Runs `body` on every rank of the mesh and returns the exit status for this process: body's own,
/// or the first failing rank's. If a rank throws, dies, exits early or hangs, all ranks end within
/// seconds, and the cause is printed once to standard error.
int runRanks(const Mesh &mesh, const JobOptions &options, const std::function<int(Job &)> &body);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_BOOTSTRAP_H
