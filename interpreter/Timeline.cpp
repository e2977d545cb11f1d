//===- Timeline.cpp - launches of a segment, ready to be simulated --------===//

#include "interpreter/Timeline.h"

#include "interpreter/Arena.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

FailureOr<ArenaLayout> ArenaLayout::compute(ProgramOp program) {
  ArenaLayout layout;
  SmallVector<BufferOp> buffers;
  program.walk([&](BufferOp buffer) { buffers.push_back(buffer); });
  bool planned =
      llvm::any_of(buffers, [](BufferOp buffer) { return buffer.getOffset().has_value(); });
  for (BufferOp buffer : buffers) {
    int64_t bytes = buffer.getResult().getType().getSizeInBytes();
    int64_t begin = layout.size;
    if (planned) {
      if (!buffer.getOffset())
        return buffer.emitOpError() << "'" << buffer.getName()
                                    << "' has no offset, but other buffers have one; plan the "
                                       "memory of the whole program";
      begin = *buffer.getOffset();
      if (program.getArena() && begin + bytes > static_cast<int64_t>(*program.getArena()))
        return buffer.emitOpError()
               << "'" << buffer.getName() << "' ends at byte " << begin + bytes
               << ", expected at most " << *program.getArena() << ", the size of the arena";
    }
    BufferRange place{begin,
                      begin + bytes,
                      buffer.getResult().getType().getTensor(),
                      buffer,
                      static_cast<uint32_t>(layout.places.size()),
                      buffer.getPersistent()};
    layout.size = std::max(layout.size, static_cast<int64_t>(llvm::alignTo(place.end, 64)));
    layout.places[buffer.getResult()] = place;
    if (buffer.getPersistent())
      layout.persistent.push_back(place);
  }
  for (EventOp event : program.getOps<EventOp>())
    layout.events[event.getTimepoint()] = layout.events.size();
  program.walk([&](SubviewOp subview) {
    BufferRange place = layout.lookup(subview.getBuffer());
    place.type = subview.getResult().getType().getTensor();
    int64_t bytes = Arena::elementBytes(place.type);
    place.begin += subview.getOffset() * bytes;
    place.end = place.begin + place.type.getNumElements() * bytes;
    layout.places[subview.getResult()] = place;
  });
  return layout;
}

FailureOr<Timeline> Timeline::compile(SegmentOp segment, const ArenaLayout &layout,
                                      Numerics numerics, SmallVectorImpl<std::string> &streams) {
  Timeline timeline;
  timeline.segment = segment;
  timeline.joined = !segment.getAsync();
  DenseMap<Value, unsigned> numbers;
  for (LaunchOp op : segment.getBody().front().getOps<LaunchOp>()) {
    CompiledLaunch launch;
    launch.op = op;
    launch.stream = llvm::find(streams, op.getStream()) - streams.begin();
    if (launch.stream == streams.size())
      streams.push_back(op.getStream().str());
    for (Value wait : op.getWait()) // of this segment: programs hold no launches outside segments
      if (wait.getDefiningOp<EventOp>())
        launch.awaits.push_back(layout.lookupEvent(wait));
      else
        launch.waits.push_back(numbers.at(wait));
    for (Value event : op.getRecords())
      launch.records.push_back(layout.lookupEvent(event));
    for (Value in : op.getIns())
      launch.ins.push_back(layout.lookup(in));
    for (Value out : op.getOuts())
      launch.outs.push_back(layout.lookup(out));
    if (Value stepState = op.getStepState())
      launch.stepState = layout.lookup(stepState);
    launch.stateAccess = getStepStateAccess(op);
    Block &body = op.getBody().front();
    FailureOr<CompiledBlock> block = CompiledBlock::compile(body, numerics);
    if (failed(block))
      return failure();
    launch.body = std::move(*block);
    for (Operation &inner : body) {
      if (involvesPeers(&inner))
        launch.collectives.push_back(&inner);
      launch.leavesOutputs |= isa<OutputOp, OutputSumOp>(inner);
      timeline.loadsInputs |= isa<InputOp>(inner);
      if (!launch.stepState && !getStepStateAccess({&inner}).isNone())
        return op.emitOpError() << "'" << op.getFullName() << "' uses the step state but does not "
                                << "name its buffer in 'step_state'";
    }
    numbers[op.getDone()] = timeline.launches.size();
    timeline.launches.push_back(std::move(launch));
  }
  return timeline;
}
