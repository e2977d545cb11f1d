//===- ForkedRanks.h - forked ranks and their signals -----------*- C++ -*-===//
#ifndef FSDP_RUNTIME_JOB_FORKEDRANKS_H
#define FSDP_RUNTIME_JOB_FORKEDRANKS_H

#include "base/Error.h"

#include <csignal>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace fsdp::rt {

/// The processes of some ranks, and the signals that their parent passes on to them. While an
/// object exists, SIGCHLD and the signals that would end this process are blocked; await() takes
/// them.
class ForkedRanks {
public:
  /// `handlesStop`: the ranks handle SIGTERM, SIGINT, SIGHUP and SIGUSR1 (StopSignals.h).
  ForkedRanks(int count, bool handlesStop);
  ~ForkedRanks();
  ForkedRanks(const ForkedRanks &) = delete;
  ForkedRanks &operator=(const ForkedRanks &) = delete;

  /// Forks the ranks; `rankMain` runs in each and returns its exit status. They end with this
  /// process. Error: a process cannot be started; the ranks before it run.
  void start(const std::function<int(int)> &rankMain);
  /// Waits at most `seconds` < 1 for a rank to end, or for a signal, which it passes on.
  void await(double seconds);
  /// Calls `ended` with the status of waitpid for each rank that has ended; false when all have.
  bool reap(const std::function<void(int rank, int status)> &ended);
  void killAll();
  /// Called repeatedly after the job has failed: kills all ranks when `seconds` is above 0. True
  /// when the remaining ranks will not end: SIGKILL does not end a process in a call to a disk that
  /// does not answer.
  bool end(double seconds);
  bool anyRuns() const;
  /// Prints a note about each rank that has not ended, and forgets it.
  void abandon();
  /// Kills one rank, also a stopped process.
  void killRank(int rank);
  bool runs(int rank) const { return children_[static_cast<std::size_t>(rank)] > 0; }

  /// A signal that ends the job at once has arrived; ranks that continue are killed.
  bool isEndRequested() const { return endSignal_ != 0; }
  /// A signal has arrived that the ranks handle by ending.
  bool isStopRequested() const { return stopSignal_ != 0; }
  /// After the last rank: ends this process by the signal that has ended the ranks, or returns its
  /// status if the ranks handle it; 0 without a signal.
  int statusOfEnd();

private:
  bool handlesStop_;
  std::vector<pid_t> children_;
  sigset_t awaited_, before_;
  int endSignal_ = 0;  ///< the signal that ends the job at once
  int stopSignal_ = 0; ///< the signal that the ranks handle
  double stopSignalTime_ = 0;
};

/// The reason for no restart: a rank has not ended.
constexpr const char *kNotRestartedAsRankRemains =
    "; not restarted, as a rank of this attempt may still write";
/// The error of a job that is not restarted.
base::Error notRestarted(const base::Error &error, const char *why);

/// Describes how a rank with the waitpid status `status` has failed; empty if it has not. `done`:
/// the rank had completed the job.
std::string describeEnd(int status, bool done);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_FORKEDRANKS_H
