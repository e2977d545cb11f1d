//===- StorageLayout.cpp - what one rank keeps of the parameters ----------===//

#include "passes/local/partition/StorageLayout.h"
#include "dialect/fsdp/AxisParts.h"
#include "dialect/nn/TensorSize.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// A flat shard is a multiple of this many elements, so that the part of every rank starts on a
/// 64-byte boundary of the gathered unit.
static constexpr int64_t shardMultiple = 16;

/// The update rule of every parameter that a step of `module` updates.
static FailureOr<DenseMap<StringAttr, OptimizerAttr>> findOptimizers(ModuleOp module) {
  DenseMap<StringAttr, OptimizerAttr> optimizers;
  WalkResult result = module.walk([&](UpdateOp update) {
    OptimizerAttr &optimizer = optimizers[update.getParamAttr().getAttr()];
    if (optimizer && optimizer.getStateNames() != update.getOptimizer().getStateNames()) {
      update.emitOpError() << "has different optimizer states for '" << update.getParam()
                           << "' than another update; use optimizers with the same states";
      return WalkResult::interrupt();
    }
    optimizer = update.getOptimizer();
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return optimizers;
}

LogicalResult StorageLayout::add(ParamOp param, OptimizerAttr optimizer, bool apart) {
  PlacementAttr placement = param.getPlacementAttr();
  RankedTensorType type = param.getComputeType();
  Type element = type.getElementType();
  if (!placement)
    return param.emitOpError() << "has no placement; run --fsdp-shard-parameters first";

  // Members of one flat or replicated storage: same unit, same storage and update, split over the
  // same axes in compute.
  SmallVector<StringAttr> split = param.getComputeAxes();
  Storage *storage = nullptr;
  if (placement.getKind() != StorageKind::dimension && buckets == Buckets::unit)
    for (auto [other, otherApart] : llvm::zip_equal(*storages, standApart))
      if (other.unit == param.getUnit() && other.placement.isStoredLike(placement) &&
          otherApart == apart && other.split == split)
        storage = &other;
  if (storage && storage->members.front().param.getTensorType().getElementType() != element) {
    ParamOp first = storage->members.front().param;
    InFlightDiagnostic diag = param.emitOpError()
                              << "of element type " << element << " shares unit '" << storage->unit
                              << "' with '" << first.getSymName() << "' of element type "
                              << first.getTensorType().getElementType()
                              << "; put them into different units";
    diag.attachNote(first.getLoc()) << "the other parameter is here";
    return diag;
  }
  if (storage && storage->placement.withCompute({}) != placement.withCompute({})) {
    ParamOp first = storage->members.front().param;
    InFlightDiagnostic diag =
        param.emitOpError() << "has placement " << placement << ", expected " << storage->placement
                            << " like '" << first.getSymName() << "', which shares unit '"
                            << storage->unit << "'; put them into different units";
    diag.attachNote(first.getLoc()) << "the other parameter is here";
    return diag;
  }
  if (!storage) {
    storages->push_back({param.getUnit().str(), placement, split, {}, optimizer, {}, {}, {}});
    standApart.push_back(apart);
    storage = &storages->back();
  }
  int64_t offset = 0;
  if (!storage->members.empty()) {
    const Storage::Member &last = storage->members.back();
    ParamOp before = last.param;
    offset = last.offset + before.getComputeType().getNumElements();
  }
  // Each fits by its verifier, and so does the previous sum; the sum of two cannot overflow.
  if (!nn::countBytes(type.clone({offset + type.getNumElements()})))
    return param.emitOpError() << "'" << param.getSymName() << "' of type " << type
                               << " ends unit '" << storage->unit << "', which now "
                               << nn::tooLargeMessage;
  places[param.getSymNameAttr()] = {storage, storage->members.size()};
  storage->members.push_back({param, offset});
  return success();
}

void StorageLayout::computeShards(MeshAttr mesh) {
  for (Storage &storage : *storages) {
    Storage::Member &last = storage.members.back();
    RankedTensorType type = last.param.getComputeType();
    int64_t ranks = mesh.getSize(storage.getAxes());
    if (storage.placement.getKind() == StorageKind::dimension) {
      storage.whole = type;
      SmallVector<int64_t> shape(type.getShape());
      int64_t &size = shape[storage.placement.getDim()];
      size = llvm::divideCeil(size, ranks);
      storage.shard = type.clone(shape);
      continue;
    }
    int64_t elements = last.offset + type.getNumElements();
    storage.whole = RankedTensorType::get({elements}, type.getElementType());
    int64_t part = storage.placement.getKind() == StorageKind::flat
                       ? llvm::alignTo(llvm::divideCeil(elements, ranks), shardMultiple)
                       : elements;
    storage.shard = RankedTensorType::get({part}, type.getElementType());
  }
}

FailureOr<StorageLayout> StorageLayout::create(ModuleOp module, Buckets buckets) {
  FailureOr<DenseMap<StringAttr, OptimizerAttr>> optimizers = findOptimizers(module);
  if (failed(optimizers))
    return failure();
  StorageLayout layout(buckets);
  for (ParamOp param : module.getOps<ParamOp>()) {
    OptimizerAttr optimizer = optimizers->lookup(param.getSymNameAttr());
    bool apart = !optimizer && (param.getFrozen() || !optimizers->empty());
    if (failed(layout.add(param, optimizer, apart)))
      return failure();
  }
  layout.computeShards(getMesh(module));
  return layout;
}

void StorageLayout::declare(OpBuilder &builder, SymbolTable &symbols) {
  MLIRContext *context = builder.getContext();
  for (auto [storage, apart] : llvm::zip_equal(*storages, standApart)) {
    StorageKind kind = storage.placement.getKind();
    ParamOp first = storage.members.front().param;
    std::string name = buckets == Buckets::unit ? storage.unit : first.getSymName().str();
    if (kind == StorageKind::dimension)
      name = first.getSymName().str() + ".shard";
    else
      name += (apart ? ".frozen." : ".") + stringifyStorageKind(kind).str();
    // Beside the storage of the members that every rank computes with whole.
    if (kind != StorageKind::dimension)
      for (const std::string &axis : spellAxes(getMesh(symbols.getOp()), storage.split))
        name += "." + axis;
    SmallVector<Attribute> members, states;
    for (const Storage::Member &member : storage.members) {
      ParamOp param = member.param;
      members.push_back(
          MemberAttr::get(context, FlatSymbolRefAttr::get(param.getSymNameAttr()), member.offset));
    }
    if (storage.optimizer)
      for (StringRef state : storage.optimizer.getStateNames())
        states.push_back(builder.getStringAttr(state));
    TypeAttr copy;
    if (storage.placement.hasCopy())
      copy = TypeAttr::get(storage.getGathered());
    storage.op = StorageOp::create(
        builder, NameLoc::get(builder.getStringAttr(name), first.getLoc()), name, storage.shard,
        kind, storage.placement.getDim(), getAxisArray(context, storage.getAxes()),
        /*roles=*/ArrayAttr(), copy, builder.getArrayAttr(states), builder.getArrayAttr(members));
    // A parameter may have the name.
    symbols.insert(storage.op, builder.getInsertionPoint());
  }
}
