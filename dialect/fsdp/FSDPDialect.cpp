//===- FSDPDialect.cpp - registration and phases --------------------------===//

#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/fsdp/Adapters.h"
#include "dialect/fsdp/CheckpointFiles.h"
#include "dialect/fsdp/DiscardableAttributes.h"
#include "dialect/fsdp/ModelConfig.h"
#include "dialect/fsdp/ModelDigest.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FoldInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

#include "dialect/fsdp/FSDPDialect.cpp.inc"
#include "dialect/fsdp/FSDPEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/fsdp/FSDPTypes.cpp.inc"

namespace {
/// Keeps constants inside the step, segment or launch that uses them.
struct KeepConstants : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(Region *region) const final {
    return isa<StepOp, SegmentOp, LaunchOp>(region->getParentOp());
  }
};

/// Every communicator of the runtime reduces in place.
struct ReducesInPlace : nn::KernelOpInterface::ExternalModel<ReducesInPlace, AllReduceOp> {
  nn::InPlacePairs getInPlacePairs(Operation *) const { return {{0, 0}}; }
};
} // namespace

void FSDPDialect::initialize() {
  addInterfaces<KeepConstants>();
  registerAttributes();
  registerTypes();
  registerFSDPDialectOperations(this);
  AllReduceOp::attachInterface<ReducesInPlace>(*getContext());
}

LogicalResult FSDPDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (llvm::is_contained({structureAttrName, gathersAttrName, reducesAttrName},
                         attribute.getName().getValue()))
    return fsdp::detail::verifyStructure(op, attribute);
  if (attribute.getName() == checkpointFilesAttrName)
    return fsdp::detail::verifyCheckpointFiles(op, attribute.getValue());
  if (attribute.getName() == adaptersAttrName)
    return fsdp::detail::verifyAdapters(op, attribute.getValue());
  if (attribute.getName() == modelConfigAttrName)
    return fsdp::detail::verifyModelConfig(op, attribute.getValue());
  if (attribute.getName() == modelDigestAttrName)
    return fsdp::detail::verifyModelDigest(op, attribute.getValue());
  if (attribute.getName() != phaseAttrName)
    return success();
  auto name = dyn_cast<StringAttr>(attribute.getValue());
  if (!isa<ModuleOp>(op) || !name || !symbolizePhase(name.getValue()))
    return op->emitOpError() << "has '" << phaseAttrName << "' " << attribute.getValue()
                             << ", expected \"global\", \"local\" or \"scheduled\" on a module";
  return success();
}

void FSDPDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/fsdp/FSDPTypes.cpp.inc"
      >();
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 RankedTensorType tensor) {
  if (nn::isSized(tensor))
    return success();
  return emitError() << "buffer holds " << tensor
                     << ", expected a statically shaped tensor of numbers of at most 2^48 bytes";
}

int64_t BufferType::getSizeInBytes() const { return nn::bytesOf(getTensor()); }

Phase mlir::fsdp::getPhase(ModuleOp module) {
  auto name = module->getAttrOfType<StringAttr>(FSDPDialect::phaseAttrName);
  return name ? symbolizePhase(name.getValue()).value_or(Phase::global) : Phase::global;
}

void mlir::fsdp::setPhase(ModuleOp module, Phase phase) {
  module->setAttr(FSDPDialect::phaseAttrName,
                  StringAttr::get(module.getContext(), stringifyPhase(phase)));
}

MeshOp mlir::fsdp::getMeshOp(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (!module)
    return nullptr;
  auto meshes = module.getOps<MeshOp>();
  return meshes.empty() ? nullptr : *meshes.begin();
}

MeshAttr mlir::fsdp::getMesh(Operation *op) {
  if (MeshOp mesh = getMeshOp(op))
    return mesh.getMesh();
  return MeshAttr::get(op->getContext(), {}, {}, {});
}

SmallVector<StringAttr> mlir::fsdp::getAxisNames(ArrayAttr axes) {
  return llvm::map_to_vector(axes, [](Attribute axis) { return cast<StringAttr>(axis); });
}

ArrayAttr mlir::fsdp::getAxisArray(MLIRContext *context, ArrayRef<StringAttr> axes) {
  SmallVector<Attribute> attributes(axes.begin(), axes.end());
  return ArrayAttr::get(context, attributes);
}
