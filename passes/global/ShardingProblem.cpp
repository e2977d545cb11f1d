//===- ShardingProblem.cpp - steps as a propagation problem ---------------===//
//
// Translates the ops of all steps into values and rules (passes/propagation/), and the solution
// back. Shardings that fsdp-partition cannot produce are refused to the solver here, value by
// value: dimensions whose shards would be uneven (OpSplit::admits).
//
//===----------------------------------------------------------------------===//

#include "passes/global/ShardingProblem.h"
#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "dialect/fsdp/Generation.h"
#include "passes/propagation/Projection.h"
#include "passes/sharding/MeshAxes.h"

using namespace mlir;
using namespace mlir::fsdp;
using propagation::OpKind;

static bool isReduced(const nn::Factor &factor) {
  return factor.kind == nn::FactorKind::sumReduction || factor.kind == nn::FactorKind::maxReduction;
}

/// A factor of size 1 next to others is left out: its axes need not divide the last of the others
/// (heads, each in a separate group).
static propagation::Mapping mappingOf(const nn::ShardingRule &rule,
                                      const nn::TensorFactors &tensor) {
  propagation::Mapping dims;
  for (const nn::DimFactors &dim : tensor) {
    dims.emplace_back();
    for (int64_t factor : dim)
      if (rule.factors[factor].size != 1 || dim.size() == 1)
        dims.back().push_back(factor);
  }
  return dims;
}

/// True for a constraint that leaves all dimensions open: it only introduces another value.
static bool asksForNothing(ShardingAttr sharding) {
  for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
    if (!sharding.getDimOpen()[dim] || !sharding.getAxes(dim).empty())
      return false;
  return true;
}

/// The role of `op` in the order of propagation, from its rule alone.
static OpKind kindOf(Operation *op, const nn::ShardingRule &rule) {
  if (auto constraint = dyn_cast<ConstraintOp>(op))
    return asksForNothing(constraint.getSharding()) ? OpKind::elementwise : OpKind::constraint;
  if (nn::isElementwise(op))
    return OpKind::elementwise;
  bool repeats = false;
  for (size_t factor = 0; factor < rule.factors.size(); ++factor) {
    if (rule.factors[factor].kind != nn::FactorKind::parallel ||
        !nn::anyRunsOver(rule.results, factor))
      return OpKind::contraction;
    repeats |= !nn::anyRunsOver(rule.operands, factor);
  }
  if (op->getNumOperands() != 1)
    return OpKind::contraction;
  return repeats ? OpKind::broadcast : OpKind::passThrough;
}

propagation::AxisList ShardingProblem::toAxes(ArrayRef<StringAttr> names) const {
  propagation::AxisList axes;
  for (StringAttr name : names)
    axes.push_back(propagation::wholeAxis(problem.mesh, mesh.getAxisIndex(name)));
  return axes;
}

AxisList ShardingProblem::toNames(const propagation::AxisList &axes) const {
  return llvm::map_to_vector(
      axes, [&](const propagation::AxisPart &axis) { return mesh.getAxisNames()[axis.axis]; });
}

/// `names` without axes of size 1: a model names axes that only some meshes have.
SmallVector<StringAttr> ShardingProblem::splittingAxes(ArrayRef<StringAttr> names) const {
  return llvm::filter_to_vector(names,
                                [&](StringAttr name) { return mesh.getAxisSize(name) != 1; });
}

propagation::Sharding ShardingProblem::shardingOf(ParamOp param) const {
  PlacementAttr placement = param.getPlacementAttr();
  ShardingAttr compute = placement ? placement.getCompute() : ShardingAttr();
  propagation::Sharding sharding;
  propagation::AxisList taken;
  for (auto [index, axis] : llvm::enumerate(mesh.getAxisNames()))
    if (getAxisRole(axis).storesParameters || llvm::is_contained(batchAxes, axis) ||
        (placement && llvm::is_contained(placement.getAxes(), axis)))
      taken.push_back(propagation::wholeAxis(problem.mesh, index));
  const bool open = placement && !compute && taken.size() < mesh.getAxisNames().size();
  sharding.dims.assign(param.getTensorType().getRank(), {{}, open});
  if (open)
    sharding.replicated = taken;
  if (compute)
    for (auto [dim, split] : llvm::enumerate(sharding.dims))
      split.axes = toAxes(compute.getAxes(dim));
  return sharding;
}

