//===- DeferUpdates.cpp - updates that overlap with the next forward ------===//
//
// A deferred update reads, in the next step, the carried tensors of its own step: the gradient, the
// learning rate, the scale and whether the step was good. They are zero before the first step: `ok`
// is false, and the updates in that step do nothing. So all steps are the same.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/Structure.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/LaunchNames.h"
#include "passes/Passes.h"
#include "passes/PhaseCheck.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_DEFERUPDATESPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// An update, and the ops for it in the next step.
struct Deferred {
  OptimizerStepOp update; ///< where it stood
  LoadOp before;          ///< the load in the first segment before which it is placed
  CarriedOp gradient, lr, ok;
  CarriedOp scale; ///< null: a constant
};

/// Defers the updates of one walk.
class UpdateDeferrer {
public:
  /// `first` is the segment with which the walk begins, `last` the one with which it ends; they may
  /// be the same.
  UpdateDeferrer(SegmentOp first, SegmentOp last, SymbolTable &symbols)
      : first(first), last(last), symbols(symbols), builder(first.getContext()) {}

  /// The updates that may be deferred.
  SmallVector<Deferred> find();
  /// Defers them, and adds the segment that drains: an empty one where there are none.
  void defer(SmallVector<Deferred> all);

private:
  llvm::MapVector<StringAttr, LoadOp> findOverlapping();
  CarriedOp declare(Value value, std::string name, FlatSymbolRefAttr storage);
  CarriedOp carry(Value value, std::string name);
  CarriedOp carryGradient(OptimizerStepOp update, LoadOp before);
  void build(const Deferred &deferred);
  void buildDrain(ArrayRef<Deferred> all);
  void remove(OptimizerStepOp update);

  SegmentOp first, last;
  SymbolTable &symbols;
  OpBuilder builder;
  DenseMap<Value, CarriedOp> scalars; ///< carried for all updates
};

} // namespace

/// The first loads of the parameters of storages that are used after computation with parameters of
/// another storage.
llvm::MapVector<StringAttr, LoadOp> UpdateDeferrer::findOverlapping() {
  llvm::MapVector<StringAttr, LoadOp> loads;
  DenseSet<StringAttr> seen;
  DenseSet<Value> parameters; // whole or in parts, before anything is computed with them
  bool computes = false;
  for (Operation &op : first.getBody().front()) {
    if (auto load = dyn_cast<LoadOp>(op)) {
      bool ofUpdate = llvm::all_of(load->getUsers(), llvm::IsaPred<OptimizerStepOp>);
      if (load.getWhat() != "parameter" || ofUpdate)
        continue;
      parameters.insert(load);
      if (seen.insert(load.getStorageAttr().getAttr()).second && computes)
        loads[load.getStorageAttr().getAttr()] = load;
      continue;
    }
    bool takes =
        llvm::any_of(op.getOperands(), [&](Value value) { return parameters.contains(value); });
    if (takes && (isa<ViewOp>(op) || op.hasAttr(FSDPDialect::gathersAttrName)))
      parameters.insert(op.getResult(0));
    else
      computes |= takes;
  }
  return loads;
}

CarriedOp UpdateDeferrer::declare(Value value, std::string name, FlatSymbolRefAttr storage) {
  builder.setInsertionPoint(first->getParentOp());
  auto carried = CarriedOp::create(builder, value.getLoc(), builder.getStringAttr(name),
                                   TypeAttr::get(value.getType()), storage,
                                   /*zeroed=*/builder.getUnitAttr());
  symbols.insert(carried, builder.getInsertionPoint());
  builder.setInsertionPointAfterValue(value);
  StructureScope scope(builder, getStructure(value.getDefiningOp()));
  CarryStoreOp::create(builder, value.getLoc(), value, carried.getSymName());
  return carried;
}

CarriedOp UpdateDeferrer::carry(Value value, std::string name) {
  CarriedOp &carried = scalars[value];
  if (!carried)
    carried = declare(value, std::move(name), FlatSymbolRefAttr());
  return carried;
}

