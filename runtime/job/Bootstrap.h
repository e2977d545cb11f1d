//===- Bootstrap.h - from one process to the ranks of a mesh ----------------===//
//
// `runRanks` is called once, first thing after the command line is read: before any thread, oneDNN
// or OpenMP call, as it may fork. Started alone it forks one process per rank, each with every
// rank's arena mapped, and waits for them. Under a launcher (Launcher.h) the process is one rank
// already.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_JOB_BOOTSTRAP_H
#define FSDP_RUNTIME_JOB_BOOTSTRAP_H

#include "runtime/job/Job.h"

#include <functional>

namespace fsdp::rt {

/// Runs `body` on every rank of the mesh and returns the exit status for this process: body's own,
/// or the first failing rank's. An exception on a rank, a rank that dies, exits early or hangs ends
/// every rank within seconds, and its cause is printed once to standard error.
int runRanks(const Mesh &mesh, const JobOptions &options, const std::function<int(Job &)> &body);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_BOOTSTRAP_H
