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

int reportByFirst(const Error &error, int rank, int first) {
  if (rank == first)
    return report(error);
  // A launcher ends the whole job when the first process fails, so rank `first` gets time to report
  // the cause. If nothing ends this process, that rank may not have been started.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const std::string own = error.what();
  const std::string text =
      own.empty() ? format("note: rank %d ends, for a reason that rank %d reports\n", rank, first)
                  : format("note: rank %d ends: %s\n", rank, own.c_str());
  std::fwrite(text.data(), 1, text.size(), stderr);
  return error.status();
}

} // namespace fsdp::rt
