//===- Timeline.h - launches of a segment, ready to be simulated *- C++ -*-===//

#ifndef INTERPRETER_TIMELINE_H
#define INTERPRETER_TIMELINE_H

#include "dialect/fsdp/StepStateAccess.h"
#include "interpreter/Program.h"

namespace mlir::fsdp::interpreter {

/// Bytes [begin, end) of the arena, and the tensor that stands there.
struct BufferRange {
  int64_t begin = 0, end = 0;
  RankedTensorType type;
  BufferOp buffer;
  uint32_t number = 0; ///< of the buffer
  bool persistent = false;

  bool overlaps(const BufferRange &other) const { return begin < other.end && other.begin < end; }
};

/// Where every buffer and subview of a program lies. Buffers with offsets lie there; where memory
/// is not planned yet, every buffer gets bytes of its own.
class ArenaLayout {
public:
  /// Fails, emitting on the buffer, where only some buffers have offsets or one lies outside the
  /// arena.
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
  /// The buffer of the step state, if the body uses it, what it touches of it, and whether it
  /// writes the state.
  std::optional<BufferRange> stepState;
  StepStateAccess stateAccess;
  bool writesStepState = false;
  CompiledBlock body;
  Operation *collective = nullptr;
  bool leavesOutputs = false; ///< for which the host waits
};

/// A segment of a program in the scheduled phase.
struct Timeline {
  SegmentOp segment; ///< null where the program has none of the name
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
