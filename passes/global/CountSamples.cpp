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
// no sample changes. How each value depends on samples is followed through the ops
// (SampleAnalysis); a product, a quotient or a maximum of two numbers that depend on samples is not
// such a sum, and neither is a sum of values scaled by statistics of the batch.
//
// A step for which this is impossible does not change, with a warning: the program then accepts
// validation sets of whole batches only (runtime/train/Driver.cpp).
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/Manual.h"
#include "dialect/fsdp/Structure.h"
#include "dialect/nn/Precision.h"
#include "passes/Passes.h"
#include "passes/global/SampleAnalysis.h"
#include "passes/sharding/StepShardings.h"
#include <cmath>
#include <map>

namespace mlir::fsdp {
#define GEN_PASS_DEF_COUNTSAMPLESPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// Makes a step that evaluates exclude invalid samples.
class SampleCounter {
public:
  SampleCounter(StepOp step, int64_t batch, const SampleAnalysis &analysis)
      : step(step), batch(batch), analysis(analysis), builder(step.getContext()) {}

  void rewrite();

private:
  Value masked(Value value, int64_t dim, int64_t rows, double fill);
  Value maskedInLocalTerms(Value value, int64_t dim);
  void rewriteMean(nn::ReduceOp op, int samples);
  Value constant(Location loc, Type element, double value);
  Value countAs(Location loc, Type element);
  Value forSamples(Location loc, Value value);
  Value grown(Value value);

  StepOp step;
  int64_t batch;
  const SampleAnalysis &analysis;
  OpBuilder builder;
  SmallVector<Operation *> replaced;
  Value count;
  std::map<std::tuple<void *, int64_t, double>, Value> made;
};

} // namespace

/// `value`, in local terms, times 1 for a sample that counts, and 0 for others: the part of these
/// numbers that a rank has.
Value SampleCounter::maskedInLocalTerms(Value value, int64_t dim) {
  Value &mask = made[{value.getAsOpaquePointer(), dim, 0}];
  if (mask)
    return mask;
  auto type = cast<RankedTensorType>(value.getType());
  auto [axes, over] = analysis.getSampleAxes(value);
  auto loc = value.getLoc();
  auto all = RankedTensorType::get({batch}, type.getElementType());
  Value ones = nn::createSplat(builder, loc, all, 1);
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
  if (analysis.getSampleAxes(value).first)
    return maskedInLocalTerms(value, dim);
  Value &mask = made[{value.getAsOpaquePointer(), dim, fill}];
  if (!mask)
    mask = MaskSamplesOp::create(builder, value.getLoc(), value, count, dim, rows, IntegerAttr(),
                                 ArrayAttr(), APFloat(fill));
  return mask;
}

Value SampleCounter::constant(Location loc, Type element, double value) {
  return nn::createSplat(builder, loc, RankedTensorType::get({}, element), value);
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
  SampleDependence dependence = analysis.getDependence(value);
  if (dependence == SampleDependence::sum)
    return value;
  if (dependence != SampleDependence::affineSum)
    return forSamples(value.getLoc(), value);
  Operation *op = value.getDefiningOp();
  bool adds = nn::getLinearity(op) == nn::Linearity::additive && op->getNumOperands() > 1;
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    bool isFactor = !adds && analysis.getDependence(operand) == SampleDependence::none;
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
  for (const SampleAnalysis::Mask &mask : analysis.getMasks()) {
    Operation *op = mask.operand->getOwner();
    builder.setInsertionPoint(op);
    StructureScope scope(builder, getStructure(op));
    mask.operand->set(masked(mask.operand->get(), mask.dim, mask.rows,
                             getReductionIdentity(op, mask.operand->get())));
  }
  // Dependences refer to the values before they are replaced.
  for (Operation *measure : analysis.getMeasures()) {
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
  for (auto [mean, samples] : analysis.getMeans())
    rewriteMean(mean, samples);
}

namespace {
struct CountSamples : fsdp::impl::CountSamplesPassBase<CountSamples> {
  void runOnOperation() override {
    StepOp step = getOperation();
    auto inputs = step.getBody().front().getOps<InputOp>();
    if (step.getKind() != StepKind::evaluate || inputs.empty() ||
        !step.getBody().front().getOps<SampleCountOp>().empty())
      return;
    InputOp first = *inputs.begin();
    int64_t batch = cast<RankedTensorType>(first.getType()).getDimSize(first.getSampleDim());
    if (batch < 2) // a batch of one sample is whole
      return;
    SampleAnalysis analysis(step, batch);
    if (succeeded(analysis.run()))
      SampleCounter(step, batch, analysis).rewrite();
  }
};
} // namespace
