//===- Process.h - information about processes ----------------------------===//
#ifndef FSDP_RUNTIME_JOB_PROCESS_H
#define FSDP_RUNTIME_JOB_PROCESS_H

#include <cstdint>
#include <string>

namespace fsdp::rt {

/// Identity of this boot of the kernel, or "".
std::string bootIdentity();
/// The state in /proc/PID/stat: 'D' in a call that cannot be interrupted, 'Z' ended; 'Z' if there
/// is no such process.
char stateOf(int pid);
/// The parent of a process; 0 if there is no such process.
int parentOf(int pid);
/// Whether a process was started with an environment variable. False for a process whose
/// environment cannot be read, such as another user's.
bool startedWith(int pid, const std::string &variable);
/// The name of the command of a process; empty if there is no such process.
std::string commandOf(int pid);
/// The start time of a process, in ticks since boot; 0 if there is no such process.
std::uint64_t startTimeOf(int pid);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_PROCESS_H
