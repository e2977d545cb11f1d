//===- StepShardings.cpp - the sharding of every value of a step ----------===//

#include "passes/sharding/StepShardings.h"
#include "dialect/fsdp/Manual.h"
#include "dialect/fsdp/Prints.h"
#include "dialect/fsdp/Structure.h"
#include "passes/sharding/MeshAxes.h"

using namespace mlir;
using namespace mlir::fsdp;

std::string mlir::fsdp::nameOf(Value value) {
  if (auto name = value.getLoc()->findInstanceOf<NameLoc>())
    return name.getName().str();
  Operation *op = value.getDefiningOp();
  return op ? op->getName().getStringRef().str() : "argument";
}

bool mlir::fsdp::reducesByMaximum(Operation *op) {
  auto reduce = dyn_cast<nn::ReduceOp>(op);
  return reduce && reduce.getKind() == nn::Reduction::max;
}

double mlir::fsdp::getReductionIdentity(Operation *op, Value value) {
  if (!reducesByMaximum(op))
    return 0;
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(value.getType()));
  if (!integer)
    return -std::numeric_limits<double>::infinity();
  return static_cast<double>(APInt::getSignedMinValue(integer.getWidth()).getSExtValue());
}

/// True if the partial results of the ranks add up to the value of `op`; those of a maximum or a
/// mean do not.
static bool leavesSums(Operation *op) {
  auto reduce = dyn_cast<nn::ReduceOp>(op);
  return !reduce || reduce.getKind() == nn::Reduction::sum;
}

DimAxes StepShardings::axesOf(Value value) const { return dimAxesOf(lookup(value)); }

SmallVector<DimAxes> StepShardings::axesOf(ValueRange values) const {
  return llvm::map_to_vector(values, [&](Value value) { return axesOf(value); });
}

const StepShardings::Taken &StepShardings::take(Operation *op) const {
  const nn::ShardingRule &rule = *getRule(op);
  SmallVector<const void *, 8> key = {&rule};
  for (ValueRange values : {ValueRange(op->getOperands()), ValueRange(op->getResults())})
    for (Value value : values)
      key.push_back(lookup(value).getAsOpaquePointer());
  if (auto known = splits.find(ArrayRef(key)); known != splits.end())
    return *known->second;
  SmallVector<DimAxes> operands = axesOf(op->getOperands());
  // A value that enters local terms is split over the manual axes by the op's sharding.
  SmallVector<DimAxes> wanted = operands;
  if (auto enter = dyn_cast<EnterManualOp>(op)) {
    wanted.assign(1, {});
    for (int64_t dim = 0; dim < enter.getSharding().getRank(); ++dim)
      wanted.front().push_back(getSplittingAxes(enter.getSharding(), dim, getMesh(step)));
  }
  auto taken = std::make_unique<Taken>(
      Taken{OpSplit::settle(rule, getMesh(step), wanted, axesOf(ValueRange(op->getResults()))),
            /*asIs=*/false});
  taken->asIs = llvm::all_of(llvm::zip_equal(operands, rule.operands), [&](auto pair) {
    return std::get<0>(pair) == taken->split.project(std::get<1>(pair));
  });
  return *splits.try_emplace(ArrayRef<const void *>(key).copy(keys), std::move(taken))
              .first->second;
}

std::optional<AxisList> StepShardings::getLoadAxes() const {
  std::optional<AxisList> load;
  for (InputOp input : step.getBody().getOps<InputOp>()) {
    AxisList axes = lookup(input.getResult()).getAxes(input.getSampleDim());
    if (!llvm::is_contained(axes, kMicrobatchAxis))
      continue;
    llvm::erase(axes, kMicrobatchAxis);
    if (load && *load != axes)
      return std::nullopt;
    load = axes;
  }
  return load;
}

