//===- StorageLayout.cpp - storages of the parameters on one rank ---------===//

#include "passes/local/partition/StorageLayout.h"
#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/Structure.h"
#include "dialect/nn/TensorSize.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"
#include <array>
#include <set>

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

std::optional<Buckets> Buckets::parse(StringRef text) {
  Buckets buckets;
  if (text == "unit")
    return buckets;
  if (text == "parameter")
    return Buckets{0};
  if (!text.consume_front("units:") || text.getAsInteger(10, buckets.units) || buckets.units < 2 ||
      buckets.units > 1024)
    return std::nullopt;
  return buckets;
}

namespace {
/// The properties in which units that share storages agree: the stages of their ops, and each
/// parameter's type, placement, split and update.
struct UnitForm {
  std::set<int64_t> stages;
  SmallVector<std::array<Attribute, 4>> params;

  bool operator==(const UnitForm &other) const {
    return stages == other.stages && params == other.params;
  }
};
} // namespace

/// "h.0..3" for "h.0" to "h.3": the last name is added without the prefix, up to a dot, that it
/// shares with the first one.
static std::string spanOf(StringRef first, StringRef last) {
  const size_t dot = first.rfind('.');
  if (dot != StringRef::npos && last.starts_with(first.take_front(dot + 1)))
    last = last.drop_front(dot + 1);
  return (first + ".." + last).str();
}

/// Runs of `count` units, consecutive in the order of their parameters, that are alike and of one
/// stage; the units that remain at the end of a run are merged too. Maps each unit to the name of
/// its merged run.
static llvm::StringMap<std::string>
mergeUnits(ModuleOp module, const DenseMap<StringAttr, OptimizerAttr> &optimizers, int64_t count) {
  llvm::MapVector<StringAttr, UnitForm> forms;
  for (ParamOp param : module.getOps<ParamOp>())
    forms[param.getUnitAttr()].params.push_back({param.getTypeAttr(), param.getPlacementAttr(),
                                                 param.getSplitAttr(),
                                                 optimizers.lookup(param.getSymNameAttr())});
  module.walk([&](Operation *op) {
    const Structure structure = getStructure(op);
    if (!structure.unit || structure.direction == Direction::update) // these have no stage
      return;
    if (auto *form = forms.find(structure.unit); form != forms.end())
      form->second.stages.insert(structure.stage);
  });
  llvm::StringMap<std::string> merged;
  SmallVector<StringRef> run;
  const UnitForm *form = nullptr;
  auto finish = [&] {
    if (run.size() > 1)
      for (StringRef unit : run)
        merged[unit] = spanOf(run.front(), run.back());
    run.clear();
  };
  for (const auto &[unit, own] : forms) {
    if (form && (static_cast<int64_t>(run.size()) == count || !(own == *form)))
      finish();
    form = &own;
    if (own.stages.size() == 1)
      run.push_back(unit.getValue());
    else
      finish();
  }
  finish();
  return merged;
}

/// The unit whose storages have `param`.
StringRef StorageLayout::unitOf(ParamOp param) const {
  auto found = merged.find(param.getUnit());
  return found == merged.end() ? param.getUnit() : StringRef(found->second);
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
  if (placement.getKind() != StorageKind::dimension && buckets.units > 0)
    for (auto [other, otherApart] : llvm::zip_equal(*storages, standApart))
      if (other.unit == unitOf(param) && other.placement.isStoredLike(placement) &&
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
    storages->push_back({unitOf(param).str(), placement, split, {}, optimizer, {}, {}, {}});
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
  if (buckets.units > 1)
    layout.merged = mergeUnits(module, *optimizers, buckets.units);
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
    std::string name = buckets.units > 0 ? storage.unit : first.getSymName().str();
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