bool ShardingProblem::isManual(Value value) const {
  Operation *op = value.getDefiningOp();
  auto constraint = dyn_cast<ConstraintOp>(op);
  return isa<ExitManualOp>(op) || (constraint && constraint.getManual()) ||
         !manual.at(op->getParentOp())->lookup(value).empty();
}

void ShardingProblem::keepManual(Value value, propagation::Sharding &sharding) const {
  Operation *op = value.getDefiningOp();
  SmallVector<StringAttr> axes(manual.at(op->getParentOp())->lookup(value));
  if (auto constraint = dyn_cast<ConstraintOp>(op); constraint && constraint.getManual())
    llvm::append_range(axes, getAxisNames(*constraint.getManual()));
  auto exit = dyn_cast<ExitManualOp>(op);
  if (exit)
    llvm::append_range(axes, getAxisNames(exit.getOver()));
  if (axes.empty())
    return;
  if (sharding.dims.empty())
    sharding.dims.assign(cast<RankedTensorType>(value.getType()).getRank(), {});
  if (exit)
    for (auto [dim, split] : llvm::enumerate(sharding.dims))
      split.axes = toAxes(getSplittingAxes(exit.getSharding(), dim, mesh));
  for (const propagation::AxisPart &axis : toAxes(axes))
    if (llvm::none_of(sharding.dims,
                      [&](const propagation::DimSharding &dim) {
                        return llvm::is_contained(dim.axes, axis);
                      }) &&
        !llvm::is_contained(sharding.replicated, axis))
      sharding.replicated.push_back(axis);
}

/// Samples that enter a region are split by the other axes of the batch behind those of the region:
/// propagation would not put them there, where they stand before these otherwise.
void ShardingProblem::splitSamples(ConstraintOp boundary, propagation::Sharding &sharding) const {
  auto input = boundary.getInput().getDefiningOp<InputOp>();
  if (!boundary.getManual() || !input || input->hasAttr(generatedAttrName))
    return;
  const int64_t dim = input.getSampleDim();
  AxisList axes = splittingAxes(boundary.getSharding().getAxes(dim));
  for (StringAttr axis : batchAxes)
    if (mesh.getAxisSize(axis) != 1 && !llvm::is_contained(*boundary.getManual(), axis))
      axes.push_back(axis);
  if (cast<RankedTensorType>(input.getType()).getDimSize(dim) % mesh.getSize(axes) == 0)
    sharding.dims[dim].axes = toAxes(axes);
}

