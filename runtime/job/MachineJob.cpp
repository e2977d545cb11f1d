#include "runtime/job/MachineJob.h"
#include "base/WaitCounter.h"
#include "runtime/comm/SharedSegment.h"
#include "runtime/job/ErrorReport.h"
#include "runtime/job/ForkedRanks.h"
#include "runtime/job/StopSignals.h"
#include "runtime/job/TcpJob.h"
#include "runtime/job/Watchdog.h"

#include <new>
#include <optional>
#include <sys/wait.h>

namespace fsdp::rt {

using namespace base;

namespace {

/// How a rank finds the others.
LaunchEnvironment rankOf(const Machines &machines, const Machines::Attempt &attempt, int rank,
                         int size) {
  LaunchEnvironment launched;
  const int share = size / machines.count();
  launched.by = "its machine's process";
  launched.rank = rank;
  launched.size = size;
  launched.localRank = rank - machines.index() * share;
  launched.localSize = share;
  launched.address = machines.place().address;
  launched.port = attempt.port;
  launched.portFrom = format("the ranks of attempt %d", attempt.number);
  launched.attempt = format(", attempt %d", attempt.number);
  return launched;
}

} // namespace

int runMachineRanks(const Mesh &mesh, const JobOptions &asked, Machines &machines,
                    const std::function<int(Job &)> &body) {
  if (mesh.size() % machines.count() != 0)
    throw Error(format("the mesh '%s' has %d ranks, which %d machines (NNODES) cannot share "
                       "evenly: start on a number of machines that "
                       "divides %d, or compile the program for another mesh",
                       mesh.describe().c_str(), mesh.size(), machines.count(), mesh.size()));
  if (asked.transport == Transport::SharedMemory || asked.transport == Transport::Mpi ||
      asked.transport == Transport::Loopback)
    throw Error("the ranks of several machines (NNODES) that the program starts itself connect "
                "over TCP: use --communicator=auto or tcp",
                kExitBadCommandLine);
  try {
    machines.meet(format("the machines of '%s'", asked.program), asked.identity,
                  asked.timeoutSeconds, asked.trustNetwork);
  } catch (const RendezvousError &error) {
    report(error);
    error.tellOthers();
    return error.status();
  }
  Machines::Attempt attempt = machines.begin();

  // What the ranks would print, for this process to say.
  const Mapping shared = Mapping::anonymous(sizeof(Failure));
  Failure &failure = *new (shared.data()) Failure;
  const int share = mesh.size() / machines.count(), first = machines.index() * share;
  ForkedRanks ranks(first, share, asked.handlesStop);
  try {
    ranks.start([&](int rank) {
      machines.leave();
      Socket listener;
      if (rank == 0)
        listener = std::move(attempt.listener);
      attempt.listener = Socket();
      JobOptions options = asked;
      options.machines = nullptr;
      options.onFailure = [&](const Error &error) { failure.raise(error); };
      return runTcpRank(mesh, options, rankOf(machines, attempt, rank, mesh.size()), body,
                        std::move(listener));
    });
  } catch (const Error &error) {
    failure.raise(error);
  }
  attempt.listener = Socket();

  int status = kExitDone;
  std::optional<Error> cause; // of the first end of a rank of this machine
  double failedAt = 0;
  const auto reap = [&] {
    return ranks.reap([&](int rank, int ended) {
      if (WIFEXITED(ended) && isStatusOfSignal(WEXITSTATUS(ended))) {
        status = WEXITSTATUS(ended);
        return;
      }
      const std::string text = describeEnd(ended, true);
      if (text.empty() || cause ||
          (WIFSIGNALED(ended) && failedAt != 0)) // killed from here, because others have failed
        return;
      if (WIFSIGNALED(ended)) {
        cause = Error(text).at(rank, "");
        failure.raise(*cause);
      } else { // it has had the time to say why: this is for when it has not
        cause = Error(format("rank %d: %s", rank, text.c_str()), WEXITSTATUS(ended));
      }
    });
  };
  while (reap()) {
    machines.poll();
    if (failure.raised())
      machines.fail(failure.error());
    if ((machines.failure() || ranks.isEnded()) && failedAt == 0)
      failedAt = now();
    if (failedAt != 0 && ranks.end(now() - failedAt - kGraceSeconds - 1))
      break;
    ranks.await(0.05);
  }
  const bool isLeft = ranks.anyRuns();
  if (failure.raised())
    machines.fail(failure.error());
  if (const int ended = ranks.statusOfEnd())
    return ended;
  if (const int signal = asked.onFailure ? stopRequest().signal : 0;
      signal && machines.failure()) // ranks may not have come to it
    status = statusOfSignal(signal);
  machines.end(status, cause, asked.progress ? asked.progress->load() : 0,
               isLeft && asked.onFailure);
  while (!machines.result()) {
    machines.poll();
    ranks.await(0.05);
    if (ranks.isEnded())
      if (const int ended = ranks.statusOfEnd())
        return ended;
  }
  const Machines::Result &result = *machines.result();
  if (asked.progress)
    *asked.progress = result.progress;
  if (result.error)
    asked.onFailure && !result.isLast ? asked.onFailure(*result.error)
                                      : (void)report(*result.error);
  ranks.leave();
  if (!result.error)
    return result.status;
  return result.error->status();
}

} // namespace fsdp::rt
