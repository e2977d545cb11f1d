//===- ThreadOfBlock.h - where a thread of the running block stands ---------------===//
#ifndef FSDP_EMULATOR_THREADOFBLOCK_H
#define FSDP_EMULATOR_THREADOFBLOCK_H

#include "Device.h"
#include "Fiber.h"

#include <cstring>

namespace emulator {

inline bool same(const Site &a, const Site &b) {
  auto equal = [](const char *x, const char *y) { return x == y || !std::strcmp(x, y); };
  return a.line == b.line && equal(a.what, b.what) && equal(a.file, b.file);
}

enum class State : std::uint8_t { New, Running, AtBlock, AtWarp, Done };

/// One thread of the block.
struct Thread {
  State state = State::New;
  Site site{};
  unsigned mask = 0; ///< lanes that its warp function waits for
  void *brought = nullptr;
  bool predicate = false;
  Fiber *fiber = nullptr; ///< while it waits
};

} // namespace emulator

#endif // FSDP_EMULATOR_THREADOFBLOCK_H
