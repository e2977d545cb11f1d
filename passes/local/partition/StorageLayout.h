//===- StorageLayout.h - storages of the parameters on a rank ---*- C++ -*-===//

#ifndef PASSES_LOCAL_PARTITION_STORAGELAYOUT_H
#define PASSES_LOCAL_PARTITION_STORAGELAYOUT_H

#include "dialect/fsdp/FSDPDialect.h"
#include "llvm/ADT/StringMap.h"
#include <deque>

namespace mlir::fsdp {

/// One storage: the parameters that are kept, gathered and reduced together.
struct Storage {
  struct Member {
    ParamOp param;
    /// First element in the unsplit storage.
    int64_t offset;
  };
  std::string unit;
  /// Equal for all members, except for their split in compute.
  PlacementAttr placement;
  /// The axes over which all members are split in compute.
  SmallVector<StringAttr> split;
  SmallVector<Member> members;
  /// The update rule; null where no step updates the members.
  OptimizerAttr optimizer;
  /// The tensor of one rank.
  RankedTensorType shard;
  /// The members as a rank computes with them, without padding: their sum of elements, or the one
  /// member's type.
  RankedTensorType whole;
  /// The op, once declared.
  StorageOp op;

  /// The tensor of one rank, and the members without padding, in the types of communication.
  RankedTensorType getGatheredShard() { return shard.clone(placement.getGather()); }
  RankedTensorType getGathered() { return whole.clone(placement.getGather()); }
  RankedTensorType getReducedShard() { return shard.clone(placement.getReduce()); }
  RankedTensorType getReduced() { return whole.clone(placement.getReduce()); }
  /// The type in which gradients of microbatches are added up.
  Type getAccumulated() const {
    Type sum = placement.getAccumulate();
    return sum ? sum : shard.getElementType();
  }
  /// True if a step creates the value that compute reads, by a cast or a gather.
  bool isMade() const {
    bool gathers = placement.getParameter().getKind() != StorageKind::replicated;
    return gathers || (!placement.hasCopy() && placement.getGather() != shard.getElementType());
  }

  ArrayRef<StringAttr> getAxes() const { return placement.getAxes(); }
};

/// The parameters that are gathered and reduced together: those of `units` consecutive units that
/// are alike, or each separately (0).
struct Buckets {
  int64_t units = 1;

  /// Parses `unit`, `units:K` with K of at least 2, or `parameter`.
  static std::optional<Buckets> parse(StringRef text);
};
/// The words that Buckets::parse accepts, for messages.
inline constexpr StringLiteral bucketsForm = "unit, parameter or units:K with K an integer from 2 "
                                             "to 1024";

/// The storages of a module: flat and replicated ones per unit (or per parameter) and set of axes
/// that split their members in compute, one for each parameter that is stored along a dimension.
/// Parameters that no step updates have separate storages.
class StorageLayout {
public:
  /// Reads placements and updates off `module`. Emits an error and fails for a placement that is
  /// missing or cannot be partitioned.
  static FailureOr<StorageLayout> create(ModuleOp module, Buckets buckets);

  /// Builds one `fsdp.storage` for each storage at `builder`.
  void declare(OpBuilder &builder, SymbolTable &symbols);

  /// The storage of the parameter called `param`, and which of its members it is.
  std::pair<Storage *, unsigned> lookup(StringAttr param) const { return places.lookup(param); }

private:
  explicit StorageLayout(Buckets buckets) : buckets(buckets) {}
  StringRef unitOf(ParamOp param) const;
  LogicalResult add(ParamOp param, OptimizerAttr optimizer, bool apart);
  void computeShards(MeshAttr mesh);

  Buckets buckets;
  llvm::StringMap<std::string> merged; ///< units that share storages, and the name of these
  // Storages keep their address.
  std::unique_ptr<std::deque<Storage>> storages = std::make_unique<std::deque<Storage>>();
  /// In the order of `storages`: true if no step updates it although steps update others.
  std::deque<bool> standApart;
  DenseMap<StringAttr, std::pair<Storage *, unsigned>> places;
};

} // namespace mlir::fsdp

#endif // PASSES_LOCAL_PARTITION_STORAGELAYOUT_H
