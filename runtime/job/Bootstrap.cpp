#include "runtime/job/Bootstrap.h"
#include "base/Thread.h"
#include "base/WaitedTime.h"
#include "runtime/comm/RankActions.h"
#include "runtime/job/ErrorReport.h"
#include "runtime/job/FlightRecord.h"
#include "runtime/job/ForkedRanks.h"
#include "runtime/job/Launcher.h"
#include "runtime/job/Machine.h"
#include "runtime/job/NodeLocalGroup.h"
#include "runtime/job/SharedJob.h"
#include "runtime/job/StopSignals.h"
#include "runtime/job/Watchdog.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <vector>

namespace fsdp::rt {

using namespace base;

namespace {

/// `asked` if above 0, else the number of environment variable `name`, else `otherwise`.
double resolve(double asked, const char *name, double otherwise, const char *expected,
               double least = 0) {
  if (asked > 0)
    return asked;
  const char *text = std::getenv(name);
  if (!text)
    return otherwise;
  char *end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end || !(value > 0 && value >= least && value < 1e15))
    throw Error(format("environment variable '%s' got '%s', expected %s", name, text, expected));
  return value;
}

//===----------------------------------------------------------------------===//
// The parent of ranks that it forked
//===----------------------------------------------------------------------===//

class Parent {
public:
  Parent(SharedSegment &segment, const JobOptions &options)
      : segment_(segment), failure_(segment.failure()), onFailure_(options.onFailure),
        flightRecord_(options.flightRecord),
        heartbeatTimeout_(heartbeatTimeout(options.timeoutSeconds)),
        ranks_(segment.layout().ranks, options.handlesStop),
        lastHeartbeat_(static_cast<std::size_t>(segment.layout().ranks), 0),
        sinceHeartbeat_(lastHeartbeat_.size()) {}

  /// Starts the ranks; `rankMain` runs in each and returns its exit status.
  void start(const std::function<int(int)> &rankMain) {
    try {
      ranks_.start(rankMain);
    } catch (const Error &error) {
      failure_.raise(error);
    }
  }

  /// Returns when all ranks have ended. If one fails or hangs, the others are ended, also by a
  /// signal that ends this process: it is passed to the ranks first, so that they can clean up.
  int wait() {
    double failedAt = 0;
    while (reap()) {
      const double time = now();
      checkHeartbeats();
      if ((failure_.raised() || ranks_.isEndRequested()) && failedAt == 0)
        failedAt = time;
      if (failedAt != 0 && ranks_.end(time - failedAt - kGraceSeconds - 1))
        break;
      ranks_.await(0.1);
    }
    if (const int status = ranks_.statusOfEnd())
      return status;
    if (!failure_.raised())
      return stopped_;
    const Error error = failure_.error();
    const bool isRankLeft = ranks_.anyRuns();
    onFailure_ && !isRankLeft
        ? onFailure_(error)
        : (void)report(isRankLeft && onFailure_ ? notRestarted(error, kNotRestartedAsRankRemains)
                                                : error);
    ranks_.abandon();
    writeFlightRecord(segment_, flightRecord_, 0, segment_.layout().ranks);
    return error.status();
  }

private:
  // Collects ranks that have ended; false when none is left.
  bool reap() {
    return ranks_.reap([&](int rank, int status) {
      const bool done = segment_.rank(rank).state == RankRecord::Done;
      if (WIFEXITED(status) && isStatusOfSignal(WEXITSTATUS(status)) &&
          (done || ranks_.isStopRequested())) {
        stopped_ = WEXITSTATUS(status);
        return;
      }
      if (const std::string cause = describeEnd(status, done); !cause.empty())
        failure_.raise(
            Error(cause, WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailure).at(rank, ""));
    });
  }

