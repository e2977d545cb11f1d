//===- Process.h - processes of this machine --------------------------------===//
#ifndef FSDP_RUNTIME_JOB_PROCESS_H
#define FSDP_RUNTIME_JOB_PROCESS_H

#include <cstdint>
#include <string>

namespace fsdp::rt {

/// Identity of this boot of the kernel, or "".
std::string bootIdentity();
/// Its state, as /proc/PID/stat says it: 'D' in a call that nothing interrupts, 'Z' ended but for
/// that; 'Z' where there is no such process.
char stateOf(int pid);
/// The process that started one, or that has adopted it; 0 where there is no such process.
int parentOf(int pid);
/// Whether a process was started with an environment variable. One that may not be looked at, such
/// as another user's, was not.
bool startedWith(int pid, const std::string &variable);
/// The name of its command; empty where there is no such process.
std::string commandOf(int pid);
/// When a process was started, in ticks since boot; 0 where there is none.
std::uint64_t startTimeOf(int pid);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_PROCESS_H