bool StepShardings::hasWholeSamples() const {
  std::optional<AxisList> load = getLoadAxes();
  if (!load)
    return false;
  MeshAttr mesh = getMesh(step);
  load->push_back(StringAttr::get(mesh.getContext(), kMicrobatchAxis));
  const int64_t loaded = mesh.getSize(*load);
  for (Operation &op : step.getBody().front()) {
    if (!getRule(&op))
      continue;
    const nn::ShardingRule &rule = *getRule(&op);
    const OpSplit &taken = split(&op);
    for (size_t factor = 0; factor < rule.factors.size(); ++factor) {
      ArrayRef<StringAttr> axes = taken.getAxes(factor);
      const int64_t size = rule.factors[factor].size;
      if (!llvm::is_contained(axes, kMicrobatchAxis))
        continue;
      // Samples are the major factor of merged dimensions: a factor major to them would divide the
      // batch.
      auto isMinor = [&](const nn::DimFactors &dim) {
        const auto *own = llvm::find(dim, static_cast<int64_t>(factor));
        return own != dim.end() &&
               llvm::any_of(llvm::make_range(dim.begin(), own),
                            [&](int64_t major) { return rule.factors[major].size != 1; });
      };
      auto isMinorAnywhere = [&](const nn::TensorFactors &tensor) {
        return llvm::any_of(tensor, isMinor);
      };
      if (size % loaded != 0 || size % mesh.getSize(axes) != 0 ||
          llvm::any_of(rule.operands, isMinorAnywhere) ||
          llvm::any_of(rule.results, isMinorAnywhere))
        return false;
    }
  }
  return true;
}

/// Partial sums over `partial` as an op passes them on. Where they enter local terms, they are the
/// pending sum of the boundary along the manual axes over which its sharding is unreduced, and no
/// longer one of the value; nothing where they must be completed first.
static std::optional<AxisList> passOn(Operation *op, ArrayRef<StringAttr> partial) {
  AxisList passed(partial);
  if (auto enter = dyn_cast<EnterManualOp>(op))
    for (StringAttr axis : getAxisNames(enter.getOver())) {
      if (!llvm::is_contained(partial, axis))
        continue;
      if (!llvm::is_contained(enter.getSharding().getUnreduced(), axis))
        return std::nullopt;
      llvm::erase(passed, axis);
    }
  return passed;
}

/// True for values used only as gradients: they are reduced in their own type.
static bool isGradient(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<GradientOp, GlobalNormOp, UpdateOp>(user) ||
           (isa<arith::AddFOp, ConstraintOp, ReshardOp>(user) && isGradient(user->getResult(0)));
  });
}

bool StepShardings::addsPartialSums(Operation *op) const {
  const nn::Linearity linearity = nn::getLinearity(op);
  // A cast rounds each partial sum: this is the meaning of a reduction in a narrow type.
  if (linearity != nn::Linearity::additive &&
      !(linearity == nn::Linearity::rounding && isGradient(op->getResult(0))))
    return false;
  ArrayRef<StringAttr> first = lookup(op->getOperand(0)).getUnreduced();
  if (first.empty() || llvm::any_of(op->getOperands(), [&](Value operand) {
        return lookup(operand).getUnreduced() != first || !leavesSums(operand.getDefiningOp());
      }))
    return false;
  if (!passOn(op, first))
    return false;
  // An operand whose split differs from the one that the op needs is moved, and a moved value is
  // complete.
  return takesAsIs(op);
}

/// True where `op` can multiply partial sums over `partial` of its operand `index`, and the product
/// is added up over ranks in any case: it is a partial sum itself, or a gradient.
bool StepShardings::multipliesPartialSums(Operation *op, unsigned index,
                                          ArrayRef<StringAttr> partial) const {
  auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(op);
  if (!ruled || ruled.getLinearity() != nn::Linearity::product)
    return false;
  const nn::ShardingRule &rule = *getRule(op);
  const OpSplit &taken = split(op);
  if (axesOf(op->getOperand(index)) != taken.project(rule.operands[index]))
    return false;
  // The other operand is the same on all ranks that have terms of the sum.
  for (size_t factor = 0; factor < rule.factors.size(); ++factor)
    if (llvm::any_of(taken.getAxes(factor),
                     [&](StringAttr axis) { return llvm::is_contained(partial, axis); }))
      return false;
  return !taken.getReducedAxes(rule.results.front()).empty() || isGradient(op->getResult(0));
}

SmallVector<AxisList> StepShardings::getCarried(Operation *op) const {
  if (addsPartialSums(op))
    return SmallVector<AxisList>(op->getNumOperands(),
                                 AxisList(lookup(op->getOperand(0)).getUnreduced()));
  SmallVector<AxisList> carried(op->getNumOperands());
  for (OpOperand &operand : op->getOpOperands()) {
    ShardingAttr sharding = lookup(operand.get());
    ArrayRef<StringAttr> partial = sharding ? sharding.getUnreduced() : ArrayRef<StringAttr>();
    // A value that one user needs complete is complete for all users, except reports.
    auto keeps = [&](OpOperand &use) {
      auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(use.getOwner());
      return use.getOwner()->hasAttr(kReportAttrName) ||
             multipliesPartialSums(use.getOwner(), use.getOperandNumber(), partial) ||
             (ruled && ruled.getLinearity() == nn::Linearity::additive &&
              use.getOwner()->getNumOperands() == 1);
    };
    if (partial.empty() || !leavesSums(operand.get().getDefiningOp()) ||
        !multipliesPartialSums(op, operand.getOperandNumber(), partial) ||
        !llvm::all_of(operand.get().getUses(), keeps))
      continue;
    carried[operand.getOperandNumber()] = AxisList(partial);
    break;
  }
  return carried;
}

