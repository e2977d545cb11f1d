#include "base/Error.h"
#include "runtime/job/SharedJob.h"

#ifndef FSDP_WITH_MPI

namespace fsdp::rt {

using namespace base;

bool builtWithMpi() { return false; }

int runMpiRank(const Mesh &, const JobOptions &, const LaunchEnvironment &,
               const std::function<int(Job &)> &) {
  throw Error(
      "--communicator=mpi: this program was built without MPI; install it (libopenmpi-dev) and "
      "build again, or set MASTER_ADDR to the address of rank 0's machine to connect over TCP");
}

} // namespace fsdp::rt

#else

#include "runtime/comm/MessageCommunicator.h"
#include "runtime/job/ErrorReport.h"
#include "runtime/job/Machine.h"
#include "runtime/job/StopSignals.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <numeric>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

class MpiJob final : public Job {
public:
  MpiJob(const Mesh &mesh, const JobOptions &options, int rank, SharedSegment &segment)
      : Job(mesh, options, rank) {
    peer_.arena = segment.arena(0);
    peer_.failure = &segment.failure();
    peer_.flight = segment.flight(0);
  }

  // Splitting the world is a collective over it: all ranks create the same communicators in order.
  std::unique_ptr<Communicator> communicator(int index, int) override {
    CommunicatorSpec spec = specOf(mesh_, options_, index);
    const int sender = spec.sends ? index : peerIndexOf(options_, index);
    return mpiCommunicator(spec.name, peer_, mesh_.ranksOf(spec, peer_.rank),
                           options_.timeoutSeconds, spec.isTransfer() ? 1 + sender : 0);
  }
};

/// Why this rank must end; empty if nothing is wrong.
std::string faultOf(const JobOptions &options, const LaunchEnvironment &launched, int rank) {
  // Every rank takes part in the broadcasts, also if it finds a fault.
  std::string text = options.identity.text();
  std::uint64_t bytes = text.size();
  MPI_Bcast(&bytes, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  text.resize(std::min<std::size_t>(bytes, RunIdentity::kMaxBytes));
  MPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
  try {
    requireMemory(MachineMemory::read(), launched.localSize, options.arenaBytes);
  } catch (const Error &error) {
    return error.what();
  }
  return options.identity.differenceFrom(RunIdentity::parse(text), rank);
}

} // namespace

bool builtWithMpi() { return true; }

int runMpiRank(const Mesh &mesh, const JobOptions &asked, const LaunchEnvironment &launched,
               const std::function<int(Job &)> &body) {
  JobOptions options = asked;
  // Every rank has stream threads beside the one that waits in MPI, and a wait without yielding
  // would occupy their core. (Open MPI turns this on by itself only for more ranks than cores.)
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", /*overwrite=*/0);
  int provided = 0, rank = 0, size = 1;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (MPI_Comm machine;
      options.localRanks == 0 && MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank,
                                                     MPI_INFO_NULL, &machine) == MPI_SUCCESS) {
    MPI_Comm_size(machine, &options.localRanks);
    MPI_Comm_free(&machine);
  }
  auto refuse = [rank](const std::string &message) {
    int status = reportByFirst(Error(message), rank);
    MPI_Finalize();
    return status;
  };
  if (size != mesh.size())
    return refuse(format("the mesh '%s' has %d ranks, but MPI started %d: start %d, or compile the "
                         "program for a mesh of %d",
                         mesh.describe().c_str(), mesh.size(), size, mesh.size(), size));
  if (provided < MPI_THREAD_SERIALIZED)
    return refuse(
        format("MPI gives thread level %d, expected at least %d (MPI_THREAD_SERIALIZED), as "
               "collectives run on streams: use an MPI library with support for threads",
               provided, MPI_THREAD_SERIALIZED));

  const std::string fault = faultOf(options, launched, rank);
  int own = fault.empty() ? size : rank, first = size;
  MPI_Allreduce(&own, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first < size) {
    const int status = reportByFirst(Error(fault), rank, first);
    MPI_Finalize();
    return status;
  }

  // A segment of this rank alone: its arena, its first error, its watchdog.
  SharedSegment segment({1, 1, options.arenaBytes});
  MpiJob job(mesh, options, rank, segment);
  std::vector<int> world(size);
  std::iota(world.begin(), world.end(), 0);
  // A rank that is done waits here for the others, and not in MPI_Finalize: the process of Open MPI
  // 4 sometimes hangs when a rank fails while another one finalizes. The timeout is longer, as
  // ranks that still work can report a more precise cause.
  auto end = mpiCommunicator("end of the job", job.peer(), world, 10 * options.timeoutSeconds);
  int status = runRank(job, segment, 0, {}, [&](Job &started) {
    try {
      int result = body(started);
      if ((result == 0 || isStatusOfSignal(result)) && !started.failure().raised()) {
        end->barrier();
        return result;
      }
      throw Error(format("ended with status %d", result), result ? result : kExitFailure);
    } catch (const Error &error) {
      // Of ranks that find a fault at the same time, the first one reports it and ends the job
      // while the others wait.
      const bool byAll =
          started.failure().raised() ? started.failure().error().isByAll() : error.isByAll();
      if (byAll && rank > 0)
        usleep(3'000'000 + static_cast<useconds_t>(std::min(rank, 20)) * 100'000);
      throw;
    }
  });
  if (status != 0 && !isStatusOfSignal(status)) {
    // mpirun ends the job when a rank exits before MPI_Finalize; after MPI_Abort the process of
    // Open MPI 4 sometimes hangs. Slurm needs MPI_Abort.
    if (std::getenv("SLURM_STEP_ID") && !std::getenv("OMPI_COMM_WORLD_RANK"))
      MPI_Abort(MPI_COMM_WORLD, status);
    std::fflush(nullptr);
    _exit(status);
  }
  end.reset();
  MPI_Finalize();
  return status;
}

} // namespace fsdp::rt

#endif // FSDP_WITH_MPI