LogicalResult ShardingProblem::addValues(Operation *op) {
  if (isa<CheckpointOp>(op))
    return op->emitOpError()
           << "must be lowered before --fsdp-propagate; run --fsdp-differentiate first";
  if (isa<ManualOp>(op))
    return op->emitOpError()
           << "must be lowered before --fsdp-propagate; run --fsdp-inline-manual first";
  if (op->getNumRegions() != 0)
    return op->emitOpError() << "has a region, which propagation does not support; run "
                                "--fsdp-propagate before --fsdp-fuse";
  for (Value value : op->getResults()) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || !type.hasStaticShape())
      return op->emitOpError() << "has result type " << value.getType()
                               << ", expected a ranked tensor with static shape";
    int64_t rank = type.getRank();
    auto read = dyn_cast<ReadOp>(op);
    auto load = dyn_cast<CarryLoadOp>(op);
    if (read || load) {
      // All reads of a parameter are one value.
      auto [known, isNew] =
          read ? parameters.try_emplace(read.getParamAttr().getAttr(), values.size())
               : carried.try_emplace(load.getCarriedAttr().getAttr(), values.size());
      if (!isNew) {
        numbers[value] = known->second;
        continue;
      }
    }
    numbers[value] = values.size();
    values.push_back(value);
    propagation::Value &node = problem.values.emplace_back();
    node.sizes.assign(type.getShape().begin(), type.getShape().end());
    auto closed = [&] { node.sharding.dims.assign(rank, {{}, /*open=*/false}); };
    if (auto input = dyn_cast<InputOp>(op)) {
      // Samples are split where the data are loaded; nothing else of an input is, and nothing of
      // one that the program makes.
      closed();
      if (!input->hasAttr(generatedAttrName))
        node.sharding.dims[input.getSampleDim()].axes = toAxes(batchAxes);
    } else if (load) {
      node.sharding.dims.assign(rank, {{}, /*open=*/true});
    } else if (read) {
      node.sharding = shardingOf(symbols.lookup<ParamOp>(read.getParam()));
    } else if (auto constraint = dyn_cast<ConstraintOp>(op)) {
      for (int64_t dim = 0; dim < rank; ++dim)
        node.sharding.dims.push_back(
            {toAxes(splittingAxes(constraint.getSharding().getAxes(dim))),
             constraint.getSharding().getDimOpen()[dim],
             constraint.getPriorities() ? (*constraint.getPriorities())[dim] : 0});
      splitSamples(constraint, node.sharding);
    } else if (auto reshard = dyn_cast<ReshardOp>(op)) {
      closed();
      for (int64_t dim = 0; dim < rank; ++dim)
        node.sharding.dims[dim].axes = toAxes(reshard.getSharding().getAxes(dim));
    } else if (!rules.get(op) && rank != 0) {
      return op->emitOpError()
             << "has no sharding rule, so its tensors cannot be split; use ops that have one";
    }
    if (isManual(value))
      keepManual(value, node.sharding);
  }
  return success();
}

void ShardingProblem::tie(const DenseMap<StringAttr, int> &symbols, StringAttr symbol,
                          Value value) {
  auto from = symbols.find(symbol);
  auto to = numbers.find(value);
  if (from == symbols.end() || to == numbers.end() || from->second == to->second)
    return;
  propagation::Op node;
  node.kind = OpKind::boundary;
  node.operands = {from->second};
  node.results = {to->second};
  propagation::Mapping identity;
  for (auto [dim, size] : llvm::enumerate(problem.values[from->second].sizes)) {
    node.factors.push_back({size, /*passThrough=*/true, /*blocked=*/false});
    identity.push_back({static_cast<int>(dim)});
  }
  node.operandDims = {identity};
  node.resultDims = {identity};
  problem.ops.push_back(std::move(node));
  ops.push_back(value.getDefiningOp());
}

void ShardingProblem::addOp(Operation *op) {
  if (auto update = dyn_cast<UpdateOp>(op))
    tie(parameters, update.getParamAttr().getAttr(), update.getGradient());
  if (auto store = dyn_cast<CarryStoreOp>(op))
    tie(carried, store.getCarriedAttr().getAttr(), store.getValue());

  const nn::ShardingRule *rule = rules.get(op);
  // A reshard fixes the sharding of its result; nothing propagates through it.
  const bool isMove = isa<ReshardOp>(op);
  if (!rule || isMove)
    for (Value operand : op->getOperands())
      if (auto number = numbers.find(operand); number != numbers.end())
        ++problem.values[number->second].otherUses;
  if (!rule)
    return;
  propagation::Op node;
  node.kind = kindOf(op, *rule);
  for (const nn::Factor &factor : rule->factors) {
    const bool isWhole = factor.kind == nn::FactorKind::whole;
    // Parts of rows need collectives, as parts of a sum do: ops without collectives come first.
    const bool isCombined = factor.kind == nn::FactorKind::combined && !factor.indexed;
    node.factors.push_back(
        {factor.size, !isReduced(factor) && !isWhole && !isCombined, /*blocked=*/isWhole});
  }
  for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), rule->operands)) {
    node.operands.push_back(numbers.lookup(operand));
    node.operandDims.push_back(mappingOf(*rule, tensor));
  }
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), rule->results)) {
    node.results.push_back(numbers.lookup(result));
    node.resultDims.push_back(mappingOf(*rule, tensor));
  }
  (isMove ? moves : problem.ops).push_back(std::move(node));
  (isMove ? moveOps : ops).push_back(op);
}

