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
/// `graphsHeld`: graphs and executable graphs.
extern std::atomic<int> eventsHeld, productHandlesHeld, graphsHeld;

/// When the process ends normally, no resource may be held: otherwise it prints them and ends with
/// status 1.
void failAtExitWhereAnyIsHeld();

/// When the process ends normally, it says how many executable graphs were made and launched.
void countGraphsAtExit();

} // namespace emulator

#endif // FSDP_EMULATOR_HELD_H
