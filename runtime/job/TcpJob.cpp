#include "base/PrintableText.h"
#include "runtime/comm/MessageCommunicator.h"
#include "runtime/job/ControlChannel.h"
#include "runtime/job/ErrorReport.h"
#include "runtime/job/JobToken.h"
#include "runtime/job/Machine.h"
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
struct LocalRanks {
  std::vector<int> ranks;
  int index = 0;

  LocalRanks(const std::vector<PeerInfo> &peers, int rank) {
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

/// Records and arenas of a segment that several ranks share are indexed by world rank; those of
/// ranks on other machines are never touched and take no memory. The segment of a single rank has
/// one record and one arena.
class TcpJob final : public Job {
public:
  TcpJob(const Mesh &mesh, const JobOptions &options, int rank, SharedSegment &segment,
         const LocalRanks &local, ControlChannel &control)
      : Job(mesh, options, rank), segment_(segment), local_(local), control_(control) {
    peer_.arena = segment.arena(local.alone() ? 0 : rank);
    peer_.failure = &segment.failure();
    peer_.flight = segment.flight(local.alone() ? 0 : rank);
  }

  std::unique_ptr<Communicator> communicator(int index, int channel) override {
    const CommunicatorSpec spec = specOf(mesh_, options_, index);
    const std::vector<int> group = mesh_.ranksOf(spec, peer_.rank);
    const int number = index * kChannels + channel;
    const int peerIndex = peerIndexOf(options_, index);
    if (!local_.alone() &&
        std::all_of(group.begin(), group.end(), [&](int rank) { return local_.has(rank); }))
      return sharedMemoryCommunicator(spec.name, peer_, segment_, number, group,
                                      peerIndex * kChannels + channel);
    // A communicator that is created again gets its own connections. Both ends of transfers take
    // the number of the sender, and another one if the receiver is the lower rank: two ranks may
    // both send to each other.
    const int common = peerIndex == index ? number
                                          : (spec.sends ? index : peerIndex) * kChannels +
                                                (group.front() > group.back());
    const std::uint64_t id =
        std::uint64_t(made_[number]++) << 32 | static_cast<std::uint32_t>(common);
    return tcpCommunicator(
        spec.name, peer_,
        [this](int peer, std::uint64_t connection, const std::function<void()> &check,
               double seconds) { return control_.join(peer, connection, check, seconds); },
        id, group);
  }

private:
  SharedSegment &segment_;
  const LocalRanks &local_;
  ControlChannel &control_;
  std::map<int, std::uint32_t> made_;
};

// Describes the job of a rank, for messages.
std::string jobOf(const Mesh &mesh, const JobOptions &options) {
  std::string text = format("'%s' of mesh '%s'", options.program, mesh.describe().c_str());
  for (const char *name : {"TORCHELASTIC_RUN_ID", "FSDP_JOB_ID"})
    if (const char *value = std::getenv(name))
      text += format(" with %s '%s'", name, value);
  return printable(text, 200);
}

/// Every communicator needs a descriptor for each rank of its group.
void allowManyConnections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

int end(const RendezvousError &error, int rank, int localRank) {
  const bool reports = error.reporter() == RendezvousError::ThisRank ||
                       (error.reporter() == RendezvousError::FirstRank && rank == 0) ||
                       (error.reporter() == RendezvousError::FirstOfMachine && localRank <= 0);
  if (reports)
    report(error);
  else if (error.reporter() == RendezvousError::FirstRank) // rank 0 reports it
    usleep(2'000'000);
  else
    reportByFirst(error, std::max(rank, 1));
  error.informOthers();
  return error.status();
}

SharedSegment segmentOf(const Mesh &mesh, const JobOptions &options, int rank,
                        const LocalRanks &local, std::uint64_t nonce) {
  requireMemory(MachineMemory::read(), static_cast<int>(local.ranks.size()), options.arenaBytes);
  if (local.alone())
    return SharedSegment({1, 1, options.arenaBytes});
  return joinSegment(
      layoutOf(mesh, options),
      {rank, local.ranks.front(), static_cast<int>(local.ranks.size()),
       format("%016llx-%d", static_cast<unsigned long long>(nonce), local.ranks.front()),
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
  Rendezvous joined;
  try {
    const std::string token = jobToken([](const char *name) { return std::getenv(name); });
    requireToken(launched, token, asked.trustNetwork);
    joined = rendezvous({launched.address, launched.port, launched.portFrom, token,
                         token.empty() && !asked.trustNetwork},
                        self, asked.timeoutSeconds);
  } catch (const RendezvousError &error) {
    return end(error, rank, launched.localRank);
  } catch (const Error &error) {
    return end(RendezvousError(error.what(), RendezvousError::FirstOfMachine), rank,
               launched.localRank);
  }
  const LocalRanks local(joined.peers, rank);
  JobOptions options = asked;
  options.localRank = launched.localRank >= 0 ? launched.localRank : local.index;
  if (options.localRanks == 0)
    options.localRanks = static_cast<int>(local.ranks.size());
  std::optional<SharedSegment> segment;
  try {
    segment.emplace(segmentOf(mesh, options, rank, local, joined.nonce));
  } catch (const Error &error) {
    Failure failure;
    failure.raise(error.at(rank, ""));
    ControlChannel control(std::move(joined), asked.timeoutSeconds);
    control.start(failure);
    control.report();
    return error.status();
  }
  ControlChannel control(std::move(joined), asked.timeoutSeconds);
  TcpJob job(mesh, options, rank, *segment, local, control);
  try {
    control.start(job.failure());
  } catch (const Error &error) {
    return report(error.at(rank, ""));
  }
  const int record = local.alone() ? 0 : rank;
  const Supervision supervision{[&](Failure &) { control.report(); },
                                local.alone() ? -1 : local.next()};
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
