//===- ManualTypes.cpp - the states of values in manual regions -----------===//

#include "dialect/fsdp/Manual.h"

using namespace mlir;
using namespace mlir::fsdp;

StringRef mlir::fsdp::stringify(AxisState state) {
  switch (state) {
  case AxisState::invariant:
    return "invariant";
  case AxisState::varying:
    return "varying";
  case AxisState::partial:
    return "partial";
  }
  llvm_unreachable("unknown state");
}

static AxisStates getBoundaryStates(ShardingAttr sharding, ArrayRef<StringAttr> axes) {
  return AxisStates(
      llvm::map_range(axes, [&](StringAttr axis) { return getBoundaryState(sharding, axis); }));
}

AxisStates ManualTypes::lookup(Value value) const {
  auto known = states.find(value);
  return known == states.end() ? AxisStates(axes.size(), AxisState::invariant) : known->second;
}

void ManualTypes::addVarying(Value value, Value from, ArrayRef<StringAttr> over) {
  AxisStates result = lookup(from);
  for (auto [axis, state] : llvm::zip_equal(axes, result))
    if (llvm::is_contained(over, axis))
      state = AxisState::varying;
  states[value] = result;
}

/// Whether `op` is linear in its operands `partial`, the others being equal on all ranks.
static bool isLinearIn(Operation *op, ArrayRef<unsigned> partial) {
  auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(op);
  if (!ruled)
    return false;
  const bool isAll = partial.size() == op->getNumOperands();
  switch (ruled.getLinearity()) {
  case nn::Linearity::none:
  case nn::Linearity::homogeneous:
    return false;
  case nn::Linearity::additive:
  case nn::Linearity::rounding:
  case nn::Linearity::linearMap:
    return isAll;
  case nn::Linearity::choice:
    return partial.size() + 1 == op->getNumOperands() && partial.front() == 1;
  case nn::Linearity::product:
    return partial.size() == 1;
  case nn::Linearity::quotient:
    return partial.size() == 1 && partial.front() == 0;
  }
  llvm_unreachable("unknown linearity");
}

LogicalResult ManualTypes::visitCompute(Operation *op) {
  AxisStates result(axes.size(), AxisState::invariant);
  for (size_t index = 0; index < axes.size(); ++index) {
    const StringAttr axis = axes[index];
    SmallVector<unsigned> partial, varying;
    for (OpOperand &operand : op->getOpOperands()) {
      const AxisState state = lookup(operand.get())[index];
      if (state == AxisState::partial)
        partial.push_back(operand.getOperandNumber());
      else if (state == AxisState::varying)
        varying.push_back(operand.getOperandNumber());
    }
    if (partial.empty()) {
      result[index] = varying.empty() ? AxisState::invariant : AxisState::varying;
      continue;
    }
    auto refuse = [&](StringRef why, unsigned other) -> LogicalResult {
      InFlightDiagnostic diagnostic = op->emitOpError()
                                      << "has an operand #" << partial.front()
                                      << " that is partial over axis " << axis << why;
      diagnostic.attachNote(op->getOperand(other).getLoc()) << "the operand is computed here";
      return diagnostic;
    };
    if (!varying.empty())
      return refuse(" beside a varying one, expected invariant operands; use 'fsdp.psum' first",
                    varying.front());
    auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(op);
    if (ruled && ruled.getLinearity() == nn::Linearity::additive &&
        partial.size() < op->getNumOperands())
      return refuse(" beside an invariant one, which would count once for each rank; use "
                    "'fsdp.psum' first",
                    partial.front());
    if (!isLinearIn(op, partial))
      return refuse(", in which it is not additive, expected a value that is complete; use "
                    "'fsdp.psum' first",
                    partial.front());
    result[index] = AxisState::partial;
  }
  for (Value value : op->getResults())
    states[value] = result;
  return success();
}

