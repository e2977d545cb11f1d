//===- StopSignals.h - signals that request a save or the end -------------===//

#ifndef FSDP_RUNTIME_JOB_STOPSIGNALS_H
#define FSDP_RUNTIME_JOB_STOPSIGNALS_H

namespace fsdp::rt {

/// Seconds within which a repeated signal is the same request: launchers and terminals send a
/// signal to a process and to its group, and a parent passes it on.
constexpr double kSameSignalSeconds = 0.2;

/// Exit status after a signal: 143 for SIGTERM, 130 for SIGINT, 129 for SIGHUP.
constexpr int statusOfSignal(int number) { return 128 + number; }
constexpr bool isStatusOfSignal(int status) { return status > 128; }

/// Whether the process handles a signal by `handler`: SIG_DFL or SIG_IGN.
bool isHandledBy(int number, void (*handler)(int));

/// The name of a signal that ends the run.
const char *nameOfStop(int number);

/// Installs handlers: SIGTERM, SIGINT and SIGHUP request the end of the run and SIGUSR1 a save,
/// which the run checks between steps. A second SIGTERM or SIGINT ends the process at once, with
/// the status of the first; a SIGHUP never does, as shell and terminal both send one. Forked ranks
/// inherit the handlers. A signal that the process ignores since its start (nohup) stays ignored.
void handleStopSignals();

/// For a rank whose parent passes on its signals: a signal from the parent and one from another
/// process are one request, at any time.
void expectSignalsOf(int parent);

/// For a parent that takes signals with sigwait: notes a request to end the run, for this process
/// and those that it forks from now on.
void noteStop(int number);

/// The reason for no restart: a request to end the run.
constexpr const char *kNotRestartedAfterSignal =
    "; not restarted, as a signal requests the end of the run";

/// The requests so far. Ranks agree on the maximum of each.
struct StopRequest {
  int saves = 0;      ///< number of requests to save
  double savesAt = 0; ///< when the latest one arrived, by now()
  int signal = 0;     ///< the signal that ends the run; 0: none
};
StopRequest stopRequest();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_STOPSIGNALS_H