  // A process that is stopped has no heartbeat.
  void checkHeartbeats() {
    for (std::size_t i = 0; i < lastHeartbeat_.size(); ++i) {
      const int rank = static_cast<int>(i);
      RankRecord &record = segment_.rank(rank);
      if (!ranks_.runs(rank) || record.state != RankRecord::Running ||
          record.heartbeat != lastHeartbeat_[i]) {
        lastHeartbeat_[i] = record.heartbeat;
        sinceHeartbeat_[i].restart();
        continue;
      }
      const double sinceHeartbeat = sinceHeartbeat_[i].look();
      if (sinceHeartbeat <= heartbeatTimeout_)
        continue;
      failure_.raise(Error(format("not responding: no heartbeat for %.1f s%s", sinceHeartbeat,
                                  describeHang(segment_, rank).c_str()))
                         .at(rank, ""));
      ranks_.killRank(rank);
    }
  }

  SharedSegment &segment_;
  Failure &failure_;
  std::function<void(const Error &)> onFailure_;
  std::string flightRecord_;
  double heartbeatTimeout_;
  ForkedRanks ranks_;
  std::vector<double> lastHeartbeat_;
  std::vector<WaitedTime> sinceHeartbeat_;
  int stopped_ = kExitDone; ///< the status of ranks that a signal has ended
};

/// For one of `count` ranks of this machine.
JobOptions onThisMachine(const JobOptions &options, int localRank, int count) {
  JobOptions own = options;
  own.localRank = localRank;
  own.localRanks = count;
  return own;
}

int runThreads(const Mesh &mesh, const JobOptions &options, SharedSegment &segment,
               const std::function<int(Job &)> &body) {
  std::vector<std::thread> ranks;
  std::atomic<int> status{kExitDone};
  try {
    for (int rank = 0; rank < mesh.size(); ++rank)
      ranks.push_back(startThread(format("rank %d", rank), [&, rank] {
        SharedJob job(mesh, onThisMachine(options, rank, mesh.size()), rank, segment);
        const int own = runRank(job, segment, rank, {}, body);
        if (own != kExitDone)
          status = own;
      }));
  } catch (const Error &error) { // ends the ranks that have started
    segment.failure().raise(error);
    reportOnce(segment.failure());
  }
  for (std::thread &rank : ranks)
    rank.join();
  return segment.failure().raised() ? segment.failure().error().status() : status.load();
}

int runAlone(const Mesh &mesh, const JobOptions &options, const std::function<int(Job &)> &body) {
  requireMemory(MachineMemory::read(), mesh.size(), options.arenaBytes);
  SharedSegment segment(layoutOf(mesh, options));
  if (options.transport == Transport::Loopback)
    return runThreads(mesh, options, segment, body);
  if (mesh.size() == 1 && !options.onFailure) {
    SharedJob job(mesh, onThisMachine(options, 0, 1), 0, segment);
    return runRank(job, segment, 0, {}, body);
  }
  Parent parent(segment, options);
  parent.start([&](int rank) {
    SharedJob job(mesh, onThisMachine(options, rank, mesh.size()), rank, segment);
    return runRank(job, segment, rank, Supervision::byParent(), body);
  });
  return parent.wait();
}

/// The identity that every program has, followed by that of the options.
RunIdentity identityOf(const Mesh &mesh, const JobOptions &options) {
  std::string communicators;
  for (const CommunicatorSpec &spec : options.communicators) {
    communicators += format("%s%s", communicators.empty() ? "" : " ", spec.name);
    for (int axis : spec.axes)
      communicators += "." + mesh.axisName(axis);
    if (spec.isTransfer())
      communicators +=
          format("%s%+d%s", spec.sends ? ">" : "<", spec.offset, spec.inRing ? "ring" : "");
  }
  RunIdentity identity;
  identity.add("program", format("'%s'", options.program));
  identity.add("mesh", mesh.describe());
  identity.add("an arena of", format("%zu bytes", options.arenaBytes));
  identity.add("communicators", communicators);
  for (const RunIdentity::Field &field : options.identity.fields())
    identity.add(field.name, field.value);
  return identity;
}

/// The transport of a launcher's job. Errors: an option that does not fit the launcher.
Transport chooseTransport(const JobOptions &options, const LaunchEnvironment &launched) {
  const bool one = launched.oneMachine();
  switch (options.transport) {
  case Transport::SharedMemory:
    if (!one)
      throw Error("--communicator=shm connects ranks on one machine, but these are on several: "
                  "use auto, tcp or mpi");
    return Transport::SharedMemory;
  case Transport::Loopback:
    throw Error(format("--communicator=loopback runs all ranks in one process, but %s started %d: "
                       "start the program alone, or use nccl",
                       launched.by.c_str(), launched.size),
                kExitBadCommandLine);
  case Transport::Mpi:
    return Transport::Mpi;
  case Transport::Tcp:
    break;
  default:
    if (one)
      return Transport::SharedMemory;
    // Processes of mpirun have MPI.
    if ((launched.by == "Open MPI" || launched.by == "PMI") && builtWithMpi())
      return Transport::Mpi;
    if (!launched.address.empty())
      return Transport::Tcp;
    const auto has = [](const char *name) { return std::getenv(name) != nullptr; };
    if (has("OMPI_COMM_WORLD_RANK") || has("PMI_RANK") || has("SLURM_STEP_ID"))
      return Transport::Mpi;
  }
  if (launched.address.empty())
    throw Error(
        "ranks on several machines connect to the address in MASTER_ADDR, which is not set: "
        "set it to that of rank 0's machine, on every rank");
  return Transport::Tcp;
}

int runLaunched(const Mesh &mesh, const JobOptions &asked, const LaunchEnvironment &launched,
                const std::function<int(Job &)> &body) {
  JobOptions options = onThisMachine(asked, std::max(launched.localRank, 0), launched.localSize);
  options.identity = identityOf(mesh, asked);
  Transport way;
  try {
    if (launched.size != mesh.size())
      throw Error(
          format("the mesh '%s' has %d ranks, but %s started %d: start %d, or compile the program "
                 "for a mesh of %d",
                 mesh.describe().c_str(), mesh.size(), launched.by.c_str(), launched.size,
                 mesh.size(), launched.size));
    way = chooseTransport(options, launched);
    if (way == Transport::SharedMemory)
      requireMemory(MachineMemory::read(), launched.size, options.arenaBytes);
  } catch (const Error &error) {
    return reportByFirst(error, launched.rank);
  }
  if (way == Transport::Mpi)
    return runMpiRank(mesh, options, launched, body);
  if (way == Transport::Tcp)
    return runTcpRank(mesh, options, launched, body);
  SharedSegment segment = joinSegment(
      layoutOf(mesh, options), {launched.rank, 0, launched.size, launched.key, options.identity},
      options.timeoutSeconds);
  SharedJob job(mesh, options, launched.rank, segment);
  return runRank(job, segment, launched.rank, {reportOnce, (launched.rank + 1) % launched.size},
                 body);
}

} // namespace

