//===- ManualOps.cpp - verify, split and differentiate local terms --------===//

#include "dialect/fsdp/Manual.h"

#include <limits>

using namespace mlir;
using namespace mlir::fsdp;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

SmallVector<StringAttr> mlir::fsdp::getSplittingAxes(ShardingAttr sharding, int64_t dim,
                                                     MeshAttr mesh) {
  SmallVector<StringAttr> axes = sharding.getAxes(dim);
  llvm::erase_if(axes, [&](StringAttr axis) { return mesh.getAxisSize(axis) == 1; });
  return axes;
}

AxisState mlir::fsdp::getBoundaryState(ShardingAttr sharding, StringAttr axis) {
  if (llvm::is_contained(sharding.getUnreduced(), axis))
    return AxisState::partial;
  for (ArrayAttr dim : sharding.getDimAxes())
    if (llvm::is_contained(dim, axis))
      return AxisState::varying;
  return AxisState::invariant;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Fails unless `over` names distinct axes of the mesh, at least one.
static LogicalResult verifyOver(Operation *op, ArrayAttr over) {
  SmallVector<StringAttr> axes = getAxisNames(over);
  if (axes.empty())
    return op->emitOpError() << "is over no axes, expected at least one";
  return fsdp::detail::verifyAxes(op, axes, "is over");
}

/// Fails unless `sharding`, of `what`, relates a value of type `whole` to parts of type `local`.
static LogicalResult verifyBoundary(Operation *op, const Twine &what, ShardingAttr sharding,
                                    ArrayAttr over, RankedTensorType whole,
                                    RankedTensorType local) {
  if (sharding.getRank() != whole.getRank())
    return op->emitOpError() << "has a sharding of " << sharding.getRank() << " dimensions for "
                             << what << " of type " << whole << ", expected " << whole.getRank();
  if (llvm::is_contained(sharding.getDimOpen(), true))
    return op->emitOpError() << "has an open dimension in the sharding of " << what
                             << "; leave '?' out: other axes are propagated in any case";
  if (!sharding.getUnreduced().empty() && !isa<FloatType>(whole.getElementType()))
    return op->emitOpError() << "has integers that are partial sums over axis "
                             << sharding.getUnreduced().front() << " in " << what
                             << ", expected floats";
  SmallVector<StringAttr> named(sharding.getUnreduced());
  for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
    llvm::append_range(named, sharding.getAxes(dim));
  for (StringAttr axis : named)
    if (!llvm::is_contained(over, axis))
      return op->emitOpError() << "has a sharding of " << what << " over axis " << axis
                               << ", expected axes in 'over', " << over
                               << "; other axes are propagated";
  MeshAttr mesh = getMesh(op);
  SmallVector<int64_t> shape(whole.getShape());
  for (int64_t dim = 0; dim < sharding.getRank(); ++dim) {
    const int64_t parts = mesh.getSize(sharding.getAxes(dim));
    if (shape[dim] % parts != 0)
      return op->emitOpError() << "splits dimension " << dim << " of " << what << ", of size "
                               << shape[dim] << ", over " << parts
                               << " ranks, expected a multiple; pad it, or use a mesh that divides "
                                  "it";
    shape[dim] /= parts;
  }
  if (RankedTensorType expected = whole.clone(shape); local != expected)
    return op->emitOpError() << "has " << local << " as the part of one rank of " << what
                             << ", expected " << expected;
  return success();
}

LogicalResult ManualOp::verify() {
  if (failed(verifyOver(*this, getOver())))
    return failure();
  for (auto outer = (*this)->getParentOfType<ManualOp>(); outer;
       outer = outer->getParentOfType<ManualOp>())
    for (Attribute axis : getOver())
      if (llvm::is_contained(outer.getOver(), axis)) {
        InFlightDiagnostic diagnostic =
            emitOpError() << "is over axis " << axis
                          << ", which is manual already; leave it out, and use the collectives "
                             "over it here";
        diagnostic.attachNote(outer.getLoc()) << "the region around it is here";
        return diagnostic;
      }
  if (getInShardings().size() != getInputs().size())
    return emitOpError() << "has " << getInShardings().size() << " shardings for "
                         << getInputs().size() << " operands, expected one for each";
  if (getOutShardings().size() != getNumResults())
    return emitOpError() << "has " << getOutShardings().size() << " shardings for "
                         << getNumResults() << " results, expected one for each";
  return success();
}

LogicalResult ManualOp::verifyRegions() {
  Block &body = getBody().front();
  auto yield = dyn_cast<YieldOp>(body.back());
  if (!yield)
    return emitOpError() << "has a body that does not end with 'fsdp.yield'";
  if (body.getNumArguments() != getInputs().size())
    return emitOpError() << "has a body with " << body.getNumArguments() << " arguments, expected "
                         << getInputs().size() << ", one for each operand";
  if (yield.getValues().size() != getNumResults())
    return emitOpError() << "yields " << yield.getValues().size() << " values, expected "
                         << getNumResults() << ", one for each result";
  for (auto [index, operand, sharding, argument] :
       llvm::enumerate(getInputs(), getInShardings(), body.getArguments())) {
    auto local = dyn_cast<RankedTensorType>(argument.getType());
    if (!local)
      return emitOpError() << "has an argument of type " << argument.getType()
                           << ", expected a tensor";
    if (failed(verifyBoundary(*this, "operand #" + Twine(index), cast<ShardingAttr>(sharding),
                              getOver(), tensorType(operand), local)))
      return failure();
  }
  for (auto [index, result, sharding, value] :
       llvm::enumerate(getResults(), getOutShardings(), yield.getValues()))
    if (failed(verifyBoundary(*this, "result #" + Twine(index), cast<ShardingAttr>(sharding),
                              getOver(), tensorType(result), tensorType(value))))
      return failure();
  FailureOr<ManualTypes> types = ManualTypes::infer(*this);
  if (failed(types))
    return failure();
  for (auto [index, sharding, value] : llvm::enumerate(getOutShardings(), yield.getValues()))
    for (auto [axis, state] : llvm::zip_equal(types->getAxes(), types->lookup(value))) {
      const AxisState wanted = getBoundaryState(cast<ShardingAttr>(sharding), axis);
      const bool isSum = wanted == AxisState::partial;
      if (isSum ? state != AxisState::invariant : state == AxisState::invariant || state == wanted)
        continue;
      InFlightDiagnostic diagnostic = emitOpError() << "returns a value that is "
                                                    << stringify(state) << " over axis " << axis
                                                    << " as result #" << index << ", which is ";
      if (isSum)
        diagnostic << "unreduced over it and would count it once for each rank; leave 'unreduced' "
                      "out";
      else if (wanted == AxisState::varying)
        diagnostic << "split over it, expected a sum that is formed; use 'fsdp.psum_scatter', or "
                      "return it as unreduced";
      else if (state == AxisState::partial)
        diagnostic << "replicated over it, expected an invariant value; use 'fsdp.psum', or return "
                      "it as unreduced";
      else
        diagnostic << "replicated over it, expected an invariant value; use 'fsdp.psum', or split "
                      "the result";
      diagnostic.attachNote(value.getLoc()) << "the value is computed here";
      return diagnostic;
    }
  return success();
}

LogicalResult EnterManualOp::verify() {
  if (failed(verifyOver(*this, getOver())))
    return failure();
  return verifyBoundary(*this, "the operand", getSharding(), getOver(), tensorType(getInput()),
                        tensorType(getResult()));
}

LogicalResult ExitManualOp::verify() {
  if (failed(verifyOver(*this, getOver())))
    return failure();
  return verifyBoundary(*this, "the result", getSharding(), getOver(), tensorType(getResult()),
                        tensorType(getInput()));
}

LogicalResult PsumOp::verify() { return verifyOver(*this, getOver()); }
LogicalResult PmaxOp::verify() { return verifyOver(*this, getOver()); }
LogicalResult PvaryOp::verify() { return verifyOver(*this, getOver()); }
LogicalResult AxisIndexOp::verify() { return verifyOver(*this, getOver()); }

/// Fails unless `result` has the shape of `input`, as many times as long along `joined` as there
/// are ranks, and cut into as many parts along `cut`; -1 is no dimension.
static LogicalResult verifyResized(Operation *op, ArrayAttr over, int64_t joined, int64_t cut,
                                   Value input, Value result) {
  if (failed(verifyOver(op, over)))
    return failure();
  RankedTensorType from = tensorType(input), to = tensorType(result);
  const int64_t ranks = getMesh(op).getSize(getAxisNames(over));
  SmallVector<int64_t> shape(from.getShape());
  for (int64_t dim : {joined, cut})
    if (dim < -1 || dim >= from.getRank())
      return op->emitOpError() << "names dimension " << dim << " of " << from
                               << ", expected a dimension below " << from.getRank();
  if (joined >= 0)
    shape[joined] *= ranks;
  if (cut >= 0 && shape[cut] % ranks != 0)
    return op->emitOpError() << "cuts dimension " << cut << " of " << from << " into " << ranks
                             << " parts, one for each rank, expected a multiple";
  if (cut >= 0)
    shape[cut] /= ranks;
  if (RankedTensorType expected = from.clone(shape); to != expected)
    return op->emitOpError() << "produces " << to << " from " << from << ", expected " << expected;
  return success();
}

/// A dimension of an op, which no tensor has where it is not one.
static int64_t dimOf(uint64_t dim) {
  return dim > std::numeric_limits<int32_t>::max() ? std::numeric_limits<int32_t>::max()
                                                   : static_cast<int64_t>(dim);
}

LogicalResult PgatherOp::verify() {
  return verifyResized(*this, getOver(), dimOf(getDim()), -1, getInput(), getResult());
}

LogicalResult PsumScatterOp::verify() {
  return verifyResized(*this, getOver(), -1, dimOf(getDim()), getInput(), getResult());
}

LogicalResult PswapOp::verify() {
  if (getSplit() == getConcat())
    return emitOpError() << "cuts and joins along dimension " << getSplit()
                         << ", expected different dimensions; use 'fsdp.ppermute'";
  return verifyResized(*this, getOver(), dimOf(getConcat()), dimOf(getSplit()), getInput(),
                       getResult());
}

LogicalResult PpermuteOp::verify() {
  if (failed(verifyOver(*this, getOver())))
    return failure();
  return detail::verifySources(*this, getFrom(), getMesh(*this).getSize(getAxisNames(getOver())));
}

SmallVector<StringAttr> mlir::fsdp::getManualCollectiveAxes(Operation *op) {
  return getAxisNames(op->getAttrOfType<ArrayAttr>("over"));
}

//===----------------------------------------------------------------------===//
// Sharding rules: how axes that are not manual split the op
//===----------------------------------------------------------------------===//

/// The rule of the boundary `op`: a dimension of the whole value runs over the parts of the manual
/// axes, and over the elements of a part, which other axes split. The factor of the parts is
/// combined where the value enters the region, else parallel.
static nn::ShardingRule getBoundaryRule(Operation *op, ShardingAttr sharding, bool enters) {
  nn::ShardingRule rule;
  MeshAttr mesh = getMesh(op);
  RankedTensorType local = tensorType(enters ? op->getResult(0) : op->getOperand(0));
  nn::TensorFactors whole, own;
  for (int64_t dim = 0; dim < local.getRank(); ++dim) {
    const int64_t parts = static_cast<int64_t>(rule.factors.size());
    rule.factors.push_back({"p" + std::to_string(dim), mesh.getSize(sharding.getAxes(dim)),
                            enters ? nn::FactorKind::combined : nn::FactorKind::parallel});
    rule.factors.push_back({"d" + std::to_string(dim), local.getDimSize(dim)});
    whole.push_back({parts, parts + 1});
    own.push_back({parts + 1});
  }
  rule.operands.push_back(enters ? whole : own);
  rule.results.push_back(enters ? own : whole);
  return rule;
}

nn::ShardingRule EnterManualOp::getShardingRule() {
  return getBoundaryRule(*this, getSharding(), /*enters=*/true);
}
nn::ShardingRule ExitManualOp::getShardingRule() {
  return getBoundaryRule(*this, getSharding(), /*enters=*/false);
}

/// The rule of an op that needs the dimensions `dims` whole.
static nn::ShardingRule getRuleWithout(Operation *op, ArrayRef<int64_t> dims) {
  RankedTensorType from = tensorType(op->getOperand(0)), to = tensorType(op->getResult(0));
  nn::ShardingRule rule;
  nn::TensorFactors operand, result;
  for (int64_t dim = 0; dim < from.getRank(); ++dim) {
    const int64_t own = static_cast<int64_t>(rule.factors.size());
    const std::string name = "d" + std::to_string(dim);
    if (!llvm::is_contained(dims, dim)) {
      rule.factors.push_back({name, from.getDimSize(dim)});
      operand.push_back({own});
      result.push_back({own});
      continue;
    }
    rule.factors.push_back({name, from.getDimSize(dim), nn::FactorKind::whole});
    rule.factors.push_back({name + ".result", to.getDimSize(dim), nn::FactorKind::whole});
    operand.push_back({own});
    result.push_back({own + 1});
  }
  rule.operands.push_back(operand);
  rule.results.push_back(result);
  return rule;
}

nn::ShardingRule PsumOp::getShardingRule() { return nn::ShardingRule::elementwise(*this); }
nn::ShardingRule PmaxOp::getShardingRule() { return nn::ShardingRule::elementwise(*this); }
nn::ShardingRule PvaryOp::getShardingRule() { return nn::ShardingRule::elementwise(*this); }
nn::ShardingRule PpermuteOp::getShardingRule() { return nn::ShardingRule::elementwise(*this); }
nn::ShardingRule PgatherOp::getShardingRule() {
  return getRuleWithout(*this, {static_cast<int64_t>(getDim())});
}
nn::ShardingRule PsumScatterOp::getShardingRule() {
  return getRuleWithout(*this, {static_cast<int64_t>(getDim())});
}
nn::ShardingRule PswapOp::getShardingRule() {
  return getRuleWithout(*this,
                        {static_cast<int64_t>(getSplit()), static_cast<int64_t>(getConcat())});
}

// Sums over other axes may be completed after all but a maximum.
nn::Linearity EnterManualOp::getLinearity() { return nn::Linearity::additive; }
nn::Linearity ExitManualOp::getLinearity() { return nn::Linearity::additive; }
nn::Linearity PsumOp::getLinearity() { return nn::Linearity::additive; }
nn::Linearity PmaxOp::getLinearity() { return nn::Linearity::none; }
nn::Linearity PvaryOp::getLinearity() { return nn::Linearity::additive; }
nn::Linearity PgatherOp::getLinearity() { return nn::Linearity::additive; }
nn::Linearity PsumScatterOp::getLinearity() { return nn::Linearity::additive; }
nn::Linearity PswapOp::getLinearity() { return nn::Linearity::additive; }
nn::Linearity PpermuteOp::getLinearity() { return nn::Linearity::additive; }

nn::PrecisionClass EnterManualOp::getPrecisionClass() { return nn::PrecisionClass::first; }
nn::PrecisionClass ExitManualOp::getPrecisionClass() { return nn::PrecisionClass::first; }
nn::PrecisionClass PsumOp::getPrecisionClass() { return nn::PrecisionClass::first; }
nn::PrecisionClass PmaxOp::getPrecisionClass() { return nn::PrecisionClass::first; }
nn::PrecisionClass PvaryOp::getPrecisionClass() { return nn::PrecisionClass::first; }
nn::PrecisionClass PgatherOp::getPrecisionClass() { return nn::PrecisionClass::first; }
nn::PrecisionClass PsumScatterOp::getPrecisionClass() { return nn::PrecisionClass::first; }
nn::PrecisionClass PswapOp::getPrecisionClass() { return nn::PrecisionClass::first; }
nn::PrecisionClass PpermuteOp::getPrecisionClass() { return nn::PrecisionClass::first; }

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

/// The cotangent of the only operand, which `build` makes from that of the result.
static nn::Cotangents transpose(ArrayRef<Value> d, ArrayRef<bool> needed,
                                llvm::function_ref<Value(Value)> build) {
  return SmallVector<Value>{d[0] && needed[0] ? build(d[0]) : Value()};
}

/// `sharding` with sums that are formed: replicated where it is unreduced.
static ShardingAttr withoutSums(ShardingAttr sharding) {
  return ShardingAttr::get(sharding.getContext(), sharding.getMesh(), sharding.getDimAxes(),
                           sharding.getDimOpen(), {});
}

/// A constraint that splits `value` over manual axes as `sharding` says, and leaves the others
/// open.
static Value constrain(OpBuilder &builder, Location loc, Value value, ShardingAttr sharding,
                       ArrayAttr over) {
  if (sharding.getRank() == 0)
    return value;
  SmallVector<bool> open(sharding.getRank(), true);
  auto wanted =
      ShardingAttr::get(sharding.getContext(), sharding.getMesh(), sharding.getDimAxes(), open, {});
  auto constraint = ConstraintOp::create(builder, loc, value.getType(), value, wanted,
                                         DenseI64ArrayAttr(), /*sequence_parallel=*/false, over);
  return constraint;
}

Value mlir::fsdp::enterManual(OpBuilder &builder, Location loc, Value value, ShardingAttr sharding,
                              ArrayAttr over) {
  auto type = tensorType(value);
  RankedTensorType local = type.clone(
      sharding.getLocalShape(type.getShape(), getMesh(builder.getInsertionBlock()->getParentOp())));
  Value entered = constrain(builder, loc, value, sharding, over);
  return EnterManualOp::create(builder, loc, local, entered, sharding, over);
}

// Each rank has a term of the cotangent of a value that is split or a sum; the cotangent of a
// replicated value is equal on all ranks.
nn::Cotangents EnterManualOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                              ArrayRef<bool> needed) {
  return transpose(d, needed, [&](Value cotangent) {
    return ExitManualOp::create(builder, getLoc(), getInput().getType(), cotangent,
                                withoutSums(getSharding()), getOver());
  });
}

