//===- Launcher.h - who started this process --------------------------------===//
#ifndef FSDP_RUNTIME_LAUNCHER_H
#define FSDP_RUNTIME_LAUNCHER_H

#include <functional>
#include <optional>
#include <string>

namespace fsdp::rt {

/// What a launcher (torchrun, Open MPI, MPICH and its kin, Slurm) says about this process.
struct Launched {
  std::string by; ///< "torchrun", "Open MPI", "PMI", "Slurm"
  int rank = 0, size = 1;
  int localRank = 0, localSize = 1; ///< among the ranks on this machine
  /// The same text on every rank of the job, and on no other job of this machine.
  std::string key;

  bool oneMachine() const { return localSize == size; }
};

/// Value of an environment variable, or null.
using Environment = std::function<const char *(const char *)>;

/// Reads the launchers' variables, in the order torchrun, Open MPI, PMI, Slurm; nothing when this
/// process was started alone. Errors: a variable that is no number or lies outside its range.
std::optional<Launched> detectLauncher(const Environment &environment);
/// The same from this process's environment.
std::optional<Launched> detectLauncher();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHER_H
