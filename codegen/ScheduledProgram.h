//===- ScheduledProgram.h - the program that all emitters read --*- C++ -*-===//
// One pass over a scheduled module: waits, addresses, streams and communicators. The emitters of
// all targets and the record of launches read this.
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_SCHEDULEDPROGRAM_H
#define CODEGEN_SCHEDULEDPROGRAM_H

#include "codegen/CommunicatorKey.h"
#include "codegen/ModelNames.h"
#include "codegen/ProgramNames.h"
#include "codegen/RoleNumbers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <map>

namespace mlir::fsdp {

/// A launch and the events around it. An event is the completion of a launch that another
/// stream waits for; waits on the same stream are implied by order and left out.
struct Action {
  mutable LaunchOp launch;  // its accessors are not const
  SmallVector<int> waits;   ///< events, in order, each once
  SmallVector<int> records; ///< events recorded after the launch
};

/// A segment as its actions in issue order. Events of the program come first, then those of the
/// segment.
struct Timeline {
  mutable SegmentOp segment;
  SmallVector<Action> actions;
  SmallVector<StringAttr> outputs; ///< their names, in issue order
  SmallVector<int> slots;          ///< of the outputs, in the walks that the segment belongs to
  int events = 0;                  ///< one past the last that it uses
  SmallVector<LaunchOp> recorders; ///< of the segment's events, in order
  bool countsSamples = false;      ///< accepts batches with invalid samples
  /// The outputs that are checks, by their places in the model.
  std::map<int64_t, StringAttr> checks;
};

/// The segments that the driver runs for one step.
struct ProgramWalk {
  StringAttr name;
  StepKind kind;
  SmallVector<std::pair<int, int64_t>> runs; ///< numbers of timelines, and how often each runs
  SmallVector<StringAttr> outputs;           ///< by slot
  bool countsSamples = false;
  SmallVector<int> checks; ///< slots, in the order of the model
};

/// A range of the arena.
struct ArenaSpan {
  int64_t offset = 0; ///< bytes
  int64_t bytes = 0;
  RankedTensorType type;
};

/// An input of the data set: the same tensor of samples for all segments that load it.
struct InputEntry {
  mutable InputOp op;  ///< the first that names it, in any program of the module
  mutable InputOp own; ///< the first in this program; null if other roles load it
  int64_t limit = 0;   ///< labels are in [0, limit); 0: any value
  llvm::SmallSetVector<int64_t, 4> roles = {}; ///< numbers of those that load it
};

struct ScheduledProgram {
  explicit ScheduledProgram(ModuleOp module)
      : module(module), symbols(module), mesh(getMesh(module)) {}

  /// Reads `module`. Fails with a diagnostic when the module is not in the scheduled phase, has no
  /// offsets yet, or contains unexpected ops. `first`: another program of the module, whose numbers
  /// of streams, communicators and inputs are taken over; null: none is read yet.
  static FailureOr<ScheduledProgram> create(ModuleOp module, ProgramOp program,
                                            const ScheduledProgram *first = nullptr);
  /// The program of a module that has one; fails with a diagnostic if it has several.
  static FailureOr<ScheduledProgram> create(ModuleOp module);

  // The accessors of ops are not const.
  mutable ModuleOp module;
  SymbolTable symbols; ///< of the module
  mutable ProgramOp program;
  MeshAttr mesh;
  RoleNumbers roles;
  mutable BufferOp stepState;
  SmallVector<StorageOp> storages;
  SmallVector<EventOp> programEvents; ///< by number; those of segments follow
  std::vector<Timeline> timelines;
  std::vector<ProgramWalk> walks;
  /// Numbered in order of first use in the programs of the module, which all have the same: ranks
  /// of different roles meet in a communicator by its number, on a stream by its number.
  llvm::MapVector<StringAttr, int> streams;
  llvm::MapVector<CommunicatorKey, int, std::map<CommunicatorKey, unsigned>> communicators;
  llvm::MapVector<StringAttr, InputEntry> inputs;
  ModelNames modelNames;
  ProgramNames names;

  /// The number of events of the program, those of segments included.
  int events() const;
  /// The address of `value` (a buffer or a subview of one).
  static ArenaSpan spanOf(Value value);
  /// The alignment of that address in bytes, up to 256: the arena is aligned to 256.
  static int64_t alignmentOf(Value value);
  /// The persistent buffer that holds the tensor `what` of `storage`.
  BufferOp shardOf(StorageOp storage, StringRef what) const {
    return shards.lookup({storage.getSymNameAttr(), what});
  }
  /// "fsdp_gather", unique among communicators
  std::string communicatorName(const CommunicatorKey &key) const;
  /// A communicator over the axes of `storage`, whichever stream it serves.
  int communicatorOver(ArrayAttr axes) const;

private:
  /// The persistent buffers of storages, by the names of the storage and of the tensor that they
  /// hold.
  llvm::DenseMap<std::pair<StringAttr, StringRef>, BufferOp> shards;
};

/// The only op of the body of `launch` besides constants and the yield; null if there are several
/// or none.
Operation *onlyOp(LaunchOp launch);
/// The buffer that contains `part`.
BufferOp bufferOf(Value part);

} // namespace mlir::fsdp

#endif // CODEGEN_SCHEDULEDPROGRAM_H
