#include "runtime/job/Watchdog.h"
#include "base/AtomicFile.h"
#include "base/Thread.h"
#include "runtime/comm/RankActions.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

double heartbeatTimeout(double timeoutSeconds) { return std::min(0.75 * timeoutSeconds, 30.0); }

Watchdog::Watchdog(SharedSegment &segment, int rank, int neighbour, double timeoutSeconds,
                   std::function<void()> notice, std::function<void(Failure &)> report)
    : segment_(segment), rank_(rank), neighbour_(neighbour),
      heartbeatTimeout_(heartbeatTimeout(timeoutSeconds)), notice_(std::move(notice)),
      report_(std::move(report)), thread_(startThread("the watchdog", [this] { run(); })) {}

Watchdog::~Watchdog() {
  stop_.store(true);
  wake_.advance();
  thread_.join();
}

void Watchdog::run() {
  double failedAt = 0;
  while (!wake_.waitFor(1, 0.1)) {
    const double time = now();
    segment_.rank(rank_).heartbeat.store(time);
    if (!segment_.failure().raised()) {
      if (neighbour_ >= 0)
        checkNeighbour();
      if (launcher_.gone())
        segment_.failure().raise(Error(
            format("%s has exited: it was killed, or ended before its ranks; its ranks end too",
                   launcher_.describe().c_str())));
      continue;
    }
    if (failedAt == 0) {
      failedAt = time;
      notice_();
    }
    if (time - failedAt < kGraceSeconds)
      continue;
    Error error = segment_.failure().error();
    if (report_)
      report_(segment_.failure());
    removeTemporaryFiles();
    _exit(error.status());
  }
}

void Watchdog::checkNeighbour() {
  RankRecord &record = segment_.rank(neighbour_);
  if (record.state != RankRecord::Running)
    return;
  if (record.heartbeat != lastHeartbeat_) {
    lastHeartbeat_ = record.heartbeat;
    sinceHeartbeat_.restart();
    return;
  }
  const double sinceHeartbeat = sinceHeartbeat_.look();
  // A process that has ended has no heartbeat either. The process id alone is not enough, as ranks
  // may be in different containers.
  const bool gone = sinceHeartbeat > 1 && kill(record.pid, 0) != 0 && errno == ESRCH;
  if (!gone && sinceHeartbeat < heartbeatTimeout_)
    return;
  Error error =
      gone ? Error("exited unexpectedly: it was killed, or exited before the end of the job")
           : Error(format("not responding: no heartbeat for %.0f s%s", sinceHeartbeat,
                          describeHang(segment_, neighbour_).c_str()));
  segment_.failure().raise(error.at(neighbour_, ""));
}

} // namespace fsdp::rt
