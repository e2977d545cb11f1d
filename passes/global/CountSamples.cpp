//===- CountSamples.cpp - evaluation runs over the samples that count -----===//
//
// The last batch of a validation set may hold fewer samples than the program is made for. Three
// things follow for a step that evaluates:
//
// - Reductions over samples exclude invalid samples. Which dimensions run over samples follows from
// the inputs by the sharding rules of the ops, which state which dimensions share a factor.
// A rank in a manual region excludes its invalid samples.
// - A mean over samples divides by the number of valid samples.
// - A number that does not depend on samples (a constant weight, a value computed from parameters
// alone) and a mean over samples apply to the whole batch, and are scaled by the fraction of valid
// samples.
//
// The sum and the weight of a measure are added up over batches. The totals are those of the whole
// set only if both are additive over samples: linear in sums over samples, with coefficients that
// no sample changes. How each value depends on samples (`Dependence`) is followed through the ops;
// a product, a quotient or a maximum of two numbers that depend on samples is not such a sum, and
// neither is a sum of values scaled by statistics of the batch.
//
// A step for which this is impossible does not change, with a warning: the program then accepts
// validation sets of whole batches only (runtime/train/Driver.cpp).
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/Manual.h"
#include "dialect/fsdp/Structure.h"
#include "passes/Passes.h"
#include "passes/sharding/StepShardings.h"
#include "llvm/ADT/MapVector.h"
#include <cmath>
#include <map>

namespace mlir::fsdp {
#define GEN_PASS_DEF_COUNTSAMPLESPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// For each dimension of a tensor, the number of consecutive elements that belong to one sample: 0
/// if it does not run over samples, `mixed` if samples are not consecutive.
using DimRows = SmallVector<int64_t, 4>;
constexpr int64_t mixed = -1;

/// How a value depends on the samples of a batch.
enum class Dependence {
  none,      ///< not at all
  perSample, ///< each element on one sample, along one dimension of the value
  mean,      ///< the mean of a term for each sample, possibly plus a value that depends on none
  sum,       ///< the sum of a term for each sample
  affineSum, ///< a number: such a sum plus values for the whole batch (none, mean)
  batch,     ///< in another way
};

class SampleCounter {
public:
  SampleCounter(StepOp step, int64_t batch)
      : step(step), batch(batch), builder(step.getContext()) {}

  /// Finds the required changes; fails with a warning if the step cannot count samples.
  LogicalResult analyze();
  void rewrite();

private:
  /// An operand with a dimension of samples that its op reduces.
  struct Mask {
    OpOperand *operand;
    int64_t dim, rows;
  };

  LogicalResult analyze(Operation *op);
  LogicalResult visit(nn::ShardingRuleOpInterface op);
  LogicalResult visitBoundary(Operation *op, ShardingAttr sharding, ArrayAttr over);
  LogicalResult visitCollective(Operation *op);
  void spread(int64_t rows, const nn::DimFactors &dim, const nn::ShardingRule &rule,
              MutableArrayRef<int64_t> rowsOfFactor) const;
  int64_t rowsOf(const nn::DimFactors &dim, const nn::ShardingRule &rule,
                 ArrayRef<int64_t> rowsOfFactor) const;
  LogicalResult addMask(Operation *op, int64_t factor, const nn::ShardingRule &rule,
                        ArrayRef<int64_t> rowsOfFactor);
  Dependence ofOperands(Operation *op) const;
  Dependence ofResult(Operation *op, const nn::ShardingRule &rule, const nn::TensorFactors &result,
                      ArrayRef<int64_t> rowsOfFactor) const;
  LogicalResult checkMeasure(Operation *op);
  InFlightDiagnostic warn(Operation *op) const {
    return op->emitWarning() << "evaluation uses full batches only: ";
  }

  Value masked(Value value, int64_t dim, int64_t rows, double fill);
  Value maskedInLocalTerms(Value value, int64_t dim);
  void rewriteMean(nn::ReduceOp op, int samples);
  Value constant(Location loc, Type element, double value);
  Value countAs(Location loc, Type element);
  Value forSamples(Location loc, Value value);
  Value grown(Value value);

