//===- SampleAnalysis.cpp - how values depend on samples ------------------===//

#include "passes/global/SampleAnalysis.h"

#include "dialect/fsdp/Manual.h"
#include "passes/sharding/StepShardings.h"

#include <optional>
#include <tuple>

using namespace mlir;
using namespace mlir::fsdp;

constexpr int64_t mixed = -1;

static InFlightDiagnostic warn(Operation *op) {
  return op->emitWarning() << "evaluation uses full batches only: ";
}

//===----------------------------------------------------------------------===//
// Which dimensions run over samples
//===----------------------------------------------------------------------===//

/// The first factor of `dim` of more than one element, which is major to the others.
static size_t leading(const nn::DimFactors &dim, const nn::ShardingRule &rule) {
  size_t first = 0;
  while (first < dim.size() && rule.factors[dim[first]].size == 1)
    ++first;
  return first;
}

static int64_t elementsBehind(size_t first, const nn::DimFactors &dim,
                              const nn::ShardingRule &rule) {
  int64_t inner = 1;
  for (int64_t factor : ArrayRef(dim).drop_front(std::min(first + 1, dim.size())))
    inner *= rule.factors[factor].size;
  return inner;
}

/// Hands the samples of a dimension on to its factors.
static void spread(int64_t rows, const nn::DimFactors &dim, const nn::ShardingRule &rule,
                   MutableArrayRef<int64_t> rowsOfFactor) {
  if (rows == 0)
    return;
  auto note = [&](int64_t factor, int64_t rows) {
    int64_t &known = rowsOfFactor[factor];
    known = known == 0 || known == rows ? rows : mixed;
  };
  size_t first = leading(dim, rule);
  int64_t inner = elementsBehind(first, dim, rule);
  if (rows != mixed && first < dim.size() && inner > 0 && rows % inner == 0)
    return note(dim[first], rows / inner);
  for (int64_t factor : dim)
    note(factor, mixed);
}

/// The elements of a sample along `dim`, from those of its factors.
static int64_t rowsOf(const nn::DimFactors &dim, const nn::ShardingRule &rule,
                      ArrayRef<int64_t> rowsOfFactor) {
  size_t first = leading(dim, rule);
  for (size_t i = 0; i < dim.size(); ++i)
    if (i != first && rowsOfFactor[dim[i]] != 0)
      return mixed;
  if (first == dim.size() || rowsOfFactor[dim[first]] <= 0)
    return first == dim.size() ? 0 : rowsOfFactor[dim[first]];
  return rowsOfFactor[dim[first]] * elementsBehind(first, dim, rule);
}

static bool isMean(Operation *op) {
  auto reduce = dyn_cast<nn::ReduceOp>(op);
  return reduce && reduce.getKind() == nn::Reduction::mean;
}

/// Masks one operand along a factor that `op` reduces. A product is zero where one of its sides is.
LogicalResult SampleAnalysis::addMask(Operation *op, int64_t factor, const nn::ShardingRule &rule,
                                      ArrayRef<int64_t> rowsOfFactor) {
  std::optional<Mask> chosen;
  auto rank = [](const Mask &mask) {
    Value value = mask.operand->get();
    return std::tuple(isa_and_nonnull<InputOp, arith::ConstantOp>(value.getDefiningOp()),
                      cast<RankedTensorType>(value.getType()).getNumElements());
  };
  for (auto [index, tensor] : llvm::enumerate(rule.operands)) {
    if (rule.annihilator >= 0 && static_cast<int64_t>(index) != rule.annihilator)
      continue;
    for (auto [dim, factors] : llvm::enumerate(tensor)) {
      if (!llvm::is_contained(factors, factor))
        continue;
      Mask mask{&op->getOpOperand(index), static_cast<int64_t>(dim),
                rowsOf(factors, rule, rowsOfFactor)};
      if (mask.rows > 0 && (!chosen || rank(mask) < rank(*chosen)))
        chosen = mask;
    }
  }
  if (!chosen)
    return warn(op) << "'" << op->getName()
                    << "' reduces over samples that are not contiguous; put samples "
                       "first where dimensions are merged";
  const bool isLocal = sampleAxes.lookup(chosen->operand->get()).first != nullptr;
  if (isLocal && (chosen->rows != 1 || isMean(op) || reducesByMaximum(op) ||
                  !isa<FloatType>(getElementTypeOrSelf(chosen->operand->get().getType()))))
    return warn(op) << "'" << op->getName()
                    << "' combines the samples of a rank in a manual region, where only sums over "
                       "whole samples can leave out some";
  masks.push_back(*chosen);
  return success();
}

