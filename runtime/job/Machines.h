//===- Machines.h - jobs of several machines, with one process for each ------===//
//
// Each machine has one process, which forks its share of the ranks. Machine 0 says when an attempt
// begins and what came of it, so that all begin the next one, or give up, together.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_JOB_MACHINES_H
#define FSDP_RUNTIME_JOB_MACHINES_H

#include "runtime/job/Launcher.h"
#include "runtime/job/TcpRendezvous.h"

#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// The other machines, as the process of one sees them; single-threaded, as it forks between its
/// calls. An attempt is begin, poll while its ranks run, end, and poll until there is a result.
class Machines {
public:
  explicit Machines(LaunchEnvironment place) : place_(std::move(place)) {}
  /// Machine 0 stays until the others have read what came of the job.
  ~Machines();
  Machines(const Machines &) = delete;
  Machines &operator=(const Machines &) = delete;

  int index() const { return place_.rank; }
  int count() const { return place_.size; }
  const LaunchEnvironment &place() const { return place_; }

  /// Meets the others, the first time. Errors (RendezvousError): one that does not come in time, or
  /// was started otherwise than machine 0.
  void meet(const std::string &job, const RunIdentity &identity, double timeoutSeconds,
            bool trustNetwork);

  /// The next attempt: its number, from 1, and the port at which its ranks meet; on machine 0 that
  /// of `listener`, a new one. Errors: machine 0 does not say so in time, or is gone.
  struct Attempt {
    int number = 0, port = 0;
    Socket listener;
  };
  Attempt begin();

  /// Takes what the others have said, and gives a sign of life. A machine that is gone, or gives
  /// none, fails the attempt for good.
  void poll();
  /// The attempt's first failure that is known here, of this machine or another.
  const std::optional<base::Error> &failure() const { return failure_; }
  /// A rank of this machine has failed.
  void fail(const base::Error &error);
  /// The ranks of this machine have ended. `cause`: why one of them has, in the place of what ranks
  /// elsewhere say of it. `progress`: see Result. `isLast`: one of them is left, and no other
  /// attempt may follow; nor may one after a failure where `status` is that of a signal
  /// (StopSignals.h), which asks for the end of the run.
  void end(int status, const std::optional<base::Error> &cause, int progress, bool isLast);

  /// What came of the attempt, the same on all machines.
  struct Result {
    int status = 0;
    std::optional<base::Error> error;
    bool isLast = false; ///< a machine is gone, a rank is left, or a signal asks for the end: no
                         ///< other attempt can follow
    int progress = 0;    ///< what machine 0 has given to end()
  };
  const std::optional<Result> &result() const { return result_; }

  /// In a process that was forked: the connections are the parent's.
  void leave() { lines_.clear(); }

private:
  struct Line {
    Socket socket;
    int machine = 0;
    std::string host, bytes;
    double silent = 0;
    bool heard = false; ///< in this attempt: what comes before one takes its time, such as looking
                        ///< for checkpoints
    bool ended = false;
    int status = 0;
  };

  void receive(Line &line);
  void take(Line &line, const MachineMessage &message);
  void lose(Line &line, const std::string &why);
  void send(Line &line, MachineMessage::Kind kind, const std::optional<base::Error> &error = {},
            int port = 0, int status = 0);
  void consider(const std::optional<base::Error> &cause);
  void settle();

  LaunchEnvironment place_;
  double timeout_ = 0, silence_ = 0;
  std::vector<Line> lines_; ///< machine 0: to all others; the others: to it
  double last_ = 0, said_ = 0;
  int attempt_ = 0, port_ = 0; ///< port_: that of the attempt that machine 0 has begun
  std::optional<base::Error> failure_;
  bool isLost_ = false, isLast_ = false, ended_ = false, met_ = false;
  int status_ = 0, progress_ = 0;
  std::optional<Result> result_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_MACHINES_H
