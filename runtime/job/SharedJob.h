//===- SharedJob.h - a rank of a job on one machine -----------------------===//
#ifndef FSDP_RUNTIME_JOB_SHAREDJOB_H
#define FSDP_RUNTIME_JOB_SHAREDJOB_H

#include "runtime/comm/SharedSegment.h"
#include "runtime/job/Job.h"

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

/// Who supervises a rank.
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

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_SHAREDJOB_H
