//===- Launcher.h - detection of launchers --------------------------------===//
#ifndef FSDP_RUNTIME_JOB_LAUNCHER_H
#define FSDP_RUNTIME_JOB_LAUNCHER_H

#include <functional>
#include <optional>
#include <string>

namespace fsdp::rt {

/// A launcher's (torchrun, Open MPI, MPICH and its derivatives, Slurm) data about this process.
struct LaunchEnvironment {
  std::string by; ///< "torchrun", "Open MPI", "PMI", "Slurm"
  int rank = 0, size = 1;
  /// Among the ranks on this machine. -1 and 0: not known.
  int localRank = 0, localSize = 1;
  /// The same text on every rank of the job, and on no other job of this machine if a launcher has
  /// identified the job or FSDP_JOB_ID is set. Jobs that were started by hand from one shell differ
  /// in MASTER_ADDR and MASTER_PORT only.
  std::string key;
  /// Where rank 0 listens for ranks of other machines: MASTER_ADDR, empty if not set; the port of
  /// FSDP_PORT or MASTER_PORT; and the variable that the port is from.
  std::string address;
  int port = 0;
  std::string portFrom;

  bool oneMachine() const { return localSize == size; }
};

/// Value of an environment variable, or null.
using Environment = std::function<const char *(const char *)>;

/// Reads the launchers' variables, in the order torchrun, Open MPI, PMI, Slurm; nothing when this
/// process was started alone. Errors: a variable that is not a number in its range; NNODES for
/// several machines where this process was started alone. [Note: the port] If torchrun's agent has
/// its store on MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE), the port is the next one.
std::optional<LaunchEnvironment> detectLauncher(const Environment &environment);
/// The same from this process's environment.
std::optional<LaunchEnvironment> detectLauncher();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_LAUNCHER_H
