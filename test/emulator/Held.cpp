//===- Held.cpp - what the program has made and not freed -------------------------===//

#include "Held.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace emulator {

std::atomic<int> eventsHeld{0}, productHandlesHeld{0}, graphsHeld{0};

namespace {
/// Such as "communicators 2, events 1", or "".
std::string describeHeld() {
  std::string text;
  for (const auto &[count, what] :
       {std::pair(communicatorsHeld(), "communicators"),
        {allocationsHeld(MemoryKind::Device), "allocations of device memory"},
        {allocationsHeld(MemoryKind::Pinned), "allocations of pinned memory"},
        {streamsHeld(), "streams"},
        {eventsHeld.load(), "events"},
        {graphsHeld.load(), "graphs"},
        {productHandlesHeld.load(), "handles of cuBLASLt"}})
    if (count)
      text += (text.empty() ? "" : ", ") + std::string(what) + " " + std::to_string(count);
  return text;
}
} // namespace

void failAtExitWhereAnyIsHeld() {
  std::atexit([] {
    const std::string text = describeHeld();
    if (text.empty())
      return;
    std::fflush(nullptr);
    std::fprintf(stderr, "cuda emulator: not freed at the end of the process: %s\n", text.c_str());
    std::_Exit(1);
  });
}

} // namespace emulator