/// A value that enters or leaves local terms keeps its samples: those of a rank, or of all ranks.
LogicalResult SampleAnalysis::visitBoundary(Operation *op, ShardingAttr sharding, ArrayAttr over) {
  Value operand = op->getOperand(0), result = op->getResult(0);
  const DimRows known = rows[result] = DimRows(rows.lookup(operand));
  dependences[result] = dependences.lookup(operand);
  auto axes = sampleAxes.lookup(operand);
  const bool leaves = isa<ExitManualOp>(op) && axes.second == over;
  for (auto [dim, ofSample] : llvm::enumerate(known)) {
    const ArrayAttr own = sharding.getDimAxes()[dim];
    if (ofSample == 0 || (getSplittingAxes(sharding, dim, getMesh(op)).empty() && !leaves))
      continue;
    if (ofSample != 1 || axes.first != (isa<ExitManualOp>(op) ? own : ArrayAttr()))
      return warn(op)
             << "a manual region has the samples of a batch in parts that are not those of "
                "its ranks, of which it cannot leave out some";
    axes = {own, over};
  }
  if (axes.first && !leaves)
    sampleAxes[result] = axes;
  return success();
}

/// Ranks with different samples may only combine values that are sums over samples.
LogicalResult SampleAnalysis::visitCollective(Operation *op) {
  auto axes = sampleAxes.lookup(op->getOperand(0));
  if (axes.first && !isa<PvaryOp>(op) &&
      llvm::any_of(rows.lookup(op->getOperand(0)),
                   [](int64_t ofSample) { return ofSample != 0; }) &&
      llvm::any_of(getManualCollectiveAxes(op),
                   [&](StringAttr axis) { return llvm::is_contained(axes.first, axis); }))
    return warn(op)
           << "'" << op->getName()
           << "' combines samples of ranks in a manual region, of which it cannot leave out "
              "some";
  return visitRuled(cast<nn::ShardingRuleOpInterface>(op));
}