std::optional<OpSplit::DimSplit> ShardingProblem::toSplit(const propagation::AxisList &axes) const {
  OpSplit::DimSplit split;
  split.mayCut = mayCut;
  for (const propagation::AxisPart &axis : axes) {
    split.sizes.push_back(axis.size);
    // Axes over which samples are loaded are split only at the user's request, axes of manual
    // regions never.
    StringAttr name = mesh.getAxisNames()[axis.axis];
    const bool splitsBatch =
        llvm::is_contained(batchAxes, name) || llvm::is_contained(manualAxes, name);
    if (!isWhole(problem.mesh, axis) && splitsBatch)
      return std::nullopt;
    split.mayCut &= !splitsBatch;
    split.overMicrobatches |= name == kMicrobatchAxis;
  }
  return split;
}

bool ShardingProblem::admits(int value, int dim, const propagation::AxisList &axes,
                             const propagation::Sharding &current) const {
  auto result = cast<OpResult>(values[value]);
  std::optional<OpSplit::DimSplit> split = toSplit(axes);
  if (!split)
    return false;
  if (isa<ReadOp>(result.getOwner()))
    return true;
  // Carried tensors have no padding.
  if (isa<CarryLoadOp>(result.getOwner()))
    return problem.values[value].sizes[dim] % propagation::sizeOf(axes) == 0;
  const nn::ShardingRule *rule = rules.get(result.getOwner());
  if (!rule || isa<ConstraintOp>(result.getOwner()))
    return true;
  // Behind the axes of its region a dimension is split evenly: padding would be at the end of each
  // rank's part, not of the whole.
  if (auto exit = dyn_cast<ExitManualOp>(result.getOwner())) {
    const int64_t own = mesh.getSize(getSplittingAxes(exit.getSharding(), dim, mesh)),
                  parts = propagation::sizeOf(axes);
    if (own > 1 && parts > own && problem.values[value].sizes[dim] % parts != 0)
      return false;
  }
  SmallVector<OpSplit::DimSplit> dims;
  for (auto [other, sharding] : llvm::enumerate(current.dims))
    dims.push_back(static_cast<int>(other) == dim ? *split : *toSplit(sharding.axes));
  return OpSplit::admits(*rule, rule->results[result.getResultNumber()], dims);
}

FailureOr<ShardingProblem> ShardingProblem::build(ArrayRef<StepOp> steps,
                                                  ArrayRef<StringAttr> batchAxes) {
  ShardingProblem built(steps.front()->getParentOfType<ModuleOp>(), getMesh(steps.front()),
                        batchAxes);
  for (StepOp step : steps) {
    auto &axes = built.manual[step] = std::make_unique<ManualAxes>(step);
    if (failed(axes->verify(step)))
      return failure();
    llvm::append_range(built.manualAxes, axes->getAll());
  }
  for (StepOp step : steps)
    for (Operation &op : step.getBody().front())
      if (failed(built.addValues(&op)))
        return failure();
  for (StepOp step : steps)
    for (Operation &op : step.getBody().front())
      built.addOp(&op);
  llvm::append_range(built.ops, built.moveOps);
  return std::move(built);
}

propagation::Solution ShardingProblem::propagate(propagation::Problem asked,
                                                 const Admits &admits) const {
  applyConstraints(asked);
  // An op is never assigned a split that it cannot produce, not even by a constraint on its result.
  for (auto [number, node] : llvm::enumerate(asked.values)) {
    propagation::Sharding made{std::vector<propagation::DimSharding>(node.sharding.dims.size())};
    for (bool grows = true; grows;) {
      grows = false;
      for (auto [dim, sharding] : llvm::enumerate(node.sharding.dims))
        if (made.dims[dim].axes.empty() && !sharding.axes.empty() &&
            admits(number, dim, sharding.axes, made)) {
          made.dims[dim] = sharding;
          grows = true;
        }
    }
    for (auto [sharding, kept] : llvm::zip_equal(node.sharding.dims, made.dims))
      if (!sharding.axes.empty())
        sharding = kept;
  }
  asked.admits = admits;
  propagation::Options options;
  options.subAxes = mayCut;
  return propagation::propagate(asked, options);
}

