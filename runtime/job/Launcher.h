//===- Launcher.h - who started this process --------------------------------===//
#ifndef FSDP_RUNTIME_JOB_LAUNCHER_H
#define FSDP_RUNTIME_JOB_LAUNCHER_H

#include <functional>
#include <optional>
#include <string>

namespace fsdp::rt {

/// What a launcher (torchrun, Open MPI, MPICH and its kin, Slurm) says about this process.
struct LaunchEnvironment {
  std::string by; ///< "torchrun", "Open MPI", "PMI", "Slurm"
  int rank = 0, size = 1;
  /// Among the ranks on this machine. -1 and 0: it does not say.
  int localRank = 0, localSize = 1;
  /// The same text on every rank of the job. On no other job of this machine, where a launcher has
  /// given one, or FSDP_JOB_ID is set; ranks that were started by hand from one shell are told
  /// apart by MASTER_ADDR and MASTER_PORT only.
  std::string key;
  /// Where ranks of several machines meet: MASTER_ADDR, empty where nobody has set it; FSDP_PORT,
  /// or what follows from MASTER_PORT; and which of them that was.
  std::string address;
  int port = 0;
  std::string portFrom;

  bool oneMachine() const { return localSize == size; }
};

/// Value of an environment variable, or null.
using Environment = std::function<const char *(const char *)>;

/// Reads the launchers' variables, in the order torchrun, Open MPI, PMI, Slurm; nothing when this
/// process was started alone. Errors: a variable that is no number or lies outside its range;
/// NNODES for several machines where this process was started alone. [Note: the port] torchrun's
/// own store listens on MASTER_PORT where it is the agent's (TORCHELASTIC_USE_AGENT_STORE): then it
/// is the next one.
std::optional<LaunchEnvironment> detectLauncher(const Environment &environment);
/// The same from this process's environment.
std::optional<LaunchEnvironment> detectLauncher();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_LAUNCHER_H