LogicalResult ManualTypes::visitCollective(Operation *op) {
  const SmallVector<StringAttr> over = getManualCollectiveAxes(op);
  for (StringAttr axis : over)
    if (!llvm::is_contained(axes, axis)) {
      InFlightDiagnostic diagnostic = op->emitOpError()
                                      << "is over axis " << axis << ", expected axes of its region";
      diagnostic.attachNote(op->getParentOp()->getLoc()) << "the region is here";
      return diagnostic;
    }
  AxisStates result = lookup(op->getOperand(0));
  for (auto [axis, state] : llvm::zip_equal(axes, result)) {
    if (!llvm::is_contained(over, axis)) {
      if (state == AxisState::partial && isa<PmaxOp>(op))
        return op->emitOpError() << "has an operand that is partial over axis " << axis
                                 << ", in which it is not additive; use 'fsdp.psum' first";
      continue;
    }
    if (isa<PvaryOp>(op) && state != AxisState::invariant)
      return op->emitOpError() << "has an operand that is " << stringify(state) << " over axis "
                               << axis << ", expected an invariant one; use it as it is";
    if (state == AxisState::partial && !isa<PsumOp, PsumScatterOp>(op))
      return op->emitOpError() << "has an operand that is partial over axis " << axis
                               << ", expected a varying one; use 'fsdp.psum' or "
                                  "'fsdp.psum_scatter' first";
    state = isa<PsumOp, PmaxOp>(op) ? AxisState::invariant : AxisState::varying;
  }
  states[op->getResult(0)] = result;
  return success();
}

LogicalResult ManualTypes::visit(Operation *op) {
  if (isManualCollective(op))
    return visitCollective(op);
  if (auto index = dyn_cast<AxisIndexOp>(op)) {
    AxisStates &result = states[index.getResult()];
    result.assign(axes.size(), AxisState::invariant);
    for (StringAttr axis : getAxisNames(index.getOver())) {
      auto *own = llvm::find(axes, axis);
      if (own == axes.end())
        return op->emitOpError() << "is over axis " << axis << ", expected axes of its region";
      result[own - axes.begin()] = AxisState::varying;
    }
    return success();
  }
  // Draws and counts of samples go by places in whole values, which parts do not know.
  const bool computes =
      op->hasTrait<OpTrait::ConstantLike>() || isa<ManualOp>(op) ||
      (isa<nn::ShardingRuleOpInterface>(op) && !isa<FSDPDialect>(op->getDialect()));
  if (!computes)
    return op->emitOpError() << "is in 'fsdp.manual', expected computation, the collectives of a "
                                "region, or another region; pass what it reads as an operand, and "
                                "use it outside";
  return visitCompute(op);
}

FailureOr<ManualTypes> ManualTypes::infer(ManualOp region) {
  ManualTypes types;
  types.axes = getAxisNames(region.getOver());
  Block &body = region.getBody().front();
  for (auto [argument, sharding] :
       llvm::zip_equal(body.getArguments(), region.getInShardings().getAsRange<ShardingAttr>()))
    types.states[argument] = getBoundaryStates(sharding, types.axes);
  for (Operation &op : body.without_terminator())
    if (failed(types.visit(&op)))
      return failure();
  return types;
}

//===----------------------------------------------------------------------===//
// Inlining
//===----------------------------------------------------------------------===//

namespace {
/// Puts the body of a region in its place.
class Inliner {
public:
  Inliner(ManualOp region, ManualTypes types)
      : region(region), types(std::move(types)), over(getAxisNames(region.getOver())),
        builder(region) {}

  void run();

private:
  Value varied(Value value, const AxisStates &wanted);
  bool hoist(Value value, ArrayRef<StringAttr> axes, const AxisStates &wanted);
  void vary(Operation *op);

  ManualOp region;
  ManualTypes types; ///< also of the values in `made`
  SmallVector<StringAttr> over;
  OpBuilder builder;
  DenseMap<std::pair<Value, Attribute>, Value> made;
};
} // namespace

static int64_t elementsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

/// Makes `value` varying by varying operands of its op instead, where these have fewer elements,
/// and nothing else uses it: sums of cotangents are formed over ranks where they are smallest, and
/// at the boundary where they can be.
bool Inliner::hoist(Value value, ArrayRef<StringAttr> axes, const AxisStates &wanted) {
  Operation *maker = value.getDefiningOp();
  if (!maker || !value.hasOneUse() || maker->getNumResults() != 1 || isManualCollective(maker) ||
      !isa<nn::ShardingRuleOpInterface>(maker))
    return false;
  int64_t elements = 0;
  for (Value operand : maker->getOperands())
    if (Operation *definer = operand.getDefiningOp();
        !definer || !definer->hasTrait<OpTrait::ConstantLike>())
      elements += elementsOf(operand);
  if (elements == 0 || elements > elementsOf(value))
    return false;
  for (OpOperand &operand : maker->getOpOperands())
    operand.set(varied(operand.get(), wanted));
  types.addVarying(value, value, axes);
  return true;
}