/// The axes over which the value of `exit` is the sum of the ranks' values.
static AxisList getSummedAxes(ExitManualOp exit) {
  AxisList axes(exit.getSharding().getUnreduced());
  llvm::erase_if(axes, [&](StringAttr axis) { return getMesh(exit).getAxisSize(axis) == 1; });
  return axes;
}

/// The order of the axes of a partial sum.
static bool isBefore(StringAttr a, StringAttr b) { return a.getValue() < b.getValue(); }

AxisList StepShardings::unreducedOf(OpResult value) const {
  Operation *op = value.getOwner();
  // A constraint on a parameter also constrains its gradient, which is reduced once, into its
  // storage.
  if (auto constraint = dyn_cast<ConstraintOp>(op);
      constraint && isGradient(value) && axesOf(constraint.getInput()) == axesOf(value) &&
      leavesSums(constraint.getInput().getDefiningOp()))
    return AxisList(lookup(constraint.getInput()).getUnreduced());
  if (!getRule(op) || isa<ConstraintOp, ReshardOp>(op))
    return {};
  const nn::ShardingRule &rule = *getRule(op);
  AxisList axes = split(op).getReducedAxes(rule.results[value.getResultNumber()]);
  if (auto exit = dyn_cast<ExitManualOp>(op))
    llvm::append_range(axes, getSummedAxes(exit));
  for (const AxisList &carried : getCarried(op))
    for (StringAttr axis : passOn(op, carried).value_or(AxisList()))
      if (!llvm::is_contained(axes, axis))
        axes.push_back(axis);
  llvm::sort(axes, isBefore);
  return axes;
}

void StepShardings::assign(Operation *op, ArrayRef<DimAxes> axes) {
  auto mesh = FlatSymbolRefAttr::get(getMeshOp(step).getSymNameAttr());
  for (auto [value, split] : llvm::zip_equal(op->getResults(), axes))
    shardings[value] = ShardingAttr::getCanonical(mesh, split, {});
  // Partial axes depend on the splits of all results.
  SmallVector<AxisList> unreduced =
      llvm::map_to_vector(op->getResults(), [&](OpResult value) { return unreducedOf(value); });
  for (auto [value, split, partial] : llvm::zip_equal(op->getResults(), axes, unreduced))
    shardings[value] = ShardingAttr::getCanonical(mesh, split, partial);
}

AxisList StepShardings::findSummed(OpResult result, const OpSplit &taken) const {
  Operation *op = result.getOwner();
  if (!leavesSums(op))
    return {};
  const nn::ShardingRule &rule = *getRule(op);
  auto ruled = cast<nn::ShardingRuleOpInterface>(op);
  if (auto exit = dyn_cast<ExitManualOp>(op)) {
    AxisList axes = partial.lookup(exit.getInput());
    llvm::append_range(axes, getSummedAxes(exit));
    llvm::sort(axes, isBefore);
    return axes;
  }
  if (ruled.getLinearity() == nn::Linearity::additive) {
    // A sum of partial sums over the same axes is one.
    AxisList first = partial.lookup(op->getOperand(0));
    const bool agree = llvm::all_of(
        op->getOperands(), [&](Value operand) { return partial.lookup(operand) == first; });
    return agree ? passOn(op, first).value_or(AxisList()) : AxisList();
  }
  AxisList axes = taken.getReducedAxes(rule.results[result.getResultNumber()]);
  // A product that is added up anyway carries the sums of an operand: see getCarried.
  if (ruled.getLinearity() == nn::Linearity::product && !axes.empty())
    for (Value operand : op->getOperands())
      for (StringAttr axis : partial.lookup(operand))
        if (!llvm::is_contained(axes, axis))
          axes.push_back(axis);
  llvm::sort(axes, isBefore);
  return axes;
}

