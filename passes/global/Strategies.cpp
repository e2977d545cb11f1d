//===- Strategies.cpp - placements of parameters by strategy --------------===//

#include "passes/global/Strategies.h"
#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "passes/sharding/MeshAxes.h"

using namespace mlir;
using namespace mlir::fsdp;

// The table of docs/strategies.md, which describes its consequences.
static constexpr Strategy strategies[] = {
    //        parameter gradient state  shards replicated
    {"ddp", false, false, false, false}, {"zero1", false, false, true, false},
    {"zero2", false, true, true, false}, {"fsdp", true, true, true, false},
    {"hsdp", true, true, true, true},
};

PlacementAttr Strategy::place(LayoutAttr layout, Type element) const {
  MLIRContext *context = layout.getContext();
  auto replicated = LayoutAttr::get(context, StorageKind::replicated, -1, {});
  auto choose = [&](bool splitsIt) { return splitsIt ? layout : replicated; };
  // A pattern under a strategy that splits nothing splits parameter, gradient and state.
  LayoutAttr parameter = choose(splitsParameter || !splits()),
             gradient = choose(splitsGradient || !splits());
  return PlacementAttr::get(context, parameter, gradient, layout, element, element,
                            /*accumulate=*/Type(), Reshard::always, {}, ShardingAttr());
}

const Strategy *mlir::fsdp::findStrategy(StringRef name) {
  for (const Strategy &strategy : strategies)
    if (strategy.name == name)
      return &strategy;
  return nullptr;
}

std::string mlir::fsdp::listStrategies() {
  std::string text;
  for (const Strategy &strategy : strategies)
    text += (text.empty()                            ? ""
             : &strategy == std::end(strategies) - 1 ? " or "
                                                     : ", ") +
            strategy.name.str();
  return text;
}

std::string mlir::fsdp::explainMismatch(const Strategy &strategy, MeshAttr mesh) {
  const std::string got = ", got mesh " + spellMesh(mesh) + "; ";
  bool hasStorage = !getStorageAxes(mesh).empty();
  bool hasOther = llvm::any_of(mesh.getAxisNames(), [](StringAttr axis) {
    const AxisRole &role = getAxisRole(axis);
    return !role.storesParameters && !role.splitsCompute;
  });
  if (strategy.replicatesShards && (!hasStorage || !hasOther))
    return "shards over axis 'fsdp' and replicates the shards over another axis" + got +
           "give it both, as in data=2,fsdp=4, or use fsdp";
  if (strategy.splits() && !hasStorage)
    return "shards over axis 'fsdp'" + got + "give it that axis, or use ddp";
  return "";
}
