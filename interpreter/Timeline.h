//===- Timeline.h - launches of a segment for simulation --------*- C++ -*-===//

#ifndef INTERPRETER_TIMELINE_H
#define INTERPRETER_TIMELINE_H

#include "dialect/fsdp/StepStateAccess.h"
#include "interpreter/Program.h"

namespace mlir::fsdp::interpreter {

/// Bytes [begin, end) of the arena, and the tensor in them.
struct BufferRange {
  int64_t begin = 0, end = 0;
  RankedTensorType type;
  BufferOp buffer;
  uint32_t number = 0; ///< of the buffer
  bool persistent = false;

  bool overlaps(const BufferRange &other) const { return begin < other.end && other.begin < end; }
};

/// The addresses of all buffers and subviews of a program: their offsets, or separate bytes for
/// every buffer if memory is not planned yet.
class ArenaLayout {
public:
  /// Fails, emitting on the buffer, if only some buffers have offsets or one is outside the arena.
  static FailureOr<ArenaLayout> compute(ProgramOp program);

  const BufferRange &lookup(Value value) const { return places.find(value)->second; }
  int64_t getSize() const { return size; }
  /// The persistent buffers, in order.
  ArrayRef<BufferRange> getPersistent() const { return persistent; }
  /// The number of an event of the program, from 0.
  unsigned lookupEvent(Value event) const { return events.find(event)->second; }
  size_t getNumEvents() const { return events.size(); }

private:
  DenseMap<Value, BufferRange> places;
  SmallVector<BufferRange> persistent;
  DenseMap<Value, unsigned> events;
  int64_t size = 0;
};

/// A launch whose operands are numbers and bytes.
struct CompiledLaunch {
  LaunchOp op;
  unsigned stream;
  SmallVector<unsigned> waits;           ///< numbers of launches of the same segment
  SmallVector<unsigned> awaits, records; ///< numbers of events
  SmallVector<BufferRange> ins, outs;
  /// The buffer of the step state, if the body uses it, and the accesses to it.
  std::optional<BufferRange> stepState;
  StepStateAccess stateAccess;
  CompiledBlock body;
  SmallVector<Operation *> collectives; ///< of a group, several
  bool leavesOutputs = false;           ///< for which the host waits
};

/// A segment of a program in the scheduled phase.
struct Timeline {
  SegmentOp segment; ///< null if the program has none of the name
  std::vector<CompiledLaunch> launches;
  bool loadsInputs = false;
  /// All of its launches end before the next segment is issued.
  bool joined = true;

  /// Streams are numbered by their place in `streams`, to which new names are added.
  static FailureOr<Timeline> compile(SegmentOp segment, const ArenaLayout &layout,
                                     Numerics numerics, SmallVectorImpl<std::string> &streams);
};

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_TIMELINE_H
