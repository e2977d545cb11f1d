//===- MeshAxes.h - roles of mesh axes --------------------------*- C++ -*-===//
// Some axes have their role by name (dialect/fsdp/AxisRoles.h). That of another axis is its use: in
// the user's list of batch axes, in a constraint, in the split or the storage of a parameter. Parts
// of an axis have its role.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_SHARDING_MESHAXES_H
#define PASSES_SHARDING_MESHAXES_H

#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace mlir::fsdp {

/// The axes of `mesh` over which samples are split, in its order: those that do so by their role,
/// and those of `others`.
SmallVector<StringAttr> getBatchAxes(MeshAttr mesh, ArrayRef<std::string> others);

/// The axes of `mesh` over which strategies store parameters, in its order; those of size 1 only
/// where there is no other. None where it has none.
SmallVector<StringAttr> getStorageAxes(MeshAttr mesh);

/// An axis of the module's mesh that nothing uses; null where there is none. `stored`: axes that
/// later placements will use. An axis of roles is used: the stages of the model are divided over
/// it. One of size 1 that splits compute by its role needs no use: it splits nothing.
StringAttr findUnusedAxis(ModuleOp module, ArrayRef<std::string> batchAxes,
                          ArrayRef<std::string> stored = {});

/// The axis of the module's mesh whose ranks compute different stages of the model: one of roles,
/// of more than one rank, that no manual region uses, in which the model may have a pipeline of its
/// own. Null without.
StringAttr findPipelineAxis(ModuleOp module);
/// Fails where a constraint, a split or a placement names that axis.
LogicalResult verifyPipelineAxis(ModuleOp module, StringAttr axis);

/// On a module whose ops have stages: their number, from `fsdp-assign-stages` to
/// `fsdp-split-stages`. Some may be empty: ops that later passes have removed.
constexpr llvm::StringLiteral kStagesAttrName = "fsdp.stages";

/// The axis over which the microbatches of a step follow one another in time, from `fsdp-propagate`
/// to `fsdp-partition`: no rank has a coordinate on it.
constexpr llvm::StringLiteral kMicrobatchAxis = "microbatch";

/// Marks a constraint that splits an operand of attention by positions, which attention takes by
/// heads: the move between is expected.
constexpr llvm::StringLiteral kTakenByHeadsAttrName = "fsdp.taken_by_heads";

/// On a module whose sequences are split: how attention gets all positions ("all-to-all", "gather",
/// "ring"; where attentions differ, several with "+" between them).
constexpr llvm::StringLiteral kContextAttentionAttrName = "fsdp.context_attention";
/// On the same module: the order in which positions are split, "zigzag" or "contiguous".
constexpr llvm::StringLiteral kContextOrderAttrName = "fsdp.context_order";

/// `mesh` with this axis, innermost; fails if it already has an axis of that name, or has too many
/// parts.
FailureOr<MeshAttr> withMicrobatches(MeshAttr mesh, int64_t microbatches);
/// `mesh` without it.
MeshAttr withoutMicrobatches(MeshAttr mesh);

} // namespace mlir::fsdp

#endif // PASSES_SHARDING_MESHAXES_H
