//===- ShardingWarnings.cpp - shardings that cost more than they seem -----===//

#include "passes/global/ShardingWarnings.h"
#include "dialect/fsdp/Structure.h"
#include "passes/MeshAxes.h"

using namespace mlir;
using namespace mlir::fsdp;

/// "'tensor'", "'data' and 'tensor'", "no axis"
static std::string listAxes(ArrayRef<StringAttr> axes) {
  if (axes.empty())
    return "no axis";
  return llvm::join(llvm::map_range(axes, [](StringAttr axis) { return "'" + axis.str() + "'"; }), " and ");
}

/// The axes of `dim` that split something: axes of size 1 do not.
static SmallVector<StringAttr> getSplit(ShardingAttr sharding, int64_t dim, MeshAttr mesh) {
  return llvm::filter_to_vector(sharding.getAxes(dim),
                                [&](StringAttr axis) { return mesh.getAxisSize(axis) != 1; });
}

void mlir::fsdp::warnOfContradictions(StepOp step) {
  MeshAttr mesh = getMesh(step);
  DenseMap<Value, ConstraintOp> firsts;
  for (auto constraint : step.getBody().getOps<ConstraintOp>()) {
    // What backward asks for follows from forward.
    if (getStructure(constraint).direction != Direction::forward)
      continue;
    auto [known, isNew] = firsts.try_emplace(constraint.getInput(), constraint);
    if (isNew)
      continue;
    ConstraintOp first = known->second;
    ShardingAttr here = constraint.getSharding(), there = first.getSharding();
    for (int64_t dim = 0; dim < here.getRank(); ++dim) {
      SmallVector<StringAttr> axes = getSplit(here, dim, mesh), others = getSplit(there, dim, mesh);
      if (here.getDimOpen()[dim] || there.getDimOpen()[dim] || axes == others)
        continue;
      InFlightDiagnostic diag = constraint.emitWarning()
                                << "asks for dimension " << dim << " of '" << nameOf(constraint.getInput())
                                << "' over " << listAxes(axes) << ", another constraint for the same over "
                                << listAxes(others) << ": it is moved from one to the other; ask for one of them";
      diag.attachNote(first.getLoc()) << "the other constraint is here";
      break;
    }
  }
}

void mlir::fsdp::warnOfReplication(const StepShardings &shardings, ArrayRef<ReshardOp> moves) {
  for (ReshardOp move : moves) {
    Value value = move.getInput();
    ShardingAttr from = shardings.lookup(value), to = move.getSharding();
    auto type = cast<RankedTensorType>(value.getType());
    MeshAttr mesh = getMesh(move);
    SmallVector<StringAttr> gathered;
    for (int64_t dim = 0; dim < from.getRank(); ++dim)
      llvm::append_range(gathered, getSplit(from, dim, mesh));
    bool isWhole = llvm::all_of(to.getDimAxes(), [](ArrayAttr axes) { return axes.empty(); });
    if (!isWhole || gathered.empty() || llvm::is_contained(gathered, kMicrobatchAxis) || move->use_empty())
      continue;
    int64_t bytes = type.getElementTypeBitWidth() / 8, part = bytes;
    for (int64_t size : type.getShape())
      bytes *= size;
    for (int64_t size : from.getLocalShape(type.getShape(), mesh))
      part *= size;
    std::string whole;
    for (int64_t dim = 0; dim < to.getRank(); ++dim)
      whole += dim == 0 ? "_" : ",_";
    Operation *user = *move->user_begin();
    user->emitWarning() << "'" << user->getName() << "' needs all of '" << nameOf(value)
                        << "' on every rank, which gathers " << bytes - part << " bytes over "
                        << listAxes(gathered) << "; constrain(" << nameOf(value) << ", \"" << whole
                        << "\") where it is made says that it is to be so";
  }
}

void mlir::fsdp::warnOfPadding(ModuleOp module) {
  ParamOp first;
  int64_t splitDim = 0, others = 0;
  for (ParamOp param : module.getOps<ParamOp>()) {
    PlacementAttr placement = param.getPlacementAttr();
    if (!placement || !placement.getCompute())
      continue;
    MeshAttr mesh = getMesh(param);
    for (int64_t dim = 0; dim < placement.getCompute().getRank(); ++dim) {
      int64_t size = param.getTensorType().getDimSize(dim);
      int64_t parts = mesh.getSize(placement.getCompute().getAxes(dim));
      // A row of a vocabulary more or less is not worth a word.
      if ((llvm::divideCeil(size, parts) * parts - size) * 20 <= size)
        continue;
      others += bool(first);
      if (!first) {
        first = param;
        splitDim = dim;
      }
      break;
    }
  }
  if (!first)
    return;
  int64_t size = first.getTensorType().getDimSize(splitDim);
  int64_t parts = getMesh(first).getSize(first.getPlacementAttr().getCompute().getAxes(splitDim));
  InFlightDiagnostic diag = first.emitWarning()
                            << "dimension " << splitDim << " of '" << first.getSymName() << "' has size " << size
                            << " and is split in compute into " << parts << " parts of "
                            << llvm::divideCeil(size, parts) << ", some of it padding that is computed with";
  if (others > 0)
    diag << " (so are dimensions of " << others << " other parameters)";
  diag << "; a multiple of " << parts << " has none";
}
