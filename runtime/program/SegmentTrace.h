//===- SegmentTrace.h - what a trace shows of a segment's plan --*- C++ -*-===//
//
// Constant tables that nothing reads unless a run is traced. Launches are numbered in issue order
// from 0.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_PROGRAM_SEGMENTTRACE_H
#define FSDP_RUNTIME_PROGRAM_SEGMENTTRACE_H

#include "runtime/program/Table.h"

#include <cstdint>

namespace fsdp::rt {

/// A range of the arena that holds something from the start of launch `first` to the end of launch
/// `last`.
struct BufferLife {
  std::int64_t bytes;
  int first, last;
};

/// An all-gather, and the first launch that uses what it leaves.
struct GatherUse {
  int gather, use;
};

struct SegmentTrace {
  Table<std::uint8_t> streams = {}; ///< of each launch
  Table<BufferLife> lives = {};
  Table<GatherUse> uses = {};
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_SEGMENTTRACE_H
