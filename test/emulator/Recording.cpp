//===- Recording.cpp - calls of a program whose work is not performed --------------===//

#include "Recording.h"

#include "Emulator.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace emulator {

namespace {
std::FILE *file = nullptr;

/// Never returns without a file that can be written: settingsOfEnvironment has opened it before.
void open() {
  file = std::fopen(settings().calls.c_str(), "w");
  std::atexit([] {
    if (!file || std::ferror(file) + std::fclose(file)) {
      std::fprintf(stderr, "cuda emulator: cannot write '%s'\n", settings().calls.c_str());
      std::fflush(nullptr);
      std::_Exit(1);
    }
  });
  if (!file)
    std::exit(1);
}
} // namespace

bool recordsCalls() { return !settings().calls.empty(); }

void recordCall(int device, int stream, const std::string &what, const std::string &details) {
  static std::once_flag first;
  std::call_once(first, open);
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  static int threads = 0;
  thread_local const int thread = threads++;
  std::fprintf(file, "%d\t%d\t%d\t%s%s%s\n", thread, device, stream, what.c_str(),
               details.empty() ? "" : "\t", details.c_str());
}

} // namespace emulator
