//===- Thread.h - threads with an error that names them -------------------===//
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include "base/Error.h"

#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace base {

/// The limit that most likely refused to start a thread just now, and the remedy: that of address
/// space if a stack does not fit, else those of processes.
std::string explainThreadLimit();

/// Starts a thread that runs `body`. `owner` names it in the error if the system cannot start one:
/// "stream 'compute'".
template <class Body> std::thread startThread(const std::string &owner, Body body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error &error) {
    throw Error("cannot start the thread of " + owner + ": " + error.code().message() + ": " +
                explainThreadLimit());
  }
}

} // namespace base

#endif // BASE_THREAD_H
