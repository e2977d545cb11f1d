//===- Thread.h - threads that start or say why not -----------------------===//
#ifndef FSDP_RUNTIME_THREAD_H
#define FSDP_RUNTIME_THREAD_H

#include "runtime/Error.h"

#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace fsdp::rt {

/// Starts a thread that runs `body`. `whose` names it in the error where the system gives none:
/// "stream 'compute'".
template <class Body> std::thread startThread(const std::string &whose, Body body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error &error) {
    throw Error("cannot start the thread of " + whose + ": " + error.code().message() +
                ": the user's limit of processes, 'ulimit -u', or pids.max of its cgroup, must "
                "leave room for more threads");
  }
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_THREAD_H