propagation::Problem ShardingProblem::ofMicrobatches() const {
  propagation::Problem samples = problem;
  llvm::append_range(samples.ops, moves);
  // Microbatches are parts of a rank's samples: at a boundary they split the elements of its part.
  for (auto [op, node] : llvm::zip(ops, samples.ops)) {
    if (!isa<EnterManualOp, ExitManualOp>(op))
      continue;
    for (propagation::Mapping *tensor : {&node.operandDims.front(), &node.resultDims.front()})
      for (std::vector<int> &factors : *tensor)
        if (factors.size() > 1)
          factors.erase(factors.begin());
  }
  const int axis = mesh.getAxisIndex(StringAttr::get(mesh.getContext(), kMicrobatchAxis));
  for (auto [value, node] : llvm::zip_equal(values, samples.values)) {
    Operation *op = value.getDefiningOp();
    if (isa<ConstraintOp, ReshardOp>(op) || isManual(value)) {
      node.sharding.dims.assign(node.sizes.size(), {});
      continue;
    }
    for (propagation::DimSharding &dim : node.sharding.dims) {
      llvm::erase_if(dim.axes,
                     [&](const propagation::AxisPart &other) { return other.axis != axis; });
      dim.open = false;
    }
  }
  return samples;
}

/// The dimension of `sharding` that is split over the axis with that index; -1 if there is none.
static int findSplit(const propagation::Sharding &sharding, int axis) {
  for (auto [dim, split] : llvm::enumerate(sharding.dims))
    if (llvm::any_of(split.axes,
                     [&](const propagation::AxisPart &own) { return own.axis == axis; }))
      return dim;
  return -1;
}

propagation::Problem ShardingProblem::ofRanks(const propagation::Solution &samples) const {
  propagation::Problem ranks = problem;
  const int axis = mesh.getAxisIndex(StringAttr::get(mesh.getContext(), kMicrobatchAxis));
  auto isMicrobatch = [&](const propagation::AxisPart &other) { return other.axis == axis; };
  propagation::AxisList batch = toAxes(batchAxes);
  llvm::erase_if(batch, isMicrobatch);
  for (auto [number, node] : llvm::enumerate(ranks.values)) {
    for (propagation::DimSharding &dim : node.sharding.dims)
      llvm::erase_if(dim.axes, isMicrobatch);
    llvm::erase_if(node.sharding.replicated, isMicrobatch);
    // Samples can be identified if ranks have them as they were loaded.
    const int dim = findSplit(samples.shardings[number], axis);
    if (dim >= 0 && isa<DropoutOp, MaskSamplesOp>(values[number].getDefiningOp())) {
      node.sharding.dims.assign(node.sizes.size(), {});
      node.sharding.dims[dim] = {batch, /*open=*/false};
    }
  }
  return ranks;
}

void ShardingProblem::solveSeparately(const propagation::Solution &samples) {
  const int index = mesh.getAxisIndex(StringAttr::get(mesh.getContext(), kMicrobatchAxis));
  const propagation::AxisPart axis = propagation::wholeAxis(problem.mesh, index);
  auto dimOf = [&](int value) { return findSplit(samples.shardings[value], index); };
  solution = propagate(ofRanks(samples), [&](int value, int dim, propagation::AxisList axes,
                                             propagation::Sharding current) {
    const int ofSamples = dimOf(value);
    if (ofSamples >= 0)
      (dim == ofSamples ? axes : current.dims[ofSamples].axes).push_back(axis);
    return admits(value, dim, axes, current);
  });
  for (auto [value, sharding] : llvm::enumerate(solution.shardings))
    if (int dim = dimOf(value); dim >= 0)
      sharding.dims[dim].axes.push_back(axis);
  llvm::append_range(solution.origins, samples.origins);
}

