//===- LauncherWatch.h - the process that started this one ---*- C++ -*-===//

#ifndef FSDP_RUNTIME_JOB_LAUNCHERWATCH_H
#define FSDP_RUNTIME_JOB_LAUNCHERWATCH_H

#include "base/Descriptor.h"

#include <string>

namespace fsdp::rt {

/// The process that started this rank: mpirun, or what mpirun, torchrun or srun run on this machine
/// to start ranks. Shells and scripts in between are passed over: they have the rank's variables in
/// their environment, the launcher has not. Where somebody set those variables by hand nobody is
/// watched, as a shell may end before the ranks that it has started.
class LauncherWatch {
public:
  /// Finds the launcher of this process, if there is one.
  LauncherWatch();

  /// Whether there was one and is no more. Allocates nothing.
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
