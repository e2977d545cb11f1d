//===- Thread.h - threads with an error that names them -------------------===//
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include "base/Error.h"

#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace base {

/// Starts a thread that runs `body`. `owner` names it in the error if the system cannot start one:
/// "stream 'compute'".
template <class Body> std::thread startThread(const std::string &owner, Body body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error &error) {
    throw Error("cannot start the thread of " + owner + ": " + error.code().message() +
                ": the user's limit of processes, 'ulimit -u', or pids.max of its cgroup, must "
                "leave room for more threads");
  }
}

} // namespace base

#endif // BASE_THREAD_H
