//===- SharedJob.h - a rank whose peers are all on this machine -------------===//
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

/// What the segment of such a job holds.
SharedSegment::Layout layoutOf(const Mesh &mesh, const JobOptions &options);

/// Name of communicator `index` of the options and its axes; the last one is over the whole mesh.
CommunicatorSpec specOf(const Mesh &mesh, const JobOptions &options, int index);

/// Who looks after the ranks, and so prints the cause of a failure.
enum class SupervisionMode { Parent, Neighbours, Itself };

/// The same in particular.
struct Supervision {
  /// Index of the record of the rank that this one looks after, or -1.
  int neighbour = -1;
  /// Returns when the failure has been printed; nothing where somebody else takes care of that.
  std::function<void(base::Failure &)> report;
};

/// Prints a job's failure unless that was done.
void reportOnce(base::Failure &failure);

/// Runs `body` as one rank and returns this process's exit status. The first error goes to
/// `failure`; unless a parent takes care, the cause is printed by one rank.
int runRank(Job &job, SharedSegment &segment, int recordIndex, SupervisionMode care,
            const std::function<int(Job &)> &body);
int runRank(Job &job, SharedSegment &segment, int recordIndex, const Supervision &supervision,
            const std::function<int(Job &)> &body);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_SHAREDJOB_H
