//===- StopSignals.h - signals that ask for a save ------------------------===//

#ifndef FSDP_RUNTIME_JOB_STOPSIGNALS_H
#define FSDP_RUNTIME_JOB_STOPSIGNALS_H

namespace fsdp::rt {

/// Seconds within which a signal that comes again is the same one: launchers and terminals send it
/// to a process and to its group, and a parent passes it on.
constexpr double kSameSignalSeconds = 0.2;

/// The status of a program that a signal has ended: 143 for SIGTERM, 130 for SIGINT.
constexpr int statusOfSignal(int number) { return 128 + number; }
constexpr bool isStatusOfSignal(int status) { return status > 128; }

/// From now on SIGTERM and SIGINT ask for the end of the run and SIGUSR1 for a save, which the run
/// looks for between steps. SIGTERM or SIGINT once more ends the process at once, with the status
/// of the first. Forked ranks have the handlers too. A signal that the process was started to
/// ignore stays ignored.
void handleStopSignals();

/// In a rank whose parent passes on the signals that it gets: they are not one more than those that
/// came otherwise, however late.
void expectSignalsOf(int parent);

/// In a parent that takes signals with sigwait: one that ends the run has come. It holds for this
/// process and those that it forks from now on.
void noteStop(int number);

/// Why a job that has failed is not tried again.
constexpr const char *kNotRestartedAfterSignal =
    "; not restarted, as a signal asks for the end of the run";

/// What has come so far, in the order of what overrides what, so that ranks agree by the largest.
struct StopRequest {
  int saves = 0;      ///< how often a save has been asked for
  double savesAt = 0; ///< when it last was, by now()
  int signal = 0;     ///< that ends the run; 0: none
};
StopRequest stopRequest();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_STOPSIGNALS_H
