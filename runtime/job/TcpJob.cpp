#include "runtime/job/TcpJob.h"
#include "base/PrintableText.h"
#include "runtime/comm/SharedMemoryCommunicator.h"
#include "runtime/comm/TcpCommunicator.h"
#include "runtime/job/ControlChannel.h"
#include "runtime/job/ErrorReport.h"
#include "runtime/job/JobToken.h"
#include "runtime/job/MachineMemory.h"
#include "runtime/job/NodeLocalGroup.h"
#include "runtime/job/SharedJob.h"
#include "runtime/job/StopSignals.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <sys/resource.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

/// The ranks of this rank's machine.
struct Neighbourhood {
  std::vector<int> ranks;
  int index = 0;

  Neighbourhood(const std::vector<PeerInfo> &peers, int rank) {
    const auto at = [&](int other) { return peers[static_cast<std::size_t>(other)].machine; };
    for (int other = 0; other < static_cast<int>(peers.size()); ++other) {
      if (at(other) != at(rank))
        continue;
      if (other == rank)
        index = static_cast<int>(ranks.size());
      ranks.push_back(other);
    }
  }
  bool alone() const { return ranks.size() == 1; }
  bool has(int rank) const { return std::find(ranks.begin(), ranks.end(), rank) != ranks.end(); }
  int next() const { return ranks[(static_cast<std::size_t>(index) + 1) % ranks.size()]; }
};

/// The records and arenas of a segment that several ranks share are by world rank: those of ranks
/// elsewhere are never touched and cost nothing. A rank that is alone has one record, and one
/// arena.
class TcpJob final : public Job {
public:
  TcpJob(const Mesh &mesh, const JobOptions &options, int rank, SharedSegment &segment,
         const Neighbourhood &here, ControlChannel &control)
      : Job(mesh, options, rank), segment_(segment), here_(here), control_(control) {
    peer_.arena = segment.arena(here.alone() ? 0 : rank);
    peer_.failure = &segment.failure();
    peer_.flight = segment.flight(here.alone() ? 0 : rank);
  }

  std::unique_ptr<Communicator> communicator(int index, int channel) override {
    const CommunicatorSpec spec = specOf(mesh_, options_, index);
    const std::vector<int> group = mesh_.group(peer_.rank, spec.axes);
    const int number = index * kChannels + channel;
    if (!here_.alone() &&
        std::all_of(group.begin(), group.end(), [&](int rank) { return here_.has(rank); }))
      return std::make_unique<SharedMemoryCommunicator>(spec.name, peer_, segment_, number, group,
                                                        options_.timeoutSeconds);
    // One that is made again gets connections of its own.
    const std::uint64_t id =
        std::uint64_t(made_[number]++) << 32 | static_cast<std::uint32_t>(number);
    return std::make_unique<TcpCommunicator>(
        spec.name, peer_,
        [this](int peer, std::uint64_t connection, const std::function<void()> &check,
               double seconds) { return control_.join(peer, connection, check, seconds); },
        id, group, options_.timeoutSeconds);
  }

private:
  SharedSegment &segment_;
  const Neighbourhood &here_;
  ControlChannel &control_;
  std::map<int, std::uint32_t> made_;
};

// Which of the jobs on these machines a rank belongs to, for a person to read.
std::string jobOf(const Mesh &mesh, const JobOptions &options) {
  std::string text = format("'%s' of mesh '%s'", options.program, mesh.describe().c_str());
  for (const char *name : {"TORCHELASTIC_RUN_ID", "FSDP_JOB_ID"})
    if (const char *value = std::getenv(name))
      text += format(" with %s '%s'", name, value);
  return printable(text, 200);
}

/// Every communicator takes a descriptor for each rank of its group.
void allowManyConnections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

int end(const RendezvousError &error, int rank, int localRank) {
  const bool tells = error.teller() == RendezvousError::ThisRank ||
                     (error.teller() == RendezvousError::FirstRank && rank == 0) ||
                     (error.teller() == RendezvousError::FirstOfMachine && localRank <= 0);
  if (tells)
    report(error);
  else if (error.teller() == RendezvousError::FirstRank) // which has been there, and says it
    usleep(2'000'000);
  else
    reportByFirst(error, std::max(rank, 1));
  error.tellOthers();
  return error.status();
}

SharedSegment segmentOf(const Mesh &mesh, const JobOptions &options, int rank,
                        const Neighbourhood &here, std::uint64_t nonce) {
  requireMemory(MachineMemory::read(), static_cast<int>(here.ranks.size()), options.arenaBytes);
  if (here.alone()) {
    const SharedSegment::Layout layout{1, 1, options.arenaBytes};
    return SharedSegment(Mapping::anonymous(SharedSegment::bytesFor(layout)), layout);
  }
  return joinSegment(
      layoutOf(mesh, options),
      {rank, here.ranks.front(), static_cast<int>(here.ranks.size()),
       format("%016llx-%d", static_cast<unsigned long long>(nonce), here.ranks.front()),
       options.identity},
      options.timeoutSeconds);
}

} // namespace

int runTcpRank(const Mesh &mesh, const JobOptions &asked, const LaunchEnvironment &launched,
               const std::function<int(Job &)> &body) {
  const int rank = launched.rank;
  allowManyConnections();
  JoinRequest self;
  self.rank = rank;
  self.size = launched.size;
  self.machine = machineIdentity();
  if (asked.transport == Transport::Tcp)
    self.machine += format("-%d", rank);
  self.host = hostName();
  self.job = jobOf(mesh, asked);
  self.identity = asked.identity;
  Rendezvous met;
  try {
    const std::string token = jobToken([](const char *name) { return std::getenv(name); });
    requireToken(launched, token, asked.trustNetwork);
    met = rendezvous({launched.address, launched.port, launched.portFrom, token,
                      token.empty() && !asked.trustNetwork},
                     self, asked.timeoutSeconds);
  } catch (const RendezvousError &error) {
    return end(error, rank, launched.localRank);
  } catch (const Error &error) {
    return end(RendezvousError(error.what(), RendezvousError::FirstOfMachine), rank,
               launched.localRank);
  }
  const Neighbourhood here(met.peers, rank);
  JobOptions options = asked;
  options.localRank = launched.localRank >= 0 ? launched.localRank : here.index;
  std::optional<SharedSegment> segment;
  try {
    segment.emplace(segmentOf(mesh, options, rank, here, met.nonce));
  } catch (const Error &error) {
    Failure failure;
    failure.raise(error.at(rank, ""));
    ControlChannel control(std::move(met), asked.timeoutSeconds);
    control.start(failure);
    control.report();
    return error.status();
  }
  ControlChannel control(std::move(met), asked.timeoutSeconds);
  TcpJob job(mesh, options, rank, *segment, here, control);
  try {
    control.start(job.failure());
  } catch (const Error &error) {
    return report(error.at(rank, ""));
  }
  const int record = here.alone() ? 0 : rank;
  const Supervision supervision{[&](Failure &) { control.report(); },
                                here.alone() ? -1 : here.next()};
  return runRank(job, *segment, record, supervision, [&](Job &started) {
    const int status = body(started);
    if (status == kExitDone || isStatusOfSignal(status)) {
      segment->rank(record).state = RankRecord::Done;
      control.finish();
    }
    return status;
  });
}

} // namespace fsdp::rt
