// A run of two segments, as ProfilerRanges shows it to the profiler whose library
// NVTX_INJECTION64_PATH names: test/e2e/nvtx.test.
#include "base/Error.h"
#include "runtime/execution/cuda/ProfilerRanges.h"

#include <cstdio>

int main() try {
  const auto ranges = fsdp::rt::ProfilerRanges::make();
  if (!ranges) {
    std::puts("no ranges");
    return 0;
  }
  ranges->next("between runs");
  for (int step = 1; step <= 2; ++step) {
    ranges->beginRun({"step", step});
    for (const char *segment : {"forward", "update"}) {
      ranges->beginSegment(segment);
      ranges->next("first");
      ranges->next("second");
      ranges->next(nullptr);
      ranges->endSegment();
    }
    ranges->next("wait for the device");
    ranges->endRun();
  }
  return 0;
} catch (const base::Error &error) {
  std::puts(error.what());
  return error.status();
}
