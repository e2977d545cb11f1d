//===- MeshAxes.cpp - roles of mesh axes ----------------------------------===//

#include "passes/sharding/MeshAxes.h"
#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::fsdp;

static bool splitsBatch(StringRef name, ArrayRef<std::string> others) {
  return getAxisRole(name).splitsBatch || llvm::is_contained(others, axisOf(name));
}

SmallVector<StringAttr> mlir::fsdp::getBatchAxes(MeshAttr mesh, ArrayRef<std::string> others) {
  SmallVector<StringAttr> axes;
  for (StringAttr axis : mesh.getAxisNames())
    if (splitsBatch(axis, others))
      axes.push_back(axis);
  return axes;
}

SmallVector<StringAttr> mlir::fsdp::getStorageAxes(MeshAttr mesh) {
  SmallVector<StringAttr> axes;
  for (StringAttr axis : mesh.getAxisNames())
    if (getAxisRole(axis).storesParameters)
      axes.push_back(axis);
  if (mesh.getSize(axes) > 1)
    llvm::erase_if(axes, [&](StringAttr axis) { return mesh.getAxisSize(axis) == 1; });
  else if (!axes.empty())
    axes.resize(1);
  return axes;
}

using AxisVisitor = llvm::function_ref<void(StringRef axis)>;

static void forEachAxis(ArrayAttr axes, AxisVisitor visit) {
  for (auto axis : axes.getAsRange<StringAttr>())
    visit(axisOf(axis));
}

static void forEachAxis(ShardingAttr sharding, AxisVisitor visit) {
  for (ArrayAttr axes : sharding.getDimAxes())
    forEachAxis(axes, visit);
}

/// Visits the axes over which `param` is split or stored.
static void forEachAxis(ParamOp param, AxisVisitor visit) {
  if (ArrayAttr split = param.getSplitAttr())
    for (auto axes : split.getAsRange<ArrayAttr>())
      forEachAxis(axes, visit);
  if (PlacementAttr placement = param.getPlacementAttr()) {
    for (StringAttr axis : placement.getAxes())
      visit(axisOf(axis));
    if (placement.getCompute())
      forEachAxis(placement.getCompute(), visit);
  }
}

/// Visits the axes of the manual regions of `module`.
static void forEachManualAxis(ModuleOp module, AxisVisitor visit) {
  module.walk([&](Operation *op) {
    if (auto manual = dyn_cast<ManualOp>(op))
      forEachAxis(manual.getOver(), visit);
    else if (auto enter = dyn_cast<EnterManualOp>(op))
      forEachAxis(enter.getOver(), visit);
  });
}

/// The axes that constraints, manual regions and parameters of `module` name.
static llvm::StringSet<> collectNamedAxes(ModuleOp module) {
  llvm::StringSet<> used;
  auto add = [&](StringRef axis) { used.insert(axis); };
  module.walk([&](ConstraintOp op) { forEachAxis(op.getSharding(), add); });
  forEachManualAxis(module, add);
  for (auto param : module.getOps<ParamOp>())
    forEachAxis(param, add);
  return used;
}

StringAttr mlir::fsdp::findUnusedAxis(ModuleOp module, ArrayRef<std::string> batchAxes,
                                      ArrayRef<std::string> stored) {
  auto meshes = module.getOps<MeshOp>();
  if (meshes.empty())
    return StringAttr();
  llvm::StringSet<> used = collectNamedAxes(module);
  for (const std::string &axis : stored)
    used.insert(axisOf(axis));
  MeshAttr mesh = (*meshes.begin()).getMesh();
  for (StringAttr axis : mesh.getAxisNames())
    if (const AxisRole &role = getAxisRole(axis);
        !used.contains(axisOf(axis)) && !splitsBatch(axis, batchAxes) && !role.storesParameters &&
        !role.carriesRoles && !(role.splitsCompute && mesh.getAxisSize(axis) == 1))
      return axis;
  return StringAttr();
}

StringAttr mlir::fsdp::findPipelineAxis(ModuleOp module) {
  auto meshes = module.getOps<MeshOp>();
  if (meshes.empty())
    return StringAttr();
  MeshAttr mesh = (*meshes.begin()).getMesh();
  StringAttr found;
  for (StringAttr axis : mesh.getAxisNames())
    if (getAxisRole(axis).carriesRoles && mesh.getAxisSize(axis) > 1)
      found = axis;
  if (found)
    forEachManualAxis(module, [&](StringRef axis) {
      if (found && axis == axisOf(found))
        found = StringAttr();
    });
  return found;
}

LogicalResult mlir::fsdp::verifyPipelineAxis(ModuleOp module, StringAttr axis) {
  bool isNamed = false;
  auto look = [&](StringRef name) { isNamed |= name == axisOf(axis); };
  auto fail = [&](InFlightDiagnostic &&diagnostic) {
    return std::move(diagnostic) << " over the mesh axis '" << axis.getValue()
                                 << "', whose ranks compute different stages of the model; name "
                                    "other axes, or call this one otherwise";
  };
  const WalkResult walked = module.walk([&](ConstraintOp op) -> WalkResult {
    forEachAxis(op.getSharding(), look);
    return isNamed ? WalkResult(fail(op.emitOpError() << "splits a value")) : WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  for (auto param : module.getOps<ParamOp>()) {
    forEachAxis(param, look);
    if (isNamed)
      return fail(param.emitOpError() << "'" << param.getSymName() << "' is split or stored");
  }
  return success();
}

FailureOr<MeshAttr> mlir::fsdp::withMicrobatches(MeshAttr mesh, int64_t microbatches) {
  if (mesh.getAxisIndex(kMicrobatchAxis) >= 0)
    return failure();
  SmallVector<StringAttr> names(mesh.getAxisNames());
  SmallVector<int64_t> sizes(mesh.getAxisSizes()), devices;
  names.push_back(StringAttr::get(mesh.getContext(), kMicrobatchAxis));
  sizes.push_back(microbatches);
  for (int64_t device : mesh.getDevices())
    for (int64_t part = 0; part < microbatches; ++part)
      devices.push_back(device * microbatches + part);
  return MeshAttr::get(mesh.getContext(), names, sizes, devices);
}

MeshAttr mlir::fsdp::withoutMicrobatches(MeshAttr mesh) {
  int64_t index = mesh.getAxisIndex(kMicrobatchAxis);
  if (index < 0)
    return mesh;
  int64_t parts = mesh.getAxisSizes()[index];
  SmallVector<int64_t> devices;
  for (auto [position, device] : llvm::enumerate(mesh.getDevices()))
    if (position % parts == 0)
      devices.push_back(device / parts);
  return MeshAttr::get(mesh.getContext(), mesh.getAxisNames().drop_back(),
                       mesh.getAxisSizes().drop_back(), devices);
}
