//===- ReshardAfterForward.cpp - parameters kept for backward -------------===//

#include "passes/Passes.h"
#include "passes/sharding/MeshParts.h"
#include "passes/sharding/ShardSpec.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_RESHARDAFTERFORWARDPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct ReshardAfterForward : fsdp::impl::ReshardAfterForwardPassBase<ReshardAfterForward> {
  using Base::Base;

  void runOnOperation() override;

private:
  LogicalResult set(ParamOp param, Reshard reshard, ArrayRef<StringAttr> axes);
};
} // namespace

/// `placement` with `axes` first in each layout that is split: a gather over the last axes leaves
/// one contiguous piece of the tensor.
static PlacementAttr withLeading(PlacementAttr placement, ArrayRef<StringAttr> axes) {
  auto reordered = [&](LayoutAttr layout) {
    if (layout.getKind() == StorageKind::replicated)
      return layout;
    SmallVector<StringAttr> order(axes);
    llvm::copy_if(layout.getAxes(), std::back_inserter(order),
                  [&](StringAttr axis) { return !llvm::is_contained(axes, axis); });
    return LayoutAttr::get(layout.getContext(), layout.getKind(), layout.getDim(), order);
  };
  return PlacementAttr::get(placement.getContext(), reordered(placement.getParameter()),
                            reordered(placement.getGradient()), reordered(placement.getState()),
                            placement.getGather(), placement.getReduce(), placement.getAccumulate(),
                            Reshard::always, {}, placement.getCompute());
}

LogicalResult ReshardAfterForward::set(ParamOp param, Reshard reshard, ArrayRef<StringAttr> axes) {
  PlacementAttr placement = param.getPlacementAttr();
  if (!placement)
    return param.emitOpError() << "'" << param.getSymName()
                               << "' has no placement yet; run --fsdp-shard-parameters first";
  LayoutAttr layout = placement.getParameter();
  if (reshard == Reshard::axes) {
    // Replicated parameters are not gathered.
    if (layout.getKind() == StorageKind::replicated)
      return success();
    ArrayRef<StringAttr> stored = layout.getAxes();
    if (!llvm::all_of(axes, [&](StringAttr axis) { return llvm::is_contained(stored, axis); }))
      return param.emitOpError() << "'" << param.getSymName() << "' is stored as "
                                 << spellStorage(layout) << ", but --reshard-after-forward got '"
                                 << when << "', expected axes of its storage, such as axes:"
                                 << stored.front().getValue();
    // The part over all axes is the stored shard.
    if (axes.size() == stored.size()) {
      param.setPlacementAttr(placement.withReshard(Reshard::always));
      return success();
    }
    placement = withLeading(placement, axes);
  }
  param.setPlacementAttr(placement.withReshard(reshard, axes));
  return success();
}

void ReshardAfterForward::runOnOperation() {
  ModuleOp module = getOperation();
  std::optional<ReshardChoice> choice = parseReshard(when);
  if (!choice) {
    module.emitError() << "--reshard-after-forward got '" << when << "', expected " << reshardForm;
    return signalPassFailure();
  }
  if (failed(splitNamedMeshAxes(module, choice->axes,
                                "--reshard-after-forward got '" + when + "', which")))
    return signalPassFailure();
  SmallVector<StringAttr> axes;
  for (const std::string &axis : choice->axes) {
    std::optional<SmallVector<StringAttr>> parts = findAxes(getMesh(module), axis);
    if (parts && !parts->empty())
      llvm::append_range(axes, *parts);
    else // which no placement has
      axes.push_back(StringAttr::get(&getContext(), axis));
  }
  // An axis of one rank splits nothing, and no placement has it.
  llvm::erase_if(axes, [&](StringAttr axis) {
    MeshAttr mesh = getMesh(module);
    return llvm::is_contained(mesh.getAxisNames(), axis) && mesh.getSize({axis}) == 1;
  });
  if (choice->reshard == Reshard::axes && axes.empty())
    choice->reshard = Reshard::always;
  for (auto param : module.getOps<ParamOp>())
    if (failed(set(param, choice->reshard, axes)))
      return signalPassFailure();
  // Where no parameter is stored over axes, none has refused it.
  for (StringAttr axis : axes) {
    ArrayRef<StringAttr> names = getMesh(module).getAxisNames();
    if (llvm::is_contained(names, axis))
      continue;
    auto text = [](StringAttr name) { return name.getValue(); };
    module.emitError() << "--reshard-after-forward got '" << when
                       << "', expected axes of the mesh: "
                       << llvm::join(llvm::map_range(names, text), ", ");
    return signalPassFailure();
  }
}