/// A sum over microbatches is carried already, if nothing begins the next sum before the update has
/// read it.
CarriedOp UpdateDeferrer::carryGradient(OptimizerStepOp update, LoadOp before) {
  if (auto load = update.getGradient().getDefiningOp<CarryLoadOp>()) {
    bool overwritten = llvm::any_of(first.getOps<CarryStoreOp>(), [&](CarryStoreOp store) {
      return store.getCarried() == load.getCarried() && store->isBeforeInBlock(before);
    });
    auto carried = symbols.lookup<CarriedOp>(load.getCarried());
    if (!overwritten) {
      carried.setZeroed(true);
      return carried;
    }
  }
  return declare(update.getGradient(), (update.getStorage() + ".gradient").str(),
                 update.getStorageAttr());
}

/// Performs an update at the builder's position.
void UpdateDeferrer::build(const Deferred &deferred) {
  OptimizerStepOp update = deferred.update;
  Location loc = update.getLoc();
  StructureScope scope(builder, getStructure(update));
  StringRef storage = update.getStorage();
  Type shard = update.getParameter().getType();
  auto load = [&](StringRef what) -> Value {
    return LoadOp::create(builder, loc, shard, storage, what);
  };
  auto carried = [&](CarriedOp from) -> Value {
    return CarryLoadOp::create(builder, loc, from.getTensorType(), from.getSymName());
  };
  SmallVector<StringRef> names = update.getOptimizer().getStateNames();
  Value parameter = load("parameter");
  SmallVector<Value> states = llvm::map_to_vector(names, load);
  SmallVector<Type> types(names.size(), shard);
  Value gradient = carried(deferred.gradient), lr = carried(deferred.lr);
  Value scale = deferred.scale ? carried(deferred.scale)
                               : builder.clone(*update.getScale().getDefiningOp())->getResult(0);
  auto result =
      OptimizerStepOp::create(builder, loc, shard, TypeRange(types), update.getOptimizer(), storage,
                              parameter, gradient, states, lr, scale, carried(deferred.ok),
                              /*deferred=*/true);
  StoreOp::create(builder, loc, result.getNewParameter(), storage, "parameter");
  for (auto [name, state] : llvm::zip_equal(names, result.getNewStates()))
    StoreOp::create(builder, loc, state, storage, name);
}

/// Runs between a step and other uses of parameters: performs the updates, which the next step must
/// not repeat.
void UpdateDeferrer::buildDrain(ArrayRef<Deferred> all) {
  auto program = cast<ProgramOp>(first->getParentOp());
  Operation *lastWalk = nullptr;
  for (WalkOp walk : program.getOps<WalkOp>())
    lastWalk = walk;
  builder.setInsertionPointToEnd(&program.getBody().front());
  auto drain = SegmentOp::create(builder, last.getLoc(), lastWalk ? "drain.update" : "drain",
                                 StepKind::train, /*async=*/false, /*drain=*/true, last.getNext());
  auto name = FlatSymbolRefAttr::get(SymbolTable(program).insert(drain));
  SmallVector<Attribute> afterDrain(last.getNext().begin(), last.getNext().end());
  afterDrain.push_back(name);
  drain.setNextAttr(builder.getArrayAttr(afterDrain));
  last.setNextAttr(builder.getArrayAttr({FlatSymbolRefAttr::get(first.getSymNameAttr()), name}));
  if (lastWalk) {
    builder.setInsertionPointAfter(lastWalk);
    auto walk = WalkOp::create(builder, last.getLoc(), "drain", StepKind::train,
                               builder.getArrayAttr({name}), ArrayRef<int64_t>{1});
    SymbolTable(program).insert(walk);
  }

  builder.createBlock(&drain.getBody());
  llvm::SetVector<Operation *> conditions;
  for (const Deferred &deferred : all) {
    build(deferred);
    conditions.insert(deferred.ok);
  }
  for (Operation *condition : conditions) {
    auto carried = cast<CarriedOp>(condition);
    StructureScope scope(builder, Structure().in(Direction::update));
    Value no = arith::ConstantOp::create(builder, carried.getLoc(),
                                         builder.getZeroAttr(carried.getTensorType()));
    CarryStoreOp::create(builder, carried.getLoc(), no, carried.getSymName());
  }
}

/// Removes an update, and loads that only it uses.
void UpdateDeferrer::remove(OptimizerStepOp update) {
  for (Operation *user : llvm::make_early_inc_range(update->getUsers()))
    user->erase(); // stores
  llvm::SetVector<Operation *> makers;
  for (Value operand : update->getOperands())
    makers.insert(operand.getDefiningOp());
  update.erase();
  for (Operation *maker : makers)
    if (isa<LoadOp, CarryLoadOp, arith::ConstantOp>(maker) && maker->use_empty())
      maker->erase();
}