LogicalResult SampleAnalysis::visitRuled(nn::ShardingRuleOpInterface op) {
  nn::ShardingRule rule = op.getShardingRule();
  SmallVector<int64_t> rowsOfFactor(rule.factors.size(), 0);
  for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), rule.operands)) {
    const DimRows known = rows.lookup(operand);
    for (auto [dim, factors] : llvm::enumerate(tensor))
      if (dim < known.size())
        spread(known[dim], factors, rule, rowsOfFactor);
  }
  for (auto [index, factor] : llvm::enumerate(rule.factors)) {
    if (rowsOfFactor[index] == 0 || (factor.kind == nn::FactorKind::parallel && !factor.indexed))
      continue;
    if (factor.kind == nn::FactorKind::whole || factor.kind == nn::FactorKind::combined ||
        factor.indexed)
      return warn(op) << "'" << op->getName() << "' needs all samples of a batch along '"
                      << factor.name << "', where invalid samples cannot be excluded";
    if (failed(addMask(op, index, rule, rowsOfFactor)))
      return failure();
    if (isMean(op))
      ++means[cast<nn::ReduceOp>(op.getOperation())];
  }
  std::pair<ArrayAttr, ArrayAttr> axes;
  for (Value operand : op->getOperands())
    if (auto own = sampleAxes.lookup(operand); own.first) {
      if (axes.first && axes != own)
        return warn(op) << "'" << op->getName() << "' has operands whose samples are split over "
                        << axes.first << " and over " << own.first << " in a manual region";
      axes = own;
    }
  for (Value result : op->getResults())
    if (axes.first)
      sampleAxes[result] = axes;
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), rule.results)) {
    DimRows &known = rows[result];
    for (const nn::DimFactors &factors : tensor)
      known.push_back(rowsOf(factors, rule, rowsOfFactor));
    dependences[result] = ofResult(op, rule, tensor, rowsOfFactor);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// How values depend on samples
//===----------------------------------------------------------------------===//

/// That of the elements that `op` computes from single elements of its operands.
SampleDependence SampleAnalysis::ofOperands(Operation *op) const {
  constexpr auto none = SampleDependence::none, mean = SampleDependence::mean,
                 sum = SampleDependence::sum;
  constexpr auto affineSum = SampleDependence::affineSum, batch = SampleDependence::batch;
  SmallVector<SampleDependence> given;
  for (Value operand : op->getOperands())
    given.push_back(dependences.lookup(operand));
  auto all = [&](std::initializer_list<SampleDependence> kinds) {
    return llvm::all_of(given,
                        [&](SampleDependence one) { return llvm::is_contained(kinds, one); });
  };
  if (all({none}))
    return none;
  if (all({none, SampleDependence::perSample}))
    return SampleDependence::perSample;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  bool isFloat = isa<FloatType>(type.getElementType()), isNumber = isFloat && type.getRank() == 0;
  // The terms of an affine sum are found again where the number is computed (`grown`).
  auto moved = [&](SampleDependence from) { return from == affineSum ? batch : from; };
  // The dependence of a selection from, or the sum of, all operands from `first` on.
  auto joined = [&](size_t first) {
    ArrayRef<SampleDependence> terms = ArrayRef(given).drop_front(first);
    auto allOf = [&](std::initializer_list<SampleDependence> kinds) {
      return llvm::all_of(terms,
                          [&](SampleDependence one) { return llvm::is_contained(kinds, one); });
    };
    if (allOf({sum}))
      return sum;
    return allOf({none, mean}) && isFloat ? mean : batch;
  };
  const bool elementwise = nn::isElementwise(op);
  switch (nn::getLinearity(op)) {
  case nn::Linearity::none:
  case nn::Linearity::homogeneous:
    return batch;
  case nn::Linearity::additive:
    if (given.size() == 1)
      return elementwise ? given[0] : moved(given[0]);
    if (SampleDependence together = joined(0); together != batch || !isNumber || !elementwise)
      return together;
    return all({none, mean, sum, affineSum}) ? affineSum : batch;
  case nn::Linearity::rounding:
    return given[0];
  case nn::Linearity::linearMap:
    return moved(given[0]);
  case nn::Linearity::choice:
    return given[0] == none ? joined(1) : batch;
  case nn::Linearity::product: {
    SampleDependence factor = given[0] == none ? given[1] : given[1] == none ? given[0] : batch;
    return elementwise ? factor : moved(factor);
  }
  case nn::Linearity::quotient:
    return given[1] == none ? given[0] : batch;
  }
  llvm_unreachable("unknown linearity");
}

/// The dependence of a result of `op`, which runs over the factors in `result`; others are reduced.
SampleDependence SampleAnalysis::ofResult(Operation *op, const nn::ShardingRule &rule,
                                          const nn::TensorFactors &result,
                                          ArrayRef<int64_t> rowsOfFactor) const {
  SampleDependence dependence = ofOperands(op);
  if (dependence != SampleDependence::perSample)
    return dependence;
  // Exactly one factor runs over samples; with two, an element depends on two samples.
  std::optional<size_t> samples;
  for (auto [index, rows] : llvm::enumerate(rowsOfFactor)) {
    if (rows == 0)
      continue;
    if (samples)
      return SampleDependence::batch;
    samples = index;
  }
  if (!samples)
    return SampleDependence::batch;
  auto hasSamples = [&](const nn::DimFactors &dim) {
    return llvm::is_contained(dim, static_cast<int64_t>(*samples));
  };
  if (llvm::any_of(result, hasSamples))
    return SampleDependence::perSample;
  if (rule.factors[*samples].kind != nn::FactorKind::sumReduction)
    return SampleDependence::batch;
  return isMean(op) ? SampleDependence::mean : SampleDependence::sum;
}

LogicalResult SampleAnalysis::visitMeasure(Operation *op) {
  constexpr StringLiteral names[] = {"sum", "weight"};
  for (auto [what, value] : llvm::zip_equal(names, op->getOperands())) {
    SampleDependence dependence = dependences.lookup(value);
    if (dependence == SampleDependence::perSample || dependence == SampleDependence::batch)
      return warn(op) << "the " << what << " of '"
                      << (isa<LossOp>(op) ? StringRef("loss") : cast<MetricOp>(op).getName())
                      << "' is neither a sum nor a mean over samples, so that the results of "
                         "several batches cannot be combined";
  }
  measures.push_back(op);
  return success();
}

LogicalResult SampleAnalysis::visitInput(InputOp input) {
  auto type = cast<RankedTensorType>(input.getType());
  DimRows &known = rows[input.getResult()];
  known.assign(type.getRank(), 0);
  known[input.getSampleDim()] = 1;
  dependences[input.getResult()] = SampleDependence::perSample;
  if (type.getDimSize(input.getSampleDim()) != batch)
    return warn(input) << "input '" << input.getName() << "' has "
                       << type.getDimSize(input.getSampleDim()) << " samples, another one "
                       << batch;
  return success();
}

LogicalResult SampleAnalysis::visitOp(Operation *op) {
  if (auto input = dyn_cast<InputOp>(op))
    return visitInput(input);
  if (isa<LossOp, MetricOp>(op))
    return visitMeasure(op);
  if (auto enter = dyn_cast<EnterManualOp>(op))
    return visitBoundary(op, enter.getSharding(), enter.getOver());
  if (auto exit = dyn_cast<ExitManualOp>(op))
    return visitBoundary(op, exit.getSharding(), exit.getOver());
  if (isManualCollective(op))
    return visitCollective(op);
  if (auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(op))
    return visitRuled(ruled);
  bool overSamples = llvm::any_of(op->getOperands(), [&](Value operand) {
    return llvm::any_of(rows.lookup(operand), [](int64_t rows) { return rows != 0; });
  });
  if (overSamples)
    return warn(op) << "'" << op->getName()
                    << "' does not declare how it acts along the samples of a batch";
  for (Value result : op->getResults())
    dependences[result] = ofOperands(op);
  return success();
}

LogicalResult SampleAnalysis::run() {
  for (Operation &op : step.getBody().front())
    if (failed(visitOp(&op)))
      return failure();
  return success();
}
