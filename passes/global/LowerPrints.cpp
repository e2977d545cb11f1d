//===- LowerPrints.cpp - statistics of logged values, as metrics ----------===//
//
// Statistics are reductions like those of any loss: over ranks and microbatches, with padding left
// out, they follow from the rules of `nn.reduce`. A minimum is the negated maximum of the negated
// elements. Rows are reduced first, separately, so that all threads have work.
//
// Elements that are not finite are found by |x|, which requires the complete sums of a value. Ops
// are marked (`fsdp.report`): passes that decide by the users of a value ignore them.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/Prints.h"
#include "dialect/fsdp/Structure.h"
#include "dialect/nn/Precision.h"
#include "passes/LaunchNames.h"
#include "passes/Passes.h"
#include <limits>

namespace mlir::fsdp {
#define GEN_PASS_DEF_LOWERPRINTSPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// Builds the numbers of one value.
class Statistics {
public:
  /// At `builder`, called `name`.
  Statistics(OpBuilder &builder, Location loc, Value value);

  /// Of the elements that are finite, in double; -inf and inf without any.
  Value max();
  Value min();
  Value sum();
  Value countNotFinite();
  Value countFinite();

private:
  Value constant(Type type, double value) { return nn::createSplat(builder, loc, type, value); }
  Value reduce(nn::Reduction kind, Value value);
  Value whereFinite(Value value, double otherwise);

  OpBuilder &builder;
  Location loc;
  Value elements; ///< in f32 or f64
  Value isFinite; ///< null: all are
  int64_t size;
};

struct LowerPrints : fsdp::impl::LowerPrintsPassBase<LowerPrints> {
  void runOnOperation() override;
};

} // namespace

Statistics::Statistics(OpBuilder &builder, Location loc, Value value)
    : builder(builder), loc(loc), elements(value) {
  auto type = cast<RankedTensorType>(value.getType());
  Type element = type.getElementType();
  size = type.getNumElements();
  if (element.isInteger(1))
    elements = arith::UIToFPOp::create(builder, loc, type.clone(builder.getF32Type()), value);
  else if (isa<IntegerType>(element)) // each is exact, up to 2^53
    elements = arith::SIToFPOp::create(builder, loc, type.clone(builder.getF64Type()), value);
  else if (element.getIntOrFloatBitWidth() < 32)
    elements = arith::ExtFOp::create(builder, loc, type.clone(builder.getF32Type()), value);
  if (isa<IntegerType>(element))
    return;
  Value magnitude = math::AbsFOp::create(builder, loc, elements);
  isFinite =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, magnitude,
                            constant(elements.getType(), std::numeric_limits<double>::infinity()));
}

/// All elements, in double.
Value Statistics::reduce(nn::Reduction kind, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Type f64 = builder.getF64Type();
  if (type.getRank() == 0)
    return type.getElementType().isF64()
               ? value
               : arith::ExtFOp::create(builder, loc, type.clone(f64), value).getResult();
  for (int64_t rank = type.getRank(); rank > 0;) {
    const int64_t left = rank > 1 && rank == type.getRank() ? rank - 1 : 0;
    std::string from, to;
    for (int64_t dim = 0; dim < rank; ++dim) {
      const std::string name = "d" + std::to_string(dim);
      from += (dim ? " " : "") + name;
      if (dim < left)
        to += " " + name;
    }
    auto result = RankedTensorType::get(type.getShape().take_front(left), f64);
    value = nn::ReduceOp::create(builder, loc, result, kind, from + " ->" + to, value);
    rank = left;
  }
  return value;
}

Value Statistics::whereFinite(Value value, double otherwise) {
  return isFinite ? arith::SelectOp::create(builder, loc, isFinite, value,
                                            constant(value.getType(), otherwise))
                  : value;
}

Value Statistics::max() {
  return reduce(nn::Reduction::max,
                whereFinite(elements, -std::numeric_limits<double>::infinity()));
}

Value Statistics::min() {
  Value negated = arith::NegFOp::create(builder, loc, elements);
  Value greatest =
      reduce(nn::Reduction::max, whereFinite(negated, -std::numeric_limits<double>::infinity()));
  return arith::NegFOp::create(builder, loc, greatest);
}

Value Statistics::sum() { return reduce(nn::Reduction::sum, whereFinite(elements, 0)); }