nn::Cotangents ExitManualOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                             ArrayRef<bool> needed) {
  return transpose(d, needed, [&](Value cotangent) {
    return enterManual(builder, getLoc(), cotangent, withoutSums(getSharding()), getOver());
  });
}

nn::Cotangents PsumOp::buildCotangents(OpBuilder &, ArrayRef<Value> d, ArrayRef<bool> needed) {
  return transpose(d, needed, [](Value cotangent) { return cotangent; });
}

nn::Cotangents PvaryOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                        ArrayRef<bool> needed) {
  return transpose(d, needed, [&](Value cotangent) {
    return PsumOp::create(builder, getLoc(), cotangent.getType(), cotangent, getOver());
  });
}

nn::Cotangents PgatherOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                          ArrayRef<bool> needed) {
  return transpose(d, needed, [&](Value cotangent) {
    return PsumScatterOp::create(builder, getLoc(), getInput().getType(), cotangent, getDim(),
                                 getOver());
  });
}

nn::Cotangents PsumScatterOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                              ArrayRef<bool> needed) {
  return transpose(d, needed, [&](Value cotangent) {
    return PgatherOp::create(builder, getLoc(), getInput().getType(), cotangent, getDim(),
                             getOver());
  });
}

nn::Cotangents PswapOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                        ArrayRef<bool> needed) {
  return transpose(d, needed, [&](Value cotangent) {
    return PswapOp::create(builder, getLoc(), getInput().getType(), cotangent,
                           /*split=*/getConcat(), /*concat=*/getSplit(), getOver());
  });
}

nn::Cotangents PpermuteOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                           ArrayRef<bool> needed) {
  return transpose(d, needed, [&](Value cotangent) {
    SmallVector<int64_t> back(getFrom().size(), -1);
    for (auto [rank, source] : llvm::enumerate(getFrom()))
      if (source >= 0)
        back[source] = static_cast<int64_t>(rank);
    return PpermuteOp::create(builder, getLoc(), cotangent.getType(), cotangent, back, getOver());
  });
}
