//===- FSDPDialect.h - meshes, shardings, collectives, timeline -*- C++ -*-===//

#ifndef DIALECT_FSDP_FSDPDIALECT_H
#define DIALECT_FSDP_FSDPDIALECT_H

#include "base/ParameterGroups.h"
#include "dialect/nn/NNDialect.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/fsdp/FSDPEnums.h.inc"

namespace mlir::fsdp {

/// The phase of `module` (attribute `fsdp.phase`), global when absent.
Phase getPhase(ModuleOp module);
void setPhase(ModuleOp module, Phase phase);

/// Maximum number of runs of a segment in a walk, and of microbatches of a step.
constexpr int64_t kMaxMicrobatches = 1 << 20;
/// The last priority of a constraint's dimension.
constexpr int64_t kLastPriority = 1000;

/// Fails, emitting on the first such op, unless every op of `module` belongs to `phase`.
LogicalResult verifyPhase(ModuleOp module, Phase phase);

namespace detail {
/// Fails unless `op`, which has a phase, is in a container of that phase: global ops in steps,
/// local ops in segments, ops of launches in launches. Containers of other dialects are not
/// checked.
LogicalResult verifyContainer(Operation *op);
} // namespace detail

template <typename ConcreteType>
struct InGlobalPhase : OpTrait::TraitBase<ConcreteType, InGlobalPhase> {
  static LogicalResult verifyTrait(Operation *op) { return detail::verifyContainer(op); }
};
template <typename ConcreteType>
struct InLocalPhase : OpTrait::TraitBase<ConcreteType, InLocalPhase> {
  static LogicalResult verifyTrait(Operation *op) { return detail::verifyContainer(op); }
};
template <typename ConcreteType>
struct InScheduledPhase : OpTrait::TraitBase<ConcreteType, InScheduledPhase> {
  static LogicalResult verifyTrait(Operation *op) { return detail::verifyContainer(op); }
};

/// Accessed by `fsdp.read`, `load`, `store` and `update`.
struct ParameterResource : SideEffects::Resource::Base<ParameterResource> {
  StringRef getName() final { return "parameters"; }
};
/// Step counter, rate, update count; see `fsdp.advance`.
struct StepStateResource : SideEffects::Resource::Base<StepStateResource> {
  StringRef getName() final { return "step state"; }
};
/// The parameters with gradients that are not finite, noted by skipped updates; see
/// `fsdp.optimizer_step`.
struct BadGradientResource : SideEffects::Resource::Base<BadGradientResource> {
  StringRef getName() final { return "bad gradients"; }
};
/// Values that the host reads after a step.
struct OutputResource : SideEffects::Resource::Base<OutputResource> {
  StringRef getName() final { return "outputs"; }
};
/// Values in transfer between ranks; see `fsdp.send`.
struct TransferResource : SideEffects::Resource::Base<TransferResource> {
  StringRef getName() final { return "transfers"; }
};

struct UpdateRule;
class StorageOp;

/// The names in a string-array attribute.
SmallVector<StringAttr> getAxisNames(ArrayAttr axes);

namespace detail {
/// The rules that all collectives share (CollectiveOpInterface).
LogicalResult verifyCollective(Operation *op);
/// Fails, emitting on `op`, unless `from` has a source for each of `ranks` ranks: -1, or a rank
/// that no other receives from; `advice` ends the message about two that do.
LogicalResult verifySources(Operation *op, ArrayRef<int64_t> from, int64_t ranks,
                            StringRef advice = "");
/// Default implementations of CollectiveOpInterface.
int64_t getGroupSize(Operation *op);
int64_t getCollectiveBytes(Operation *op);
std::string getCollectiveArguments(Operation *op);
/// Fails unless `axes` are distinct axes of the mesh; `verb` begins the message, as "runs over"
/// does.
LogicalResult verifyAxes(Operation *op, ArrayRef<StringAttr> axes, StringRef verb);
/// Fails unless `microbatch`, if there is one, is the number of one of `microbatches`.
LogicalResult verifyMicrobatch(Operation *op, std::optional<uint64_t> microbatches,
                               std::optional<uint64_t> microbatch);
/// The storage that `symbol` names; fails, emitting on `op`, where there is none.
FailureOr<StorageOp> findStorage(SymbolTableCollection &symbols, Operation *op,
                                 FlatSymbolRefAttr symbol);
/// Fails unless `symbol` names a storage that has a tensor `what` ("parameter", "copy" or a state)
/// of type `type`.
LogicalResult verifyStorage(SymbolTableCollection &symbols, Operation *op, FlatSymbolRefAttr symbol,
                            StringRef what, Type type);
} // namespace detail

} // namespace mlir::fsdp

#include "dialect/fsdp/FSDPDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/fsdp/FSDPAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/fsdp/CollectiveOpInterface.h.inc"
#include "dialect/fsdp/FSDPTypes.h.inc"
#define GET_OP_CLASSES
#include "dialect/fsdp/FSDPOps.h.inc"

namespace mlir::fsdp {

/// The mesh of the module that holds `op`, or null where there is none.
MeshOp getMeshOp(Operation *op);
/// The mesh of the module that holds `op`; one rank without axes where there is none.
MeshAttr getMesh(Operation *op);

/// The tensor of the runtime's step state, followed by the notes of updates.
RankedTensorType getStepStateType(MLIRContext *context);

/// The string-array attribute of `axes`.
ArrayAttr getAxisArray(MLIRContext *context, ArrayRef<StringAttr> axes);

/// Whether `op` is a collective that moves data between ranks.
bool involvesPeers(Operation *op);
/// The index in its group of the peer of the rank at `index` in `transfer` (an op with
/// `getPeerOffset`); none if the group has no such rank.
std::optional<int64_t> getPeer(Operation *transfer, int64_t index);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_FSDPDIALECT_H