/// `value`, varying where it is invariant and `wanted` is not.
Value Inliner::varied(Value value, const AxisStates &wanted) {
  // Numbers and indices have no cotangents.
  Operation *maker = value.getDefiningOp();
  if (!isa<FloatType>(getElementTypeOrSelf(value.getType())) ||
      (maker && maker->hasTrait<OpTrait::ConstantLike>()))
    return value;
  SmallVector<StringAttr> axes;
  for (auto [axis, has, wants] : llvm::zip_equal(over, types.lookup(value), wanted))
    if (has == AxisState::invariant && wants != AxisState::invariant)
      axes.push_back(axis);
  if (axes.empty())
    return value;
  if (hoist(value, axes, wanted))
    return value;
  ArrayAttr key = getAxisArray(region.getContext(), axes);
  Value &vary = made[{value, key}];
  if (!vary) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfterValue(value);
    auto op = PvaryOp::create(builder, value.getLoc(), value.getType(), value, key);
    if (maker)
      if (Attribute structure = maker->getAttr(FSDPDialect::structureAttrName))
        op->setAttr(FSDPDialect::structureAttrName, structure);
    vary = op;
    types.addVarying(op, value, axes);
  }
  return vary;
}

/// Gives `op` varying operands where its results vary.
void Inliner::vary(Operation *op) {
  AxisStates wanted(over.size(), AxisState::invariant);
  if (isManualCollective(op)) {
    if (isa<PvaryOp>(op))
      return;
    for (StringAttr axis : getManualCollectiveAxes(op))
      wanted[llvm::find(over, axis) - over.begin()] = AxisState::varying;
  } else if (op->getNumResults() > 0) {
    wanted = types.lookup(op->getResult(0));
  }
  for (OpOperand &operand : op->getOpOperands())
    operand.set(varied(operand.get(), wanted));
}

void Inliner::run() {
  Block &body = region.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator()))
    if (!isa<AxisIndexOp>(op))
      vary(&op);
  Operation *yield = body.getTerminator();
  for (auto [operand, sharding] :
       llvm::zip_equal(yield->getOpOperands(), region.getOutShardings().getAsRange<ShardingAttr>()))
    operand.set(varied(operand.get(), getBoundaryStates(sharding, over)));
  const Attribute structure = region->getAttr(FSDPDialect::structureAttrName);
  auto mark = [&](Operation *op) {
    if (op && structure && !op->hasAttr(FSDPDialect::structureAttrName))
      op->setAttr(FSDPDialect::structureAttrName, structure);
  };
  for (auto [argument, operand, sharding] :
       llvm::zip_equal(body.getArguments(), region.getInputs(),
                       region.getInShardings().getAsRange<ShardingAttr>())) {
    if (argument.use_empty())
      continue;
    Value own = enterManual(builder, operand.getLoc(), operand, sharding, region.getOver());
    mark(own.getDefiningOp());
    mark(own.getDefiningOp()->getOperand(0).getDefiningOp<ConstraintOp>());
    argument.replaceAllUsesWith(own);
  }
  region->getBlock()->getOperations().splice(region->getIterator(), body.getOperations(),
                                             body.begin(), std::prev(body.end()));
  for (auto [value, result, sharding] :
       llvm::zip_equal(yield->getOperands(), region.getResults(),
                       region.getOutShardings().getAsRange<ShardingAttr>())) {
    auto whole = ExitManualOp::create(builder, value.getLoc(), result.getType(), value, sharding,
                                      region.getOver());
    mark(whole);
    result.replaceAllUsesWith(whole);
  }
  region.erase();
}

void mlir::fsdp::inlineManual(ManualOp region) {
  FailureOr<ManualTypes> types = ManualTypes::infer(region);
  assert(succeeded(types) && "the verifier has accepted the region");
  Inliner(region, std::move(*types)).run();
}

