// Ranks of a program as threads of one process with NCCL between them, which the emulator has
// there only (test/e2e/emulated.py). The linker puts it in the place of runRanks(), by --wrap.
#include "base/Thread.h"
#include "runtime/job/Bootstrap.h"
#include "runtime/job/ErrorReport.h"
#include "runtime/job/SharedJob.h"

#include <functional>
#include <thread>
#include <vector>

using namespace fsdp::rt;

int runOnThreads(const Mesh &mesh, const JobOptions &options,
                 const std::function<int(Job &)>
                     &body) asm("__wrap__ZN4fsdp2rt8runRanksERKNS0_4MeshERKNS0_10JobOptionsERKSt8"
                                "functionIFiRNS0_3JobEEE");

int runOnThreads(const Mesh &mesh, const JobOptions &options,
                 const std::function<int(Job &)> &body) {
  const SharedSegment::Layout layout = layoutOf(mesh, options);
  SharedSegment segment(Mapping::anonymous(SharedSegment::bytesFor(layout)), layout);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < mesh.size(); ++rank)
    ranks.push_back(base::startThread(base::format("rank %d", rank), [&, rank] {
      JobOptions own = options;
      own.localRank = rank;
      own.localRanks = mesh.size();
      own.timeoutSeconds = 60;
      SharedJob job(mesh, own, rank, segment);
      runRank(job, segment, rank, {}, body);
    }));
  for (std::thread &rank : ranks)
    rank.join();
  return segment.failure().raised() ? segment.failure().error().status() : 0;
}
