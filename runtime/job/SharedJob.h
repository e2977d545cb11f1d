//===- SharedJob.h - a rank of a job on one machine -----------------------===//
#ifndef FSDP_RUNTIME_JOB_SHAREDJOB_H
#define FSDP_RUNTIME_JOB_SHAREDJOB_H

#include "runtime/comm/SharedSegment.h"
#include "runtime/job/Job.h"
#include "runtime/job/Launcher.h"

namespace fsdp::rt {

/// One rank of a job over a shared segment.
class SharedJob final : public Job {
public:
  SharedJob(const Mesh &mesh, const JobOptions &options, int rank, SharedSegment &segment);
  std::unique_ptr<Communicator> communicator(int index, int channel) override;

private:
  SharedSegment &segment_;
};

/// The layout of such a job's segment.
SharedSegment::Layout layoutOf(const Mesh &mesh, const JobOptions &options);

/// Communicator `index` of the options; the last one is over the whole mesh.
CommunicatorSpec specOf(const Mesh &mesh, const JobOptions &options, int index);

/// The index of the communicator that the other ranks of communicator `index` use.
int peerIndexOf(const JobOptions &options, int index);

/// Prints a job's failure unless another rank has.
void reportOnce(base::Failure &failure);

/// The supervision of a rank.
struct Supervision {
  /// Prints the job's failure, and returns when it is printed. Empty: the parent prints it.
  std::function<void(base::Failure &)> report = reportOnce;
  /// Index of the record of the rank whose heartbeat this rank checks; -1: none.
  int neighbour = -1;

  static Supervision byParent() { return {nullptr, -1}; }
};

/// Runs `body` as one rank and returns this process's exit status. The job's failure is the first
/// error of any rank.
int runRank(Job &job, SharedSegment &segment, int recordIndex, const Supervision &supervision,
            const std::function<int(Job &)> &body);

/// Runs `body` as a rank of a launcher's job whose rank 0 is at `launched.address`, and returns the
/// exit status. Ranks of one machine share memory, unless the options select TCP.
int runTcpRank(const Mesh &mesh, const JobOptions &options, const LaunchEnvironment &launched,
               const std::function<int(Job &)> &body);

/// Runs `body` as this process's rank in MPI, and returns the exit status. Processes share no
/// memory. Errors: the runtime was built without MPI; the size of MPI's world is not that of the
/// mesh; the arenas do not fit into the machine's memory; a rank was started differently than rank
/// 0.
int runMpiRank(const Mesh &mesh, const JobOptions &options, const LaunchEnvironment &launched,
               const std::function<int(Job &)> &body);

/// Whether the runtime was built with MPI.
bool builtWithMpi();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_SHAREDJOB_H
