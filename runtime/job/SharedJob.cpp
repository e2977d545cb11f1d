#include "runtime/job/SharedJob.h"
#include "base/MappedFile.h"
#include "base/PrintableText.h"
#include "runtime/comm/RankActions.h"
#include "runtime/job/ErrorReport.h"
#include "runtime/job/FlightRecord.h"
#include "runtime/job/StopSignals.h"
#include "runtime/job/Watchdog.h"

#include <cstdio>
#include <optional>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

SharedJob::SharedJob(const Mesh &mesh, const JobOptions &options, int rank, SharedSegment &segment)
    : Job(mesh, options, rank), segment_(segment) {
  peer_.arena = segment.arena(rank);
  peer_.failure = &segment.failure();
  peer_.flight = segment.flight(rank);
}

std::unique_ptr<Communicator> SharedJob::communicator(int index, int channel) {
  CommunicatorSpec spec = specOf(mesh_, options_, index);
  return sharedMemoryCommunicator(spec.name, peer_, segment_, index * kChannels + channel,
                                  mesh_.ranksOf(spec, peer_.rank),
                                  peerIndexOf(options_, index) * kChannels + channel);
}

SharedSegment::Layout layoutOf(const Mesh &mesh, const JobOptions &options) {
  return {mesh.size(), (static_cast<int>(options.communicators.size()) + 1) * kChannels,
          options.arenaBytes};
}

CommunicatorSpec specOf(const Mesh &mesh, const JobOptions &options, int index) {
  if (index < static_cast<int>(options.communicators.size()))
    return options.communicators[index];
  CommunicatorSpec all{"all ranks", {}};
  for (int axis = 0; axis < mesh.dimensions(); ++axis)
    all.axes.axis[all.axes.count++] = axis;
  return all;
}

int peerIndexOf(const JobOptions &options, int index) {
  return index < static_cast<int>(options.communicators.size()) &&
                 options.communicators[static_cast<std::size_t>(index)].isTransfer()
             ? counterpartOf(options.communicators, index)
             : index;
}

void reportOnce(Failure &failure) {
  if (failure.claimReport())
    report(failure.error());
}

/// Prints the action that keeps this rank busy when the job fails, if it waits for no other rank
/// and some rank does not share its memory: the error of that rank cannot name this one.
static void noteBusy(const Job &job, const SharedSegment &segment, int record) {
  int sharing = 0;
  for (int rank = 0; rank < segment.layout().ranks; ++rank)
    sharing += segment.rank(rank).state != RankRecord::Absent;
  if (sharing == job.worldSize())
    return;
  const std::string busy = describeBusy(segment, record, busySeconds(job.options().timeoutSeconds));
  if (busy.empty())
    return;
  const std::string role = roleOf(segment, record);
  std::fprintf(stderr, "note: rank %d%s waits for no other rank: %s\n", job.rank(),
               role.empty() ? "" : (" (" + role + ")").c_str(), printable(busy).c_str());
}

int runRank(Job &job, SharedSegment &segment, int recordIndex, const Supervision &asked,
            const std::function<int(Job &)> &body) {
  Supervision supervision = asked;
  if (asked.report)
    supervision.report = [&](Failure &failure) {
      asked.report(failure);
      writeFlightRecord(segment, job.options().flightRecord, job.rank() - recordIndex,
                        job.worldSize());
    };
  RankRecord &record = segment.rank(recordIndex);
  Failure &failure = job.failure();
  record.pid = static_cast<int>(getpid());
  record.heartbeat = now();
  record.state = RankRecord::Running;
  std::optional<LostPageHandler> lostPages;
  if (job.options().transport != Transport::Loopback) // whose ranks are one process
    lostPages.emplace([&](const Error &error) {
      failure.raise(error.at(job.rank(), ""));
      if (supervision.report)
        supervision.report(failure);
    });
  std::optional<Watchdog> watchdog;
  int status = kExitDone;
  try {
    watchdog.emplace(
        segment, recordIndex, supervision.neighbour, job.options().timeoutSeconds,
        [&] { noteBusy(job, segment, recordIndex); }, supervision.report);
    status = body(job);
    if (status != kExitDone && !isStatusOfSignal(status))
      throw Error(format("ended with status %d", status), status);
    record.state = RankRecord::Done;
  } catch (const Aborted &error) {
    if (!failure.raised())
      failure.raise(error.at(job.rank(), ""));
  } catch (const Error &error) {
    failure.raise(error.at(job.rank(), ""));
  } catch (const std::exception &error) {
    failure.raise(Error(error.what()).at(job.rank(), ""));
  } catch (...) {
    failure.raise(Error("an exception of unknown type").at(job.rank(), ""));
  }
  if (!failure.raised())
    return status;
  if (supervision.report)
    supervision.report(failure);
  return failure.error().status();
}

} // namespace fsdp::rt