void StepShardings::keepSums(Operation *op) {
  if (op->getNumResults() != 1 || isa<EnterManualOp, ExitManualOp>(op) || takesAsIs(op))
    return;
  Value result = op->getResult(0);
  const ShardingAttr wanted = lookup(result);
  auto leaveOut = [&](ArrayRef<StringAttr> axes) {
    DimAxes fewer = dimAxesOf(wanted);
    for (AxisList &dim : fewer)
      llvm::erase_if(dim, [&](StringAttr axis) { return llvm::is_contained(axes, axis); });
    shardings[result] = ShardingAttr::getCanonical(wanted.getMesh(), fewer, {});
  };
  // The axes of the sum appear if the result has none of the operands' axes.
  AxisList used;
  for (Value operand : op->getOperands()) {
    for (const AxisList &dim : axesOf(operand))
      llvm::append_range(used, dim);
    llvm::append_range(used, partial.lookup(operand));
  }
  leaveOut(used);
  AxisList summed = findSummed(op->getResult(0), split(op));
  leaveOut(summed);
  if (takesAsIs(op))
    return;
  // Then also without axes that no operand has: users that complete the sum split it over them.
  if (!summed.empty()) {
    for (const AxisList &dim : dimAxesOf(wanted))
      llvm::copy_if(dim, std::back_inserter(summed),
                    [&](StringAttr axis) { return !llvm::is_contained(used, axis); });
    leaveOut(summed);
  }
  if (!takesAsIs(op))
    shardings[result] = wanted;
}

void StepShardings::insertReshards(Operation *op) {
  if (!getRule(op) || isa<ConstraintOp, ReshardOp>(op))
    return;
  keepSums(op);
  const nn::ShardingRule &rule = *getRule(op);
  const auto &[taken, asIs] = take(op);
  if (asIs)
    for (OpResult result : op->getResults())
      partial[result] = findSummed(result, taken);
  auto mesh = FlatSymbolRefAttr::get(getMeshOp(step).getSymNameAttr());
  // All results of an op have one split; users that need another split move the value.
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), rule.results))
    shardings[result] = ShardingAttr::getCanonical(mesh, taken.project(tensor), {});
  for (auto [index, tensor] : llvm::enumerate(rule.operands)) {
    Value operand = op->getOperand(index);
    DimAxes wanted = taken.project(tensor), has = axesOf(operand);
    wanted.resize(has.size());
    if (wanted == has)
      continue;
    ShardingAttr sharding = ShardingAttr::getCanonical(mesh, wanted, {});
    Value &moved = resharded[{operand, sharding}];
    if (!moved) {
      OpBuilder builder(op);
      auto reshard =
          ReshardOp::create(builder, operand.getLoc(), operand.getType(), operand, sharding);
      setStructure(reshard, getStructure(op));
      moved = reshard;
      shardings[moved] = sharding;
    }
    op->setOperand(index, moved);
  }
}

StepShardings StepShardings::take(StepOp step, llvm::function_ref<DimAxes(Value)> axesOf) {
  StepShardings result(step);
  // All splits first: they determine the operand shardings of each op.
  for (Operation &op : step.getBody().front())
    for (Value value : op.getResults())
      result.shardings[value] = ShardingAttr::getCanonical(
          FlatSymbolRefAttr::get(getMeshOp(step).getSymNameAttr()), axesOf(value), {});
  for (Operation &op : llvm::make_early_inc_range(step.getBody().front()))
    result.insertReshards(&op);
  for (Operation &op : step.getBody().front())
    result.assign(&op, result.axesOf(ValueRange(op.getResults())));
  return result;
}

FailureOr<StepShardings> StepShardings::read(StepOp step) {
  StepShardings result(step);
  for (Operation &op : step.getBody().front()) {
    if (op.getNumResults() == 0)
      continue;
    auto attrs = op.getAttrOfType<ArrayAttr>(FSDPDialect::shardingsAttrName);
    bool complete = attrs && attrs.size() == op.getNumResults() &&
                    llvm::all_of(attrs, [](Attribute attr) { return isa<ShardingAttr>(attr); });
    if (!complete)
      return op.emitOpError() << "has no sharding for each of its " << op.getNumResults()
                              << " results; run --fsdp-propagate first";
    for (auto [value, attr] : llvm::zip_equal(op.getResults(), attrs))
      result.shardings[value] = cast<ShardingAttr>(attr);
  }
  if (failed(result.verify()))
    return failure();
  return result;
}

void StepShardings::write() const {
  for (Operation &op : step.getBody().front()) {
    SmallVector<Attribute> attrs;
    for (Value value : op.getResults())
      attrs.push_back(lookup(value));
    if (!attrs.empty())
      op.setAttr(FSDPDialect::shardingsAttrName, ArrayAttr::get(step.getContext(), attrs));
  }
}

