//===- ChildProcess.h - work that may never end ---------------------------===//
#ifndef FSDP_RUNTIME_JOB_CHILDPROCESS_H
#define FSDP_RUNTIME_JOB_CHILDPROCESS_H

#include <functional>
#include <optional>

namespace fsdp::rt {

/// Runs `work` in a process of its own, which ends with this one, and returns what it does, from 0
/// to 255. Nothing where it has not ended after `seconds`: then it is killed, and left where the
/// system does not let it end, as in a call to a disk that does not answer. Where no process can be
/// made, or it dies, 255.
std::optional<int> runInChild(double seconds, const std::function<int()> &work);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_CHILDPROCESS_H
