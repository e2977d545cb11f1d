//===- TcpJob.h - a rank that communicates over TCP -----------------------===//
#ifndef FSDP_RUNTIME_JOB_TCPJOB_H
#define FSDP_RUNTIME_JOB_TCPJOB_H

#include "runtime/comm/Socket.h"
#include "runtime/job/Job.h"
#include "runtime/job/Launcher.h"

namespace fsdp::rt {

/// Runs `body` as a rank of a launcher's job whose rank 0 is at `launched.address`, and returns the
/// exit status. Ranks of one machine share memory, unless the options select TCP.
int runTcpRank(const Mesh &mesh, const JobOptions &options, const LaunchEnvironment &launched,
               const std::function<int(Job &)> &body);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_TCPJOB_H