  StepOp step;
  int64_t batch;
  OpBuilder builder;
  DenseMap<Value, DimRows> rows;
  DenseMap<Value, Dependence> dependences;
  /// In local terms: the axes of the region over which ranks have different samples, and all of its
  /// axes.
  DenseMap<Value, std::pair<ArrayAttr, ArrayAttr>> sampleAxes;
  SmallVector<Mask> masks;
  llvm::MapVector<nn::ReduceOp, int> means; ///< with the factors of each that are samples
  SmallVector<Operation *> measures;
  SmallVector<Operation *> replaced;
  Value count;
  std::map<std::tuple<void *, int64_t, double>, Value> made;
};

} // namespace

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
void SampleCounter::spread(int64_t rows, const nn::DimFactors &dim, const nn::ShardingRule &rule,
                           MutableArrayRef<int64_t> rowsOfFactor) const {
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

int64_t SampleCounter::rowsOf(const nn::DimFactors &dim, const nn::ShardingRule &rule,
                              ArrayRef<int64_t> rowsOfFactor) const {
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
LogicalResult SampleCounter::addMask(Operation *op, int64_t factor, const nn::ShardingRule &rule,
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

/// What enters or leaves local terms keeps its samples: those of a rank, or of all.
LogicalResult SampleCounter::visitBoundary(Operation *op, ShardingAttr sharding, ArrayAttr over) {
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

/// Ranks with different samples may add up what is a sum over them, and nothing else.
LogicalResult SampleCounter::visitCollective(Operation *op) {
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
  return visit(cast<nn::ShardingRuleOpInterface>(op));
}

LogicalResult SampleCounter::visit(nn::ShardingRuleOpInterface op) {
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

static nn::Linearity linearityOf(Operation *op) {
  auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(op);
  return ruled ? ruled.getLinearity() : nn::Linearity::none;
}

/// That of the elements that `op` computes from single elements of its operands.
Dependence SampleCounter::ofOperands(Operation *op) const {
  constexpr auto none = Dependence::none, mean = Dependence::mean, sum = Dependence::sum;
  constexpr auto affineSum = Dependence::affineSum, batch = Dependence::batch;
  SmallVector<Dependence> given;
  for (Value operand : op->getOperands())
    given.push_back(dependences.lookup(operand));
  auto all = [&](std::initializer_list<Dependence> kinds) {
    return llvm::all_of(given, [&](Dependence one) { return llvm::is_contained(kinds, one); });
  };
  if (all({none}))
    return none;
  if (all({none, Dependence::perSample}))
    return Dependence::perSample;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  bool isFloat = isa<FloatType>(type.getElementType()), isNumber = isFloat && type.getRank() == 0;
  // The terms of an affine sum are found again where the number is computed (`grown`).
  auto moved = [&](Dependence from) { return from == affineSum ? batch : from; };
  // The dependence of a selection from, or the sum of, all operands from `first` on.
  auto joined = [&](size_t first) {
    ArrayRef<Dependence> terms = ArrayRef(given).drop_front(first);
    auto allOf = [&](std::initializer_list<Dependence> kinds) {
      return llvm::all_of(terms, [&](Dependence one) { return llvm::is_contained(kinds, one); });
    };
    if (allOf({sum}))
      return sum;
    return allOf({none, mean}) && isFloat ? mean : batch;
  };
  const bool elementwise = nn::isElementwise(op);
  switch (linearityOf(op)) {
  case nn::Linearity::none:
  case nn::Linearity::homogeneous:
    return batch;
  case nn::Linearity::additive:
    if (given.size() == 1)
      return elementwise ? given[0] : moved(given[0]);
    if (Dependence together = joined(0); together != batch || !isNumber || !elementwise)
      return together;
    return all({none, mean, sum, affineSum}) ? affineSum : batch;
  case nn::Linearity::rounding:
    return given[0];
  case nn::Linearity::linearMap:
    return moved(given[0]);
  case nn::Linearity::choice:
    return given[0] == none ? joined(1) : batch;
  case nn::Linearity::product: {
    Dependence factor = given[0] == none ? given[1] : given[1] == none ? given[0] : batch;
    return elementwise ? factor : moved(factor);
  }
  case nn::Linearity::quotient:
    return given[1] == none ? given[0] : batch;
  }
  llvm_unreachable("unknown linearity");
}

/// The dependence of a result of `op`, which runs over the factors in `result`; others are reduced.
Dependence SampleCounter::ofResult(Operation *op, const nn::ShardingRule &rule,
                                   const nn::TensorFactors &result,
                                   ArrayRef<int64_t> rowsOfFactor) const {
  Dependence dependence = ofOperands(op);
  if (dependence != Dependence::perSample)
    return dependence;
  // Exactly one factor runs over samples; with two, an element depends on two samples.
  std::optional<size_t> samples;
  for (auto [index, rows] : llvm::enumerate(rowsOfFactor)) {
    if (rows == 0)
      continue;
    if (samples)
      return Dependence::batch;
    samples = index;
  }
  if (!samples)
    return Dependence::batch;
  auto hasSamples = [&](const nn::DimFactors &dim) {
    return llvm::is_contained(dim, static_cast<int64_t>(*samples));
  };
  if (llvm::any_of(result, hasSamples))
    return Dependence::perSample;
  if (rule.factors[*samples].kind != nn::FactorKind::sumReduction)
    return Dependence::batch;
  return isMean(op) ? Dependence::mean : Dependence::sum;
}

LogicalResult SampleCounter::checkMeasure(Operation *op) {
  constexpr StringLiteral names[] = {"sum", "weight"};
  for (auto [what, value] : llvm::zip_equal(names, op->getOperands())) {
    Dependence dependence = dependences.lookup(value);
    if (dependence == Dependence::perSample || dependence == Dependence::batch)
      return warn(op) << "the " << what << " of '"
                      << (isa<LossOp>(op) ? StringRef("loss") : cast<MetricOp>(op).getName())
                      << "' is neither a sum nor a mean over samples, so that the results of "
                         "several batches cannot be combined";
  }
  measures.push_back(op);
  return success();
}

LogicalResult SampleCounter::analyze(Operation *op) {
  if (auto input = dyn_cast<InputOp>(op)) {
    auto type = cast<RankedTensorType>(input.getType());
    DimRows &known = rows[input.getResult()];
    known.assign(type.getRank(), 0);
    known[input.getSampleDim()] = 1;
    dependences[input.getResult()] = Dependence::perSample;
    if (type.getDimSize(input.getSampleDim()) != batch)
      return warn(op) << "input '" << input.getName() << "' has "
                      << type.getDimSize(input.getSampleDim()) << " samples, another one " << batch;
    return success();
  }
  if (isa<LossOp, MetricOp>(op))
    return checkMeasure(op);
  if (auto enter = dyn_cast<EnterManualOp>(op))
    return visitBoundary(op, enter.getSharding(), enter.getOver());
  if (auto exit = dyn_cast<ExitManualOp>(op))
    return visitBoundary(op, exit.getSharding(), exit.getOver());
  if (isManualCollective(op))
    return visitCollective(op);
  if (auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(op))
    return visit(ruled);
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

LogicalResult SampleCounter::analyze() {
  for (Operation &op : step.getBody().front())
    if (failed(analyze(&op)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// `value`, in local terms, times 1 for a sample that counts, and 0 for others: the part of these
/// numbers that a rank has.
Value SampleCounter::maskedInLocalTerms(Value value, int64_t dim) {
  Value &mask = made[{value.getAsOpaquePointer(), dim, 0}];
  if (mask)
    return mask;
  auto type = cast<RankedTensorType>(value.getType());
  auto [axes, over] = sampleAxes.lookup(value);
  auto loc = value.getLoc();
  auto all = RankedTensorType::get({batch}, type.getElementType());
  Value ones = arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(all, builder.getFloatAttr(type.getElementType(), 1).getValue()));
  Value counted = MaskSamplesOp::create(builder, loc, ones, count, /*dim=*/0, /*rows=*/1,
                                        IntegerAttr(), ArrayAttr(), APFloat(0.0));
  auto mesh = FlatSymbolRefAttr::get(getMeshOp(step).getSymNameAttr());
  auto sharding = ShardingAttr::get(builder.getContext(), mesh, {axes}, {false}, {});
  Value own = enterManual(builder, loc, counted, sharding, over);
  std::string names = "d" + std::to_string(dim) + " ->";
  for (int64_t other = 0; other < type.getRank(); ++other)
    names += " d" + std::to_string(other);
  own = nn::RepeatOp::create(builder, loc, type, names, own);
  return mask = arith::MulFOp::create(builder, loc, value, own);
}

Value SampleCounter::masked(Value value, int64_t dim, int64_t rows, double fill) {
  if (sampleAxes.lookup(value).first)
    return maskedInLocalTerms(value, dim);
  Value &mask = made[{value.getAsOpaquePointer(), dim, fill}];
  if (!mask)
    mask = MaskSamplesOp::create(builder, value.getLoc(), value, count, dim, rows, IntegerAttr(),
                                 ArrayAttr(), APFloat(fill));
  return mask;
}

Value SampleCounter::constant(Location loc, Type element, double value) {
  auto type = RankedTensorType::get({}, element);
  return arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, builder.getFloatAttr(element, value).getValue()));
}

/// The number of valid samples as a float.
Value SampleCounter::countAs(Location loc, Type element) {
  return arith::SIToFPOp::create(builder, loc, RankedTensorType::get({}, element), count);
}

/// A mean becomes the masked sum divided by the number of valid elements; `samples` of its factors
/// are samples.
void SampleCounter::rewriteMean(nn::ReduceOp op, int samples) {
  builder.setInsertionPoint(op);
  StructureScope scope(builder, getStructure(op));
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getType());
  Type element = type.getElementType();
  // A sum of 16 bits would be rounded before it is divided.
  Type wide = element.getIntOrFloatBitWidth() < 32 ? builder.getF32Type() : element;
  auto sum = cast<nn::ReduceOp>(builder.clone(*op));
  sum.setKind(nn::Reduction::sum);
  sum.getResult().setType(type.clone(wide));
  int64_t terms = cast<RankedTensorType>(op.getInput().getType()).getNumElements() /
                  std::max<int64_t>(type.getNumElements(), 1);
  Value each = countAs(loc, wide), divisor = each;
  for (int factor = 0; factor < samples; ++factor) {
    terms /= batch;
    if (factor > 0)
      divisor = arith::MulFOp::create(builder, loc, divisor, each);
  }
  if (terms != 1)
    divisor = arith::MulFOp::create(builder, loc, divisor,
                                    constant(loc, wide, static_cast<double>(terms)));
  if (type.getRank() > 0) {
    StringRef notation = op.getNotation();
    divisor = nn::RepeatOp::create(builder, loc, type.clone(wide),
                                   notation.substr(notation.find("->")), divisor);
  }
  Value mean = arith::DivFOp::create(builder, loc, sum.getResult(), divisor);
  if (wide != element)
    mean = arith::TruncFOp::create(builder, loc, type, mean);
  op.getResult().replaceAllUsesWith(mean);
  op.erase();
}

/// `value`, which is for a whole batch, scaled to the valid samples.
Value SampleCounter::forSamples(Location loc, Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  Value samples = countAs(loc, element);
  DenseElementsAttr number;
  if (auto op = value.getDefiningOp<arith::ConstantOp>())
    number = dyn_cast<DenseElementsAttr>(op.getValue());
  double each =
      number ? number.getSplatValue<APFloat>().convertToDouble() / static_cast<double>(batch) : 0;
  if (each == 1)
    return samples;
  if (each != 0 && each == std::floor(each)) // then no product is rounded
    return arith::MulFOp::create(builder, loc, samples, constant(loc, element, each));
  Value product = arith::MulFOp::create(builder, loc, value, samples);
  return arith::DivFOp::create(builder, loc, product,
                               constant(loc, element, static_cast<double>(batch)));
}

/// `value`, a number that a measure may have, as a sum over the valid samples.
Value SampleCounter::grown(Value value) {
  Dependence dependence = dependences.lookup(value);
  if (dependence == Dependence::sum)
    return value;
  if (dependence != Dependence::affineSum)
    return forSamples(value.getLoc(), value);
  Operation *op = value.getDefiningOp();
  bool adds = linearityOf(op) == nn::Linearity::additive && op->getNumOperands() > 1;
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    bool isFactor = !adds && dependences.lookup(operand) == Dependence::none;
    operands.push_back(isFactor ? operand : grown(operand));
  }
  replaced.push_back(op);
  Operation *clone = builder.clone(*op);
  clone->setOperands(operands);
  return clone->getResult(0);
}

void SampleCounter::rewrite() {
  builder.setInsertionPointToStart(&step.getBody().front());
  count = SampleCountOp::create(
      builder, NameLoc::get(builder.getStringAttr("sample_count"), step.getLoc()), batch);
  for (const Mask &mask : masks) {
    Operation *op = mask.operand->getOwner();
    builder.setInsertionPoint(op);
    StructureScope scope(builder, getStructure(op));
    mask.operand->set(masked(mask.operand->get(), mask.dim, mask.rows,
                             getReductionIdentity(op, mask.operand->get())));
  }
  // Dependences refer to the values before they are replaced.
  for (Operation *measure : measures) {
    builder.setInsertionPoint(measure);
    StructureScope scope(builder, getStructure(measure));
    for (OpOperand &operand : measure->getOpOperands())
      operand.set(grown(operand.get()));
  }
  llvm::sort(replaced, [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
  replaced.erase(llvm::unique(replaced), replaced.end());
  for (Operation *op : replaced)
    if (op->use_empty())
      op->erase();
  for (auto [mean, samples] : means)
    rewriteMean(mean, samples);
}

namespace {
struct CountSamples : fsdp::impl::CountSamplesPassBase<CountSamples> {
  void runOnOperation() override {
    for (StepOp step : getOperation().getOps<StepOp>()) {
      auto inputs = step.getBody().front().getOps<InputOp>();
      if (step.getKind() != StepKind::evaluate || inputs.empty() ||
          !step.getBody().front().getOps<SampleCountOp>().empty())
        continue;
      InputOp first = *inputs.begin();
      int64_t batch = cast<RankedTensorType>(first.getType()).getDimSize(first.getSampleDim());
      if (batch < 2) // a batch of one sample is whole
        continue;
      SampleCounter counter(step, batch);
      if (succeeded(counter.analyze()))
        counter.rewrite();
    }
  }
};
} // namespace