int runRanks(const Mesh &mesh, const JobOptions &asked, const std::function<int(Job &)> &body) {
  try {
    JobOptions options = asked;
    options.timeoutSeconds = resolve(asked.timeoutSeconds, "FSDP_TIMEOUT", 300, "seconds above 0");
    options.linkBandwidth = resolve(asked.linkBandwidth, "FSDP_LINK_BANDWIDTH", 0,
                                    "bytes a second, at least 1000000", 1e6);
    if (std::optional<LaunchEnvironment> launched = detectLauncher())
      return runLaunched(mesh, options, *launched, body);
    if (options.transport == Transport::Mpi)
      throw Error(
          format("--communicator=mpi needs a launcher: start with 'mpirun -n %d', or leave the "
                 "option out to fork the ranks on this machine",
                 mesh.size()),
          kExitBadCommandLine);
    if (options.transport == Transport::Tcp)
      throw Error(
          format("--communicator=tcp needs a launcher, such as 'torchrun --nproc-per-node=%d "
                 "--no-python', or its variables; leave the option out to fork the ranks on this "
                 "machine",
                 mesh.size()),
          kExitBadCommandLine);
    return runAlone(mesh, options, body);
  } catch (const Aborted &error) {
    // Another rank reports the cause. A launcher ends all ranks when the first one fails, so this
    // one waits.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return error.status();
  } catch (const Error &error) {
    return report(error);
  }
}

} // namespace fsdp::rt