/// Whether `load` precedes all that `update` takes of its own step, which is carried to the next
/// one: in one segment, a load may come behind the gradient (a stage that uses a tied weight in
/// backward alone, or a report of a parameter).
static bool precedesInputs(LoadOp load, OptimizerStepOp update) {
  if (load->getBlock() != update->getBlock())
    return true;
  return llvm::all_of(
      ValueRange{update.getGradient(), update.getLr(), update.getScale(), update.getOk()},
      [&](Value value) {
        Operation *op = value.getDefiningOp();
        return isa<arith::ConstantOp, CarryLoadOp>(op) || load->isBeforeInBlock(op);
      });
}

SmallVector<Deferred> UpdateDeferrer::find() {
  llvm::MapVector<StringAttr, LoadOp> loads = findOverlapping();
  SmallVector<Deferred> all;
  for (auto [storage, load] : loads)
    for (OptimizerStepOp update : last.getOps<OptimizerStepOp>())
      if (update.getStorageAttr().getAttr() == storage && precedesInputs(load, update))
        all.push_back({update, load, {}, {}, {}, {}});
  return all;
}

void UpdateDeferrer::defer(SmallVector<Deferred> all) {
  const std::string step = last.getSymName().str();
  for (Deferred &deferred : all) {
    OptimizerStepOp update = deferred.update;
    deferred.gradient = carryGradient(update, deferred.before);
    deferred.lr = carry(update.getLr(), step + ".lr");
    deferred.ok = carry(update.getOk(), step + ".ok");
    if (!update.getScale().getDefiningOp<arith::ConstantOp>())
      deferred.scale = carry(update.getScale(), step + ".scale");
  }
  for (const Deferred &deferred : all) {
    builder.setInsertionPoint(deferred.before);
    build(deferred);
  }
  buildDrain(all);
  for (const Deferred &deferred : all)
    remove(deferred.update);
}

namespace {
struct DeferUpdates : fsdp::impl::DeferUpdatesPassBase<DeferUpdates> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requirePhase(module, Phase::local, "defers updates of the local phase")) ||
        failed(verifyPhase(module, Phase::local)))
      return signalPassFailure();
    SymbolTable symbols(module);
    SmallVector<UpdateDeferrer> programs;
    bool isNeeded = false;
    for (ProgramOp program : module.getOps<ProgramOp>())
      if (auto walk = findTraining(program)) {
        programs.emplace_back(walk->first, walk->second, symbols);
        isNeeded |= !programs.back().find().empty();
      }
    // Programs of several roles go through the same segments: one with nothing to defer, too.
    if (isNeeded)
      for (UpdateDeferrer &program : programs)
        program.defer(program.find());
    if (!isNeeded)
      module.emitWarning()
          << "no update is deferred: one overlaps with computation of the next step only if "
             "that uses parameters of another unit before, and if they are not kept on every "
             "rank (zero1, zero2); leave out --defer-updates";
  }

private:
  /// The first and the last segment of the one walk that trains, if updates are not deferred yet.
  static std::optional<std::pair<SegmentOp, SegmentOp>> findTraining(ProgramOp program) {
    for (SegmentOp segment : program.getOps<SegmentOp>())
      if (segment.getDrain())
        return std::nullopt;
    SmallVector<std::pair<SegmentOp, SegmentOp>> walks; // the first segment and the last one
    for (WalkOp walk : program.getOps<WalkOp>())
      if (walk.getKind() == StepKind::train) {
        auto segment = [&](Attribute name) {
          return program.lookupSymbol<SegmentOp>(cast<FlatSymbolRefAttr>(name).getAttr());
        };
        walks.emplace_back(segment(walk.getSegments()[0]),
                           segment(walk.getSegments().getValue().back()));
      }
    if (program.getOps<WalkOp>().empty())
      for (SegmentOp segment : program.getOps<SegmentOp>())
        if (segment.getKind() == StepKind::train)
          walks.emplace_back(segment, segment);
    return walks.size() == 1 ? std::optional(walks[0]) : std::nullopt;
  }
};
} // namespace