void mlir::fsdp::inlineManual(StepOp step) {
  // An outer region first: the body of an inner one may use its values.
  SmallVector<ManualOp> regions;
  step.walk<WalkOrder::PreOrder>([&](ManualOp region) { regions.push_back(region); });
  for (ManualOp region : regions)
    inlineManual(region);
}

//===----------------------------------------------------------------------===//
// Local terms in a step without regions
//===----------------------------------------------------------------------===//

ManualAxes::ManualAxes(StepOp step) {
  MeshAttr mesh = getMesh(step);
  auto sort = [&](SmallVector<StringAttr> &names) {
    llvm::sort(names, [&](StringAttr a, StringAttr b) {
      return mesh.getAxisIndex(a) < mesh.getAxisIndex(b);
    });
    names.erase(llvm::unique(names), names.end());
  };
  step.walk([&](Operation *op) {
    const bool isNumber =
        op->hasTrait<OpTrait::ConstantLike>() ||
        (op->getNumOperands() > 0 && op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(), [&](Value value) { return constants.contains(value); }));
    if (isNumber)
      constants.insert_range(op->getResults());
    SmallVector<StringAttr> own;
    for (Value operand : op->getOperands())
      llvm::append_range(own, lookup(operand));
    if (auto enter = dyn_cast<EnterManualOp>(op))
      llvm::append_range(own, getAxisNames(enter.getOver()));
    else if (auto index = dyn_cast<AxisIndexOp>(op))
      llvm::append_range(own, getAxisNames(index.getOver()));
    else if (isManualCollective(op))
      llvm::append_range(own, getManualCollectiveAxes(op));
    else if (auto exit = dyn_cast<ExitManualOp>(op)) {
      llvm::append_range(all, getAxisNames(exit.getOver())); // also if no value enters the region
      llvm::erase_if(own,
                     [&](StringAttr axis) { return llvm::is_contained(exit.getOver(), axis); });
    }
    if (auto checkpoint = dyn_cast<CheckpointOp>(op)) {
      Operation *yield = checkpoint.getBody().front().getTerminator();
      for (auto [result, value] : llvm::zip_equal(op->getResults(), yield->getOperands()))
        if (ArrayRef<StringAttr> inside = lookup(value); !inside.empty())
          axes[result] = SmallVector<StringAttr>(inside);
      return;
    }
    if (own.empty())
      return;
    sort(own);
    llvm::append_range(all, own);
    for (Value result : op->getResults())
      axes[result] = own;
  });
  sort(all);
}

ArrayRef<StringAttr> ManualAxes::lookup(Value value) const {
  auto known = axes.find(value);
  return known == axes.end() ? ArrayRef<StringAttr>() : ArrayRef<StringAttr>(known->second);
}

LogicalResult ManualAxes::verify(StepOp step) const {
  WalkResult result = step.walk([&](Operation *op) {
    auto requireManual = [&](ArrayRef<StringAttr> over) {
      // Values computed from constants are the same in any terms.
      if (constants.contains(op->getOperand(0)))
        return true;
      for (StringAttr axis : over)
        if (!llvm::is_contained(lookup(op->getOperand(0)), axis)) {
          op->emitOpError() << "is over axis " << axis
                            << ", over which its operand is not in local terms, expected the "
                               "result of 'fsdp.enter_manual'; write it in 'fsdp.manual'";
          return false;
        }
      return true;
    };
    if (isManualCollective(op) && !requireManual(getManualCollectiveAxes(op)))
      return WalkResult::interrupt();
    if (auto exit = dyn_cast<ExitManualOp>(op);
        exit && !requireManual(getAxisNames(exit.getOver())))
      return WalkResult::interrupt();
    if (auto enter = dyn_cast<EnterManualOp>(op))
      for (StringAttr axis : getAxisNames(enter.getOver()))
        if (llvm::is_contained(lookup(enter.getInput()), axis)) {
          op->emitOpError() << "is over axis " << axis
                            << ", over which its operand is in local terms already";
          return WalkResult::interrupt();
        }
    if (op->getNumResults() == 0 && !op->hasTrait<OpTrait::IsTerminator>())
      for (Value operand : op->getOperands())
        if (!lookup(operand).empty()) {
          op->emitOpError() << "takes a value in the local terms of axis "
                            << lookup(operand).front()
                            << ", expected a whole one; use 'fsdp.exit_manual' first";
          return WalkResult::interrupt();
        }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
