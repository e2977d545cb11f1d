//===- ForkedRanks.h - ranks that this process has forked -------*- C++ -*-===//
#ifndef FSDP_RUNTIME_JOB_FORKEDRANKS_H
#define FSDP_RUNTIME_JOB_FORKEDRANKS_H

#include "base/Error.h"

#include <csignal>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace fsdp::rt {

/// The processes of some ranks, and the signals that their parent passes on to them. While one
/// lives, SIGCHLD and the signals that would end this process wait until await() takes them.
class ForkedRanks {
public:
  /// `handlesStop`: SIGTERM, SIGINT and SIGUSR1 are for the ranks to handle (StopSignals.h).
  ForkedRanks(int count, bool handlesStop);
  ~ForkedRanks();
  ForkedRanks(const ForkedRanks &) = delete;
  ForkedRanks &operator=(const ForkedRanks &) = delete;

  /// Forks the ranks; `rankMain` runs in each and gives its exit status. They end with this
  /// process, whatever ends it. Errors: a process that cannot be started; those before it run.
  void start(const std::function<int(int)> &rankMain);
  /// Waits for a rank to end, or for a signal, which it passes on; `seconds` < 1 at most.
  void await(double seconds);
  /// Calls `ended` for each rank that has ended, with what waitpid says; false when none is left.
  bool reap(const std::function<void(int rank, int status)> &ended);
  void killAll();
  /// To be called again and again once the job has failed: kills all when `seconds` is above 0.
  /// True when those that are left will not end: in a call to a disk that does not answer, not even
  /// SIGKILL ends a process.
  bool end(double seconds);
  bool anyRuns() const;
  /// Says of each that is left that it is, and forgets it.
  void abandon();
  /// Kills one; works on a stopped process too.
  void killRank(int rank);
  bool runs(int rank) const { return children_[static_cast<std::size_t>(rank)] > 0; }

  /// A signal that ends the job at once has come, and ranks that go on are killed.
  bool isEndRequested() const { return endSignal_ != 0; }
  /// A signal has come that ranks handle, and end after.
  bool isStopRequested() const { return stopSignal_ != 0; }
  /// After the last rank: ends this process by the signal that has ended them, if one has, or
  /// returns its status where ranks handle it; else 0.
  int statusOfEnd();

private:
  bool handlesStop_;
  std::vector<pid_t> children_;
  sigset_t awaited_, before_;
  int endSignal_ = 0;  ///< a signal, at once
  int stopSignal_ = 0; ///< a signal that ranks handle
  double stopSignalTime_ = 0;
};

/// Why a job that has failed is not tried again: one of its ranks is left.
constexpr const char *kNotRestartedAsRankRemains =
    "; not restarted, as a rank of this attempt may still write";
/// The error of a job that is not tried again.
base::Error notRestarted(const base::Error &error, const char *why);

/// In words, why a rank of which waitpid says `status` has ended otherwise than it should; empty
/// where it has not. `done`: it had come to the end of the job.
std::string describeEnd(int status, bool done);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_FORKEDRANKS_H
