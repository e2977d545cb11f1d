//===- ReshardAfterForward.cpp - what is kept from forward to backward ----===//

#include "passes/Passes.h"
#include "passes/sharding/MeshParts.h"
#include "passes/sharding/ShardSpec.h"

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

LogicalResult ReshardAfterForward::set(ParamOp param, Reshard reshard, ArrayRef<StringAttr> axes) {
  PlacementAttr placement = param.getPlacementAttr();
  if (!placement)
    return param.emitOpError() << "'" << param.getSymName()
                               << "' has no placement yet; run --fsdp-shard-parameters first";
  LayoutAttr layout = placement.getParameter();
  if (reshard == Reshard::axes) {
    // Nothing is gathered of what every rank has.
    if (layout.getKind() == StorageKind::replicated)
      return success();
    ArrayRef<StringAttr> stored = layout.getAxes();
    if (layout.getKind() != StorageKind::flat || axes.size() >= stored.size() ||
        stored.take_front(axes.size()) != axes)
      return param.emitOpError() << "'" << param.getSymName() << "' is stored as "
                                 << spellStorage(layout) << ", but --reshard-after-forward got '"
                                 << when
                                 << "', expected some but not all of the leading axes of a flat "
                                    "storage, such as axes:fsdp of flat(fsdp+node)";
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
  for (auto param : module.getOps<ParamOp>())
    if (failed(set(param, choice->reshard, axes)))
      return signalPassFailure();
}
