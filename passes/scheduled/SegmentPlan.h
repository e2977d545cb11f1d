//===- SegmentPlan.h - the launches and buffers of a segment ----*- C++ -*-===//
//
// The first half of fsdp-schedule: from local IR to launches in the order of the computation. The
// second half (Schedule.cpp) orders them, adds waits and writes them.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_SCHEDULED_SEGMENTPLAN_H
#define PASSES_SCHEDULED_SEGMENTPLAN_H

#include "dialect/fsdp/StepStateAccess.h"
#include "dialect/fsdp/Structure.h"
#include "passes/LaunchNames.h"
#include "passes/schedule/Problem.h"
#include "llvm/ADT/DenseMap.h"
#include <tuple>

namespace mlir::fsdp {

/// The streams of a program.
namespace streams {
constexpr llvm::StringLiteral compute = "compute", gather = "gather", reduce = "reduce",
                              input = "input", update = "update", activation = "activation";
/// Values that go to a later rank of the group (up) or to an earlier one (down). A value that is
/// received ahead of time delays neither sends nor values of the other direction.
constexpr llvm::StringLiteral sendUp = "send_up", sendDown = "send_down", receiveUp = "receive_up",
                              receiveDown = "receive_down";
constexpr llvm::StringLiteral all[] = {compute,    gather, reduce,   input,     update,
                                       activation, sendUp, sendDown, receiveUp, receiveDown};
} // namespace streams

/// The rearrangements that change only the shape and keep the order of elements: they move nothing,
/// and their results are views of their operands. Equal ones, as layers have, are looked at once.
class Reshapes {
public:
  bool contains(nn::RearrangeOp op);

private:
  /// By pattern, sizes and types.
  DenseMap<std::tuple<Attribute, Attribute, Type, Type>, bool> known;
};

/// The location of a tensor: the elements from `offset` of a buffer.
struct BufferView {
  int buffer = -1;    ///< index in the plan
  int64_t offset = 0; ///< elements
  RankedTensorType type;

  bool operator==(const BufferView &other) const {
    return buffer == other.buffer && offset == other.offset && type == other.type;
  }
};

struct PlannedBuffer {
  std::string name;
  RankedTensorType type;
  Location location;
  /// The attribute `holds` of `fsdp.buffer`: a storage and one of its tensors. Empty for others.
  std::string storage, what;
  bool zeroed = false; ///< holds zeros before the first segment
  /// The input whose next batch is staged here; null for others.
  StringAttr staged = {};
};

struct PlannedLaunch {
  std::string name;
  StringRef stream;
  Location location;
  Structure structure;
  SmallVector<Operation *> body; ///< constants, which are to be cloned, then at most one other op
                                 ///< before groups are formed
  SmallVector<Value> values;     ///< the inputs of the body, one for each of `ins`
  SmallVector<Value> results;    ///< its results, one for each of `outs`
  SmallVector<BufferView> ins, outs;
  StepStateAccess state; ///< the accesses of the body to the step state's buffer
};

/// The inputs of which a segment still uses one batch while the next one is loaded, as a walk loads
/// them several times: segment and name.
using StagedInputs = DenseSet<std::pair<Operation *, StringAttr>>;
/// Those of a program of which no segment is scheduled yet.
StagedInputs findStagedInputs(ProgramOp program);

/// The persistent buffers of a program: the step state first, then every storage of the module,
/// carried tensors, and a buffer for the next batch of each of the `staged` inputs.
std::vector<PlannedBuffer> planPersistent(ProgramOp program, const StagedInputs &staged);
/// The index in `buffers` of the one in which `input` is staged, or -1.
int findStaged(ArrayRef<PlannedBuffer> buffers, InputOp input);

struct SegmentPlan {
  std::vector<PlannedBuffer> buffers; ///< the persistent ones of the program first
  std::vector<PlannedLaunch> launches;
  UniqueNames launchNames; ///< those of the launches
};

/// Plans one segment; fails with a diagnostic if a storage is unknown or not updated in place.
/// `symbols` are those of the module.
FailureOr<SegmentPlan> planSegment(SegmentOp segment, ArrayRef<PlannedBuffer> persistent,
                                   const StagedInputs &staged, const SymbolTable &symbols);

} // namespace mlir::fsdp

#endif // PASSES_SCHEDULED_SEGMENTPLAN_H
