//===- ErrorReport.cpp ----------------------------------------------------===//

#include "runtime/job/ErrorReport.h"

#include <chrono>
#include <cstdio>
#include <thread>

namespace fsdp::rt {

using namespace base;

int report(const Error &error) {
  // One write, so that lines of several processes do not mix.
  std::string text = "error: " + error.describe() + "\n";
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  return error.status();
}

int reportByFirst(const Error &error, int rank) {
  if (rank == 0)
    return report(error);
  // A launcher ends the whole job with the first process that fails: rank 0 must have had the time
  // to say why. Where nobody ends this one, rank 0 may never have been started.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const std::string text =
      format("note: rank %d ends, as rank 0 would say: %s\n", rank, error.what());
  std::fwrite(text.data(), 1, text.size(), stderr);
  return error.status();
}

} // namespace fsdp::rt