/// The axes over which the parameter is split along `dim` in compute.
static SmallVector<StringAttr> getComputeAxes(ReadOp read, int64_t dim,
                                              const SymbolTable &symbols) {
  auto param = symbols.lookup<ParamOp>(read.getParam());
  PlacementAttr placement = param.getPlacementAttr();
  return placement && placement.getCompute() ? placement.getCompute().getAxes(dim)
                                             : SmallVector<StringAttr>();
}

SmallVector<bool> StepShardings::findAdmitted(OpResult result) const {
  const nn::ShardingRule *rule = getRule(result.getOwner());
  const unsigned index = result.getResultNumber();
  auto [known, isNew] = admitted.try_emplace({{rule, index}, lookup(result)});
  if (isNew)
    known->second =
        OpSplit::findAdmitted(*rule, getMesh(step), rule->results[index], axesOf(result));
  return known->second;
}

LogicalResult StepShardings::verifyResults(Operation *op, const SymbolTable &symbols) const {
  MeshAttr mesh = getMesh(step);
  const nn::ShardingRule *rule = getRule(op);
  for (auto [index, value] : llvm::enumerate(op->getResults())) {
    ShardingAttr sharding = lookup(value);
    auto type = cast<RankedTensorType>(value.getType());
    if (sharding.getRank() != type.getRank())
      return op->emitOpError() << "has a sharding of " << sharding.getRank()
                               << " dimensions for result #" << index << ", expected "
                               << type.getRank();
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      for (StringAttr axis : sharding.getAxes(dim))
        if (mesh.getAxisIndex(axis) < 0)
          return op->emitOpError()
                 << "has a sharding over axis '" << axis.getValue() << "', which the mesh lacks";
    const SmallVector<bool> made = rule ? findAdmitted(value) : SmallVector<bool>();
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      SmallVector<StringAttr> axes = sharding.getAxes(dim);
      bool admitted = axes.empty();
      if (auto input = dyn_cast<InputOp>(op))
        admitted |= dim == static_cast<int64_t>(input.getSampleDim());
      else if (auto read = dyn_cast<ReadOp>(op))
        admitted |= axes == getComputeAxes(read, dim, symbols);
      else if (isa<ConstraintOp, ReshardOp>(op))
        admitted = true;
      else if (isa<CarryLoadOp>(op))
        admitted |= type.getDimSize(dim) % mesh.getSize(axes) == 0;
      else if (rule)
        admitted |= made[dim];
      // The manual axes of a value that leaves local terms come first.
      if (auto exit = dyn_cast<ExitManualOp>(op)) {
        const SmallVector<StringAttr> first = getSplittingAxes(exit.getSharding(), dim, mesh);
        admitted &= ArrayRef(axes).take_front(first.size()) == ArrayRef(first);
        if (!admitted && llvm::is_contained(axes, kMicrobatchAxis))
          return op->emitError() << "a manual region splits the samples of dimension " << dim
                                 << " of its result over '" << first.front().getValue()
                                 << "', across the microbatches of a step; train without gradient "
                                    "accumulation";
      }
      if (!admitted)
        return op->emitOpError() << "has a sharding that splits dimension " << dim << " of result #"
                                 << index << ", which this op cannot produce";
    }
  }
  return success();
}

LogicalResult StepShardings::verify() const {
  SymbolTable symbols(step->getParentOfType<ModuleOp>());
  const ManualAxes manual(step);
  if (failed(manual.verify(step)))
    return failure();
  for (Operation &op : step.getBody().front()) {
    if (op.getNumResults() == 0)
      continue;
    if (failed(verifyResults(&op, symbols)))
      return failure();
    for (OpResult value : op.getResults()) {
      for (StringAttr axis : manual.lookup(value))
        for (int64_t dim = 0; dim < lookup(value).getRank(); ++dim)
          if (llvm::is_contained(lookup(value).getAxes(dim), axis))
            return op.emitOpError()
                   << "has a sharding that splits dimension " << dim << " over axis " << axis
                   << ", over which it is in local terms, expected other axes";
      AxisList expected = unreducedOf(value);
      ArrayRef<StringAttr> got = lookup(value).getUnreduced();
      if (got == ArrayRef<StringAttr>(expected))
        continue;
      auto print = [](ArrayRef<StringAttr> axes) {
        return "{" +
               llvm::join(llvm::map_range(axes, [](StringAttr axis) { return axis.str(); }), ", ") +
               "}";
      };
      return op.emitOpError() << "has a sharding with partial results over " << print(got)
                              << ", expected " << print(expected);
    }
  }
  return success();
}
