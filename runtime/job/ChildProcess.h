//===- ChildProcess.h - work in a child, with a time limit ----------------===//
#ifndef FSDP_RUNTIME_JOB_CHILDPROCESS_H
#define FSDP_RUNTIME_JOB_CHILDPROCESS_H

#include <functional>
#include <optional>

namespace fsdp::rt {

/// Runs `work` in a child process, which ends with this one, and returns its result, from 0 to 255.
/// Returns nothing if it has not ended after `seconds`: then it is killed, but not waited for if it
/// does not end, as in a call to a disk that does not answer. Returns 255 if the process cannot be
/// started or dies.
std::optional<int> runInChild(double seconds, const std::function<int()> &work);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_CHILDPROCESS_H
