#include "runtime/TcpJob.h"
#include "runtime/SharedJob.h"
#include "runtime/SharedMemoryCommunicator.h"
#include "runtime/TcpCommunicator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <sys/resource.h>
#include <unistd.h>

namespace fsdp::rt {

namespace {

/// The ranks of this rank's machine.
struct Neighbourhood {
  std::vector<int> ranks;
  int index = 0;

  Neighbourhood(const std::vector<Member> &members, int rank) {
    const auto at = [&](int other) { return members[static_cast<std::size_t>(other)].machine; };
    for (int other = 0; other < static_cast<int>(members.size()); ++other) {
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
/// elsewhere are never touched and cost nothing. A rank that is alone has one record, and one arena.
class TcpJob final : public Job {
public:
  TcpJob(const Mesh &mesh, const JobOptions &options, int rank, SharedSegment &segment,
         const Neighbourhood &here, Lifeline &lifeline)
      : Job(mesh, options, rank), segment_(segment), here_(here), lifeline_(lifeline) {
    arena_ = segment.arena(here.alone() ? 0 : rank);
    failure_ = &segment.failure();
  }

  std::unique_ptr<Communicator> communicator(int index, int channel) override {
    const CommunicatorSpec spec = specOf(mesh_, options_, index);
    const std::vector<int> group = mesh_.group(rank_, spec.axes);
    const int number = index * kChannels + channel;
    if (!here_.alone() &&
        std::all_of(group.begin(), group.end(), [&](int rank) { return here_.has(rank); }))
      return std::make_unique<SharedMemoryCommunicator>(spec.name, *this, segment_, number, group,
                                                        options_.timeoutSeconds);
    // One that is made again gets connections of its own.
    const std::uint64_t id =
        std::uint64_t(made_[number]++) << 32 | static_cast<std::uint32_t>(number);
    return std::make_unique<TcpCommunicator>(spec.name, *this, lifeline_, id, group,
                                             options_.timeoutSeconds);
  }

private:
  SharedSegment &segment_;
  const Neighbourhood &here_;
  Lifeline &lifeline_;
  std::map<int, std::uint32_t> made_;
};

// FNV-1a over what has to be the same on every rank.
std::uint64_t identityOf(const Mesh &mesh, const JobOptions &options) {
  std::string text = format("%s %s %zu", options.program, mesh.describe().c_str(),
                            options.arenaBytes);
  for (const CommunicatorSpec &spec : options.communicators) {
    text += format(" %s", spec.name);
    for (int axis : spec.axes)
      text += format(".%d", axis);
  }
  if (const char *run = std::getenv("TORCHELASTIC_RUN_ID"))
    text += format(" %s", run);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text)
    hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

/// Every communicator takes a descriptor for each rank of its group.
void allowManyConnections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

int end(const Unmet &error, int rank, int localRank) {
  const bool tells = error.teller() == Unmet::ThisRank ||
                     (error.teller() == Unmet::FirstRank && rank == 0) ||
                     (error.teller() == Unmet::FirstOfMachine && localRank <= 0);
  return reportByFirst(error, tells ? 0 : rank + 1);
}

SharedSegment segmentOf(const Mesh &mesh, const JobOptions &options, int rank,
                        const Neighbourhood &here, std::uint64_t nonce) {
  if (here.alone()) {
    const SharedSegment::Layout layout{1, 1, options.arenaBytes};
    return SharedSegment(Mapping::anonymous(SharedSegment::bytesFor(layout)), layout);
  }
  return joinSegment(layoutOf(mesh, options),
                     {rank, here.ranks.front(), static_cast<int>(here.ranks.size()),
                      format("%016llx-%d", static_cast<unsigned long long>(nonce),
                             here.ranks.front())},
                     options.timeoutSeconds);
}

} // namespace

int runTcpRank(const Mesh &mesh, const JobOptions &asked, const Launched &launched,
               const std::function<int(Job &)> &body) {
  const int rank = launched.rank;
  allowManyConnections();
  Introduction self{rank, launched.size, machineIdentity(), identityOf(mesh, asked), asked.program};
  if (asked.transport == Transport::Tcp)
    self.machine += format("-%d", rank);
  Meeting meeting;
  try {
    meeting = meet({launched.address, launched.port, launched.portFrom}, self,
                   asked.timeoutSeconds);
  } catch (const Unmet &error) {
    return end(error, rank, launched.localRank);
  }
  const Neighbourhood here(meeting.members, rank);
  JobOptions options = asked;
  options.localRank = launched.localRank >= 0 ? launched.localRank : here.index;
  std::optional<SharedSegment> segment;
  try {
    segment.emplace(segmentOf(mesh, options, rank, here, meeting.nonce));
  } catch (const Error &error) {
    Failure failure;
    failure.raise(error.at(rank, ""));
    Lifeline lifeline(std::move(meeting), asked.timeoutSeconds);
    lifeline.start(failure);
    lifeline.report();
    return error.status();
  }
  Lifeline lifeline(std::move(meeting), asked.timeoutSeconds);
  TcpJob job(mesh, options, rank, *segment, here, lifeline);
  lifeline.start(job.failure());
  const int record = here.alone() ? 0 : rank;
  const Supervision supervision{here.alone() ? -1 : here.next(),
                                [&](Failure &) { lifeline.report(); }};
  return runRank(job, *segment, record, supervision, [&](Job &started) {
    const int status = body(started);
    if (status == 0) {
      segment->rank(record).state = RankRecord::Done;
      lifeline.finish();
    }
    return status;
  });
}

} // namespace fsdp::rt
