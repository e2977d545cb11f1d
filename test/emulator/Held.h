//===- Held.h - what the program has made and not freed ---------------------------===//
#ifndef FSDP_EMULATOR_HELD_H
#define FSDP_EMULATOR_HELD_H

#include "Memory.h"

#include <atomic>

namespace emulator {

/// Communicators that were neither destroyed nor aborted.
int communicatorsHeld();
int allocationsHeld(MemoryKind kind);
/// Without default streams.
int streamsHeld();
extern std::atomic<int> eventsHeld, productHandlesHeld;

/// When the process ends normally, no resource may be held: otherwise it prints them and ends with
/// status 1.
void failAtExitWhereAnyIsHeld();

} // namespace emulator

#endif // FSDP_EMULATOR_HELD_H
