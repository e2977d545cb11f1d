//===- ShardedMachine.h - base of machines with ranks -----------*- C++ -*-===//

#ifndef INTERPRETER_SHARDEDMACHINE_H
#define INTERPRETER_SHARDEDMACHINE_H

#include "interpreter/Machine.h"
#include "interpreter/Program.h"
#include "interpreter/Storage.h"

namespace mlir::fsdp::interpreter {

/// A machine of N ranks, each with its program and its shards.
class ShardedMachine : public Machine {
public:
  ShardedMachine(ModuleOp module, const MachineOptions &options);

  FailureOr<Outputs> run(StringRef walk, const DataSet &data) override;
  LogicalResult finish() override;
  FailureOr<Tensor> get(StringRef parameter, StringRef what) override;
  LogicalResult set(StringRef parameter, StringRef what, const Tensor &value) override;

protected:
  void clear() override;
  /// Finds the programs and their ranks, the segments, the walks, the storages and their states.
  LogicalResult collectPrograms();
  /// Runs a walk of every rank's program until its outputs are available; `runs` are the numbers of
  /// its segments, by program.
  virtual LogicalResult runRanks(ArrayRef<SmallVector<size_t>> runs) = 0;
  /// Completes all work in flight.
  virtual LogicalResult drain() { return success(); }
  /// Gives all ranks the batch of the walk `name`, and returns the numbers of its segments, by
  /// program. First completes the work that the driver completes before such a walk.
  FailureOr<ArrayRef<SmallVector<size_t>>> enter(StringRef name, const DataSet &data);
  /// The outputs of all ranks together. Fails if ranks log different ones.
  FailureOr<Outputs> joinOutputs();
  /// The tensor of `rank` of a storage; null before it is first set.
  virtual const Tensor &shard(int64_t rank, StringRef storage, StringRef what) = 0;
  virtual void setShard(int64_t rank, StringRef storage, StringRef what, const Tensor &value) = 0;

  /// The group of `rank` at the collective `op`.
  ArrayRef<int64_t> groupOf(Operation *op, int64_t rank) { return meetingOf(op).groups[rank]; }
  /// True if these two can be one collective of a group: they run over the same axes, and neither
  /// is a transfer.
  bool mayMeet(Operation *op, Operation *other);
  bool isTransfer(Operation *op) { return meetingOf(op).offset != 0; }
  /// The rank that `rank` sends to, or receives from, in the transfer `op`; none if there is no
  /// such rank.
  std::optional<int64_t> peerOf(Operation *op, int64_t rank) { return meetingOf(op).peers[rank]; }
  /// True if the collective `other` is the other end of the transfer `op` where its rank is the
  /// peer.
  bool isCounterpart(Operation *op, Operation *other);
  /// Fails, naming both ops, unless `receive` on `receiver` has the type of `send` on `sender`.
  LogicalResult checkTransfer(int64_t sender, Operation *send, int64_t receiver,
                              Operation *receive);
  /// The ranks that `rank` waits for in `op`: "ranks [0, 1]", "rank 1, which must receive it".
  std::string describeWait(Operation *op, int64_t rank);

  /// Fails, naming all ops, unless two ranks issue the same collective, or the same group.
  LogicalResult checkSame(int64_t rank, ArrayRef<Operation *> ops, int64_t otherRank,
                          ArrayRef<Operation *> others);

  MeshAttr mesh;
  SmallVector<ProgramOp> programs;
  SmallVector<std::string> segments; ///< the names of the segments of all programs
  /// The number of the program of each rank.
  SmallVector<size_t> programOf;
  std::vector<RankContext> ranks;
  std::vector<StorageLayout> storages;

private:
  /// The walk of one name.
  struct WalkRuns {
    bool evaluates = false, drains = false;
    std::vector<int64_t> advances;              ///< number of steps that each program finishes
    std::vector<SmallVector<size_t>> ofProgram; ///< numbers of segments, each as often as it runs
  };
  WalkRuns &addWalk(StringRef name);
  void addSegment(WalkRuns &walk, size_t program, SegmentOp segment, int64_t times);
  /// Whether `rank` keeps `storage`.
  bool owns(size_t rank, const StorageLayout &storage);
  /// The storage of a parameter and the parameter's place in it.
  FailureOr<std::pair<const StorageLayout *, const StorageLayout::Member *>>
  find(StringRef parameter);
  /// Performs the updates that the last step deferred to the next one, as the driver does before
  /// parameters are read.
  LogicalResult performDeferred();

  /// A collective as its ranks see it, read once from the IR.
  struct Meeting {
    ArrayAttr axes;
    int64_t offset = 0; ///< of the peer; 0 if it is no transfer
    bool inRing = false, sends = false;
    std::vector<SmallVector<int64_t>> groups; ///< by rank
    /// The ranks at the other end of a transfer, by rank.
    std::vector<std::optional<int64_t>> peers;
    std::string signature;
  };
  const Meeting &meetingOf(Operation *op);

  std::vector<WalkRuns> walkRuns; ///< as `walks`
  bool evaluating = false;        ///< the last walk evaluated
  bool deferred = false;          ///< the last step may have deferred updates
  int64_t issuedSteps = 0;
  DenseMap<Operation *, std::unique_ptr<Meeting>> meetings; ///< by collective
};

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_SHARDEDMACHINE_H