void ShardingProblem::solve(bool subAxes) {
  mayCut = subAxes;
  originsOfValue.clear();
  auto asIs = [this](int value, int dim, const propagation::AxisList &axes,
                     const propagation::Sharding &current) {
    return admits(value, dim, axes, current);
  };
  solution = propagate(problem, asIs);
  const int axis = mesh.getAxisIndex(StringAttr::get(mesh.getContext(), kMicrobatchAxis));
  if (axis < 0)
    return;
  propagation::Solution samples = propagate(ofMicrobatches(), asIs);
  bool areSplit =
      llvm::all_of(llvm::zip_equal(samples.shardings, solution.shardings), [&](auto pair) {
        return findSplit(std::get<0>(pair), axis) < 0 || findSplit(std::get<1>(pair), axis) >= 0;
      });
  if (!areSplit)
    solveSeparately(samples);
}

SmallVector<AxisCut> ShardingProblem::getCuts() const {
  SmallVector<AxisCut> cuts;
  auto addCut = [&](const propagation::AxisPart &axis, int64_t position) {
    StringAttr name = mesh.getAxisNames()[axis.axis];
    if (position == 1 || position == problem.mesh.sizes[axis.axis] ||
        llvm::is_contained(batchAxes, name) || llvm::is_contained(manualAxes, name))
      return;
    AxisPart part = *parseAxisPart(name);
    position *= part.before;
    if (llvm::none_of(cuts, [&](const AxisCut &cut) {
          return cut.axis == part.axis && cut.position == position;
        }))
      cuts.push_back({part.axis.str(), position});
  };
  auto add = [&](const propagation::AxisList &axes) {
    for (const propagation::AxisPart &axis : axes) {
      addCut(axis, axis.before);
      addCut(axis, axis.next());
    }
  };
  for (const propagation::Sharding &sharding : solution.shardings)
    for (const propagation::DimSharding &dim : sharding.dims)
      add(dim.axes);
  // An axis that splits a dimension of several factors may cover one factor and a part of the next.
  for (const propagation::Op &op : problem.ops) {
    auto addFactors = [&](int value, const propagation::Mapping &dims) {
      if (llvm::none_of(dims, [](const std::vector<int> &factors) { return factors.size() > 1; }))
        return;
      propagation::TensorProjection tensor = project(op, dims, solution.shardings[value]);
      for (auto [factor, sharding] : llvm::zip_equal(op.factors, tensor.factors))
        if (!factor.blocked)
          add(sharding.axes);
    };
    for (auto [value, dims] : llvm::zip_equal(op.operands, op.operandDims))
      addFactors(value, dims);
    for (auto [value, dims] : llvm::zip_equal(op.results, op.resultDims))
      addFactors(value, dims);
  }
  return cuts;
}

DimAxes ShardingProblem::axesOf(Value value) const {
  DimAxes axes;
  for (const propagation::DimSharding &dim : solution.shardings[numbers.find(value)->second].dims)
    axes.push_back(toNames(dim.axes));
  return axes;
}

DimAxes ShardingProblem::axesOf(ParamOp param) const {
  auto number = parameters.find(param.getSymNameAttr());
  return number == parameters.end() ? DimAxes(param.getTensorType().getRank())
                                    : axesOf(values[number->second]);
}

SmallVector<ShardingOrigin> ShardingProblem::originsOf(Value value) const {
  if (originsOfValue.empty()) {
    originsOfValue.resize(values.size());
    for (auto [index, origin] : llvm::enumerate(solution.origins))
      originsOfValue[origin.value].push_back(index);
  }
  SmallVector<ShardingOrigin> origins;
  for (size_t index : originsOfValue[numbers.find(value)->second]) {
    const propagation::Origin &origin = solution.origins[index];
    origins.push_back({origin.dim, mesh.getAxisNames()[origin.axis.axis],
                       origin.op < 0 ? nullptr : ops[origin.op],
                       origin.from < 0 ? Value() : values[origin.from], origin.priority,
                       origin.opPriority, origin.aggressive});
  }
  return origins;
}
