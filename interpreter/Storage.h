//===- Storage.h - whole tensors and the shards of ranks --------*- C++ -*-===//

#ifndef INTERPRETER_STORAGE_H
#define INTERPRETER_STORAGE_H

#include "dialect/fsdp/FSDPDialect.h"
#include "interpreter/Optimizer.h"
#include "interpreter/Tensor.h"

namespace mlir::fsdp::interpreter {

/// The partition of a storage: the element and member of each place in the shard of a rank.
class StorageLayout {
public:
  explicit StorageLayout(StorageOp storage);

  struct Member {
    ParamOp param;
    int64_t offset;
  };
  ArrayRef<Member> getMembers() const { return members; }
  RankedTensorType getShardType() const { return shardType; }
  StorageOp getOp() const { return storage; }
  /// The axes that split the storage, major first.
  ArrayRef<StringAttr> getAxes() const { return axes; }

  using Visit = llvm::function_ref<void(int64_t, int64_t)>;
  using VisitPadding = llvm::function_ref<void(int64_t)>;
  /// Calls `fn(element of the rank's tensor, element of the member)` for each element of `member`
  /// that `rank` of `mesh` holds, and `padding(element of the rank's tensor)` for its part of the
  /// padding in the member. The tensor is the rank's shard or, if `what` is StorageOp::copy, the
  /// copy of everything that the rank computes with.
  void forEach(const Member &member, MeshAttr mesh, int64_t rank, StringRef what, Visit fn,
               VisitPadding padding = nullptr) const;

  /// For each element of the shard of `rank`, how it is updated; padding does not decay.
  std::vector<UpdateSetting> updateSettings(const base::ParameterGroups &groups, MeshAttr mesh,
                                            int64_t rank) const;

private:
  StorageOp storage;
  RankedTensorType shardType;
  SmallVector<StringAttr> axes;
  SmallVector<Member> members;
};

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_STORAGE_H
