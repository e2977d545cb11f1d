//===- LauncherWatch.h - detects the end of the launcher --------*- C++ -*-===//

#ifndef FSDP_RUNTIME_JOB_LAUNCHERWATCH_H
#define FSDP_RUNTIME_JOB_LAUNCHERWATCH_H

#include "base/Descriptor.h"

#include <string>

namespace fsdp::rt {

/// The launcher's process that started this rank; 0 if there is none, or if it is unknown because
/// the variables were set by hand. See LauncherWatch.
int launcherProcess();

/// The launcher's process that started this rank: mpirun, or the daemon of mpirun, torchrun or srun
/// on this machine. Shells and scripts in between are skipped: they have the rank's variables in
/// their environment, and the launcher does not. No process is watched if the variables were set by
/// hand, as a shell may end before the ranks that it has started.
class LauncherWatch {
public:
  /// Finds the launcher of this process, if there is one.
  LauncherWatch();

  /// Whether the launcher has ended. Allocates nothing.
  bool gone() const;
  /// "the launcher 'mpirun' (process 123)"
  const std::string &describe() const { return description_; }

private:
  int pid_ = 0;
  base::Descriptor descriptor_; ///< of the process; none before Linux 5.3
  std::string description_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_LAUNCHERWATCH_H
