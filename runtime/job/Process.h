//===- Process.h - processes of this machine, and who started this one ------===//
#ifndef FSDP_RUNTIME_JOB_PROCESS_H
#define FSDP_RUNTIME_JOB_PROCESS_H

#include "base/Descriptor.h"

#include <cstdint>
#include <string>

namespace fsdp::rt {

/// A process, told apart from every other one of this machine, earlier ones that had its id
/// included. Plain data, as other processes read it.
struct ProcessIdentity {
  std::int32_t pid = 0;
  std::uint64_t startTime = 0; ///< ticks since boot; 0: not known
  std::uint64_t pidNamespace = 0;
  char boot[40] = {};

  static ProcessIdentity ofSelf();
  /// Elsewhere: in a container of its own, where this process cannot see it.
  enum Liveness { Alive, Gone, Elsewhere };
  Liveness liveness() const;
};

/// Identity of this boot of the kernel, or "".
std::string bootIdentity();
/// Its state, as /proc/PID/stat says it: 'D' in a call that nothing interrupts, 'Z' ended but for
/// that; 'Z' where there is no such process.
char stateOf(int pid);
/// When a process was started, in ticks since boot; 0 where there is none.
std::uint64_t startTimeOf(int pid);

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

#endif // FSDP_RUNTIME_JOB_PROCESS_H