Value Statistics::countNotFinite() {
  if (!isFinite)
    return constant(RankedTensorType::get({}, builder.getF64Type()), 0);
  Value one = constant(elements.getType(), 1), zero = constant(elements.getType(), 0);
  return reduce(nn::Reduction::sum, arith::SelectOp::create(builder, loc, isFinite, zero, one));
}

Value Statistics::countFinite() {
  if (!isFinite)
    return constant(RankedTensorType::get({}, builder.getF64Type()),
                    static_cast<double>(std::max<int64_t>(size, 1)));
  Value one = constant(elements.getType(), 1), zero = constant(elements.getType(), 0);
  return reduce(nn::Reduction::sum, arith::SelectOp::create(builder, loc, isFinite, one, zero));
}

/// Makes `values` of the body of `checkpoint` available after it; returns its new results.
static SmallVector<Value> yieldFrom(CheckpointOp &checkpoint, ArrayRef<Value> values) {
  auto yield = cast<YieldOp>(checkpoint.getBody().front().getTerminator());
  const unsigned before = checkpoint.getNumResults();
  yield.getValuesMutable().append(values);
  OpBuilder builder(checkpoint);
  auto extended = CheckpointOp::create(builder, checkpoint.getLoc(), yield.getValues().getTypes(),
                                       checkpoint.getPolicy());
  extended->setDiscardableAttrs(checkpoint->getDiscardableAttrDictionary());
  extended.getBody().takeBody(checkpoint.getBody());
  checkpoint.replaceAllUsesWith(extended.getResults().take_front(before));
  checkpoint.erase();
  checkpoint = extended;
  return llvm::to_vector_of<Value>(extended.getResults().drop_front(before));
}

/// A number to log as sum / weight; without a weight, the number itself.
struct Logged {
  StringRef suffix;
  Value sum, weight;
};

static SmallVector<Logged> buildStatistics(OpBuilder &builder, Operation *op) {
  Statistics statistics(builder, op->getLoc(), op->getOperand(0));
  if (isa<CheckOp>(op))
    return {{printed::kCheck, statistics.countNotFinite(), Value()}};
  return {{printed::kMin, statistics.min(), Value()},
          {printed::kMax, statistics.max(), Value()},
          {printed::kMean, statistics.sum(), statistics.countFinite()},
          {printed::kNan, statistics.countNotFinite(), Value()}};
}

/// `place`: the index of the check before which `op` is.
static void lower(Operation *op, int64_t &place) {
  OpBuilder builder(op);
  StructureScope scope(builder, getStructure(op));
  Operation *before = op->getPrevNode();
  SmallVector<Logged> all = buildStatistics(builder, op);
  Block::iterator first = before ? std::next(before->getIterator()) : op->getBlock()->begin();
  for (Operation &built : llvm::make_range(first, op->getIterator()))
    built.setDiscardableAttr(kReportAttrName, builder.getUnitAttr());
  if (auto checkpoint = dyn_cast<CheckpointOp>(op->getParentOp())) {
    SmallVector<Value *> moved;
    for (Logged &logged : all)
      for (Value *value : {&logged.sum, &logged.weight})
        if (*value)
          moved.push_back(value);
    SmallVector<Value> inside = llvm::map_to_vector(moved, [](Value *value) { return *value; });
    for (auto [value, outside] : llvm::zip_equal(moved, yieldFrom(checkpoint, inside)))
      *value = outside;
    builder.setInsertionPointAfter(checkpoint);
  }
  const StringRef name = op->getAttrOfType<StringAttr>("name").getValue();
  for (auto [suffix, sum, weight] : all) {
    const std::string full = (name + "." + suffix).str();
    const Location loc = NameLoc::get(builder.getStringAttr(full), op->getLoc());
    if (!weight)
      weight = nn::createSplat(builder, loc, RankedTensorType::get({}, builder.getF64Type()), 1);
    auto check = isa<CheckOp>(op) ? builder.getI64IntegerAttr(--place) : IntegerAttr();
    auto metric = MetricOp::create(builder, loc, full, sum, weight, check);
    metric->setDiscardableAttr(kReportAttrName, builder.getUnitAttr());
  }
  op->erase();
}

void LowerPrints::runOnOperation() {
  SmallVector<Operation *> reports;
  getOperation().walk([&](Operation *op) {
    if (isa<PrintOp, CheckOp>(op))
      reports.push_back(op);
  });
  // From the last to the first, so that they are in order after a checkpoint.
  int64_t place = llvm::count_if(reports, llvm::IsaPred<CheckOp>);
  for (Operation *op : llvm::reverse(reports))
    lower(op, place);
}
