//===- Nvtx.cpp - ranges for profilers, written to a file --------------------------===//

#include "nvtx3/nvToolsExt.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

/// Writes a line; nothing where no profiler is.
static void write(const char *what, const char *name) {
  static const char *path = std::getenv("NVTX_INJECTION64_PATH");
  static std::mutex mutex;
  if (!path)
    return;
  const std::lock_guard<std::mutex> lock(mutex);
  static int threads = 0;
  thread_local const int thread = threads++;
  if (std::FILE *file = std::fopen(path, "a")) {
    std::fprintf(file, "%d %s%s\n", thread, what, name);
    std::fclose(file);
  }
}

int nvtxRangePushA(const char *name) {
  write("push ", name);
  return 0;
}

int nvtxRangePop() {
  write("pop", "");
  return 0;
}
