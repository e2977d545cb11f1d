//===- NNOps.cpp - verifiers and folders ----------------------------------===//

#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Precision.h"
#include "dialect/nn/Rows.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::nn;

//===----------------------------------------------------------------------===//
// Notation of an op
//===----------------------------------------------------------------------===//

static llvm::StringMap<int64_t> readSizes(DictionaryAttr sizes) {
  llvm::StringMap<int64_t> known;
  if (sizes)
    for (NamedAttribute entry : sizes)
      if (auto size = dyn_cast<IntegerAttr>(entry.getValue()))
        known[entry.getName()] = size.getInt();
  return known;
}

/// Solves the sizes of `pattern` against the types of `op`.
static FailureOr<llvm::StringMap<int64_t>> solve(Operation *op, const Notation &pattern,
                                                 const llvm::StringMap<int64_t> &known,
                                                 Notation::EmitError emitError) {
  SmallVector<ArrayRef<int64_t>> shapes;
  for (Type type : op->getOperandTypes())
    shapes.push_back(cast<RankedTensorType>(type).getShape());
  return pattern.solveSizes(shapes, cast<RankedTensorType>(op->getResult(0).getType()).getShape(),
                            known, emitError);
}

Notation EinsumOp::getPattern() { return *Notation::parseEinsum(getNotation(), nullptr); }
Notation RearrangeOp::getPattern() { return *Notation::parseEinops(getNotation(), nullptr); }
Notation RepeatOp::getPattern() { return *Notation::parseEinops(getNotation(), nullptr); }
Notation ReduceOp::getPattern() { return *Notation::parseEinops(getNotation(), nullptr); }

llvm::StringMap<int64_t> EinsumOp::getNameSizes() {
  return *solve(*this, getPattern(), {}, nullptr);
}
llvm::StringMap<int64_t> RearrangeOp::getNameSizes() {
  return *solve(*this, getPattern(), readSizes(getSizesAttr()), nullptr);
}
llvm::StringMap<int64_t> RepeatOp::getNameSizes() {
  return *solve(*this, getPattern(), {}, nullptr);
}
llvm::StringMap<int64_t> ReduceOp::getNameSizes() {
  return *solve(*this, getPattern(), {}, nullptr);
}

/// The one spelling of a notation (C1 of the structured ops).
static LogicalResult verifyCanonical(Operation *op, StringRef text, StringRef canonical) {
  if (text == canonical)
    return success();
  return op->emitOpError("notation is not in canonical spelling: got '")
         << text << "', expected '" << canonical << "'";
}

static llvm::StringSet<> namesOf(const NotationTensor &tensor) {
  llvm::StringSet<> names;
  for (const NotationDim &dim : tensor)
    for (const std::string &name : dim)
      names.insert(name);
  return names;
}

/// No name occurs twice in one tensor.
static LogicalResult verifyDistinct(Operation *op, const Notation &pattern) {
  auto verifyTensor = [&](const NotationTensor &tensor, const Twine &what) -> LogicalResult {
    SmallVector<StringRef, 8> seen;
    for (const NotationDim &dim : tensor)
      for (const std::string &name : dim) {
        if (llvm::is_contained(seen, name))
          return op->emitOpError("name '") << name << "' appears twice in " << what;
        seen.push_back(name);
      }
    return success();
  };
  for (auto [index, operand] : llvm::enumerate(pattern.operands))
    if (failed(verifyTensor(operand, "operand " + Twine(index))))
      return failure();
  return verifyTensor(pattern.result, "the result");
}

/// Every dimension has one name.
static LogicalResult verifyUngrouped(Operation *op, const Notation &pattern) {
  for (const NotationTensor *tensor : {&pattern.operands.front(), &pattern.result})
    for (const NotationDim &dim : *tensor)
      if (dim.size() != 1)
        return op->emitOpError("takes one name per dimension; use 'nn.rearrange' for groups "
                               "and dimensions of size one");
  return success();
}

static bool contains(const NotationTensor &tensor, StringRef name) {
  return llvm::any_of(tensor,
                      [&](const NotationDim &dim) { return llvm::is_contained(dim, name); });
}

/// Every name of `inner` occurs in `outer`, or in `other` if given.
static LogicalResult verifyContained(Operation *op, const NotationTensor &inner,
                                     const NotationTensor &outer, const Twine &message,
                                     const NotationTensor *other = nullptr) {
  for (const NotationDim &dim : inner)
    for (const std::string &name : dim)
      if (!contains(outer, name) && !(other && contains(*other, name)))
        return op->emitOpError("name '") << name << "' " << message;
  return success();
}

//===----------------------------------------------------------------------===//
// Structured ops
//===----------------------------------------------------------------------===//

LogicalResult EinsumOp::verify() {
  auto emitError = [&] { return emitOpError(); };
  FailureOr<Notation> pattern = Notation::parseEinsum(getNotation(), emitError);
  if (failed(pattern))
    return failure();
  // (C1)
  if (pattern->operands.size() != 2)
    return emitOpError("notation has ")
           << pattern->operands.size() << " operands, expected 2 separated by ','";
  if (failed(verifyCanonical(*this, getNotation(), pattern->printEinsum())))
    return failure();
  // (C2)
  if (failed(verifyDistinct(*this, *pattern)))
    return failure();
  // (C3)
  const NotationTensor &lhs = pattern->operands[0], &rhs = pattern->operands[1];
  StringRef lone = "appears in one operand only; sum over it with 'nn.reduce' first";
  if (failed(verifyContained(*this, lhs, pattern->result, lone, &rhs)) ||
      failed(verifyContained(*this, rhs, pattern->result, lone, &lhs)) ||
      failed(verifyContained(*this, pattern->result, lhs,
                             "of the result appears in no operand; add it with 'nn.repeat'", &rhs)))
    return failure();
  // (C4)
  return solve(*this, *pattern, {}, emitError);
}

LogicalResult RearrangeOp::verify() {
  auto emitError = [&] { return emitOpError(); };
  FailureOr<Notation> pattern = Notation::parseEinops(getNotation(), emitError);
  // (C1)
  if (failed(pattern) || failed(verifyCanonical(*this, getNotation(), pattern->printEinops())))
    return failure();
  // (C2)
  const NotationTensor &operand = pattern->operands.front();
  if (failed(verifyDistinct(*this, *pattern)) ||
      failed(verifyContained(*this, operand, pattern->result, "is missing from the result")) ||
      failed(verifyContained(*this, pattern->result, operand, "is missing from the operand")))
    return failure();
  // (C3)
  llvm::StringMap<int64_t> known;
  llvm::StringSet<> names = namesOf(operand);
  if (DictionaryAttr sizes = getSizesAttr()) {
    if (sizes.empty())
      return emitOpError("'sizes' is empty; leave it out");
    for (NamedAttribute entry : sizes) {
      auto size = dyn_cast<IntegerAttr>(entry.getValue());
      if (!size || !size.getType().isInteger(64) || size.getInt() < 0)
        return emitOpError("size of '") << entry.getName().getValue() << "' is " << entry.getValue()
                                        << ", expected a non-negative i64";
      if (!names.contains(entry.getName()))
        return emitOpError("'sizes' has '")
               << entry.getName().getValue() << "', which the notation does not name";
    }
    known = readSizes(sizes);
    for (NamedAttribute entry : sizes) {
      llvm::StringMap<int64_t> others(known);
      others.erase(entry.getName());
      if (succeeded(solve(*this, *pattern, others, nullptr)))
        return emitOpError("size of '") << entry.getName().getValue()
                                        << "' follows from the shapes; leave it out of 'sizes'";
    }
  }
  return solve(*this, *pattern, known, emitError);
}

LogicalResult RepeatOp::verify() {
  auto emitError = [&] { return emitOpError(); };
  FailureOr<Notation> pattern = Notation::parseEinops(getNotation(), emitError);
  // (C1)
  if (failed(pattern) || failed(verifyUngrouped(*this, *pattern)) ||
      failed(verifyCanonical(*this, getNotation(), pattern->printEinops())))
    return failure();
  // (C2)
  if (failed(verifyDistinct(*this, *pattern)) ||
      failed(verifyContained(*this, pattern->operands.front(), pattern->result,
                             "is missing from the result; reduce over it with 'nn.reduce'")))
    return failure();
  // (C3)
  return solve(*this, *pattern, {}, emitError);
}

LogicalResult ReduceOp::verify() {
  auto emitError = [&] { return emitOpError(); };
  FailureOr<Notation> pattern = Notation::parseEinops(getNotation(), emitError);
  // (C1)
  if (failed(pattern) || failed(verifyUngrouped(*this, *pattern)) ||
      failed(verifyCanonical(*this, getNotation(), pattern->printEinops())))
    return failure();
  // (C2)
  if (failed(verifyDistinct(*this, *pattern)) ||
      failed(verifyContained(*this, pattern->result, pattern->operands.front(),
                             "is missing from the operand; add it with 'nn.repeat'")))
    return failure();
  // (C3)
  if (failed(solve(*this, *pattern, {}, emitError)))
    return failure();
  // (C4)
  Type from = getInput().getType().getElementType(), to = getType().getElementType();
  if (from.isInteger(1))
    return emitOpError("cannot combine elements of type i1; convert them with 'arith.uitofp'");
  if (from != to && !(isa<FloatType>(from) && isa<FloatType>(to) &&
                      from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth()))
    return emitOpError("result has element type ")
           << to << ", expected " << from << " or a wider float type";
  if (getKind() == Reduction::mean && !isa<FloatType>(from))
    return emitOpError("mean has element type ")
           << from << ", expected a float type; convert it with 'arith.sitofp'";
  return success();
}

/// A constant of `type` filled with the one element of `value`, or null.
static Attribute foldSplat(Attribute value, RankedTensorType type) {
  auto splat = dyn_cast_if_present<SplatElementsAttr>(value);
  return splat ? splat.resizeSplat(type) : Attribute();
}

/// True if `second` undoes `first`: both name the same factors, of equal sizes, in the same places.
static bool areInverse(RearrangeOp first, RearrangeOp second) {
  ShardingRule one = first.getShardingRule(), other = second.getShardingRule();
  DenseMap<int64_t, int64_t> known; // factors of `second`, by those of `first`
  auto matchDims = [&](const DimFactors &left, const DimFactors &right) {
    return llvm::equal(left, right, [&](int64_t a, int64_t b) {
      return known.try_emplace(a, b).first->second == b &&
             one.factors[a].size == other.factors[b].size;
    });
  };
  return llvm::equal(one.results.front(), other.operands.front(), matchDims) &&
         llvm::equal(one.operands.front(), other.results.front(), matchDims);
}

OpFoldResult RearrangeOp::fold(FoldAdaptor adaptor) {
  Notation pattern = getPattern();
  if (pattern.operands.front() == pattern.result)
    return getInput();
  if (auto first = getInput().getDefiningOp<RearrangeOp>(); first && areInverse(first, *this))
    return first.getInput();
  return foldSplat(adaptor.getInput(), getType());
}

OpFoldResult RepeatOp::fold(FoldAdaptor adaptor) {
  Notation pattern = getPattern();
  if (pattern.operands.front() == pattern.result)
    return getInput();
  return foldSplat(adaptor.getInput(), getType());
}

//===----------------------------------------------------------------------===//
// Row ops
//===----------------------------------------------------------------------===//

LogicalResult mlir::nn::verifyRows(Operation *op, RankedTensorType whole, RankedTensorType tensor,
                                   StringRef name) {
  if (tensor.getShape() == whole.getShape().drop_back())
    return success();
  return op->emitOpError() << name << " has type " << tensor
                           << ", expected the shape of the rows of " << whole;
}

static LogicalResult verifyElement(Operation *op, RankedTensorType whole, RankedTensorType tensor,
                                   StringRef what) {
  Type sum = getSumType(whole.getElementType());
  if (tensor.getElementType() == sum)
    return success();
  return op->emitOpError() << what << " has element type " << tensor.getElementType()
                           << ", expected " << sum << " for sums of logits";
}

LogicalResult mlir::nn::verifyHasRows(Operation *op, RankedTensorType whole, StringRef name) {
  if (whole.getRank() > 0)
    return success();
  return op->emitOpError() << name << " has rank 0, expected at least 1";
}

/// Constraints that the ops on rows of logits share: labels and `numbers` (with their names) have
/// one element per row, and numbers have the type of sums.
static LogicalResult verifyRowsOfLogits(Operation *op, RankedTensorType logits,
                                        RankedTensorType labels,
                                        ArrayRef<std::pair<StringRef, RankedTensorType>> numbers) {
  // (C3)
  if (failed(verifyHasRows(op, logits, "'logits'")))
    return failure();
  // (C1)
  if (failed(verifyRows(op, logits, labels, "'labels'")))
    return failure();
  for (auto [name, type] : numbers)
    if (failed(verifyRows(op, logits, type, name)))
      return failure();
  // (C2)
  for (auto [name, type] : numbers)
    if (failed(verifyElement(op, logits, type, name)))
      return failure();
  return success();
}

/// The constraints of rows, and (C4) of losses that may have a gradient.
template <typename Op>
static LogicalResult verifyLoss(Op op,
                                SmallVector<std::pair<StringRef, RankedTensorType>> numbers) {
  if (Value upstream = op.getDLoss())
    numbers.emplace_back("'d_loss'", cast<RankedTensorType>(upstream.getType()));
  if (failed(verifyRowsOfLogits(op, op.getLogits().getType(), op.getLabels().getType(), numbers)))
    return failure();
  // (C4)
  if (!op.getDLoss() != !op.getGradient())
    return op.emitOpError() << "has " << (op.getDLoss() ? "'d_loss' without" : "no 'd_loss' with")
                            << " a 'gradient', expected both or neither";
  if (op.getGradient() && op.getGradient().getType() != op.getLogits().getType())
    return op.emitOpError() << "'gradient' has type " << op.getGradient().getType() << ", expected "
                            << op.getLogits().getType() << " as 'logits'";
  return success();
}

LogicalResult CrossEntropyOp::verify() {
  return verifyLoss(*this,
                    {{"'loss'", getLoss().getType()}, {"'log_sum_exp'", getLogSumExp().getType()}});
}

LogicalResult PartialCrossEntropyOp::verify() {
  return verifyLoss(*this, {{"'max'", getMax().getType()},
                            {"'sum'", getSum().getType()},
                            {"'picked'", getPicked().getType()}});
}

LogicalResult CrossEntropyGradOp::verify() {
  return verifyRowsOfLogits(
      *this, getLogits().getType(), getLabels().getType(),
      {{"'log_sum_exp'", getLogSumExp().getType()}, {"'d_loss'", getDLoss().getType()}});
}

LogicalResult ArgmaxOp::verify() {
  RankedTensorType input = getInput().getType();
  // (C2)
  if (failed(verifyHasRows(*this, input, "'input'")))
    return failure();
  if (input.getShape().back() == 0)
    return emitOpError("'input' has an empty last dimension, expected at least one element");
  // (C1)
  return verifyRows(*this, input, getType(), "'result'");
}

//===----------------------------------------------------------------------===//
// Fusion
//===----------------------------------------------------------------------===//

LogicalResult FusedOp::verify() {
  Block &body = getBody().front();
  // (C1)
  if (!llvm::equal(body.getArgumentTypes(), getOperandTypes()))
    return emitOpError("block has arguments ")
           << body.getArgumentTypes() << ", expected the types of the operands "
           << getOperandTypes();
  // (C2)
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield)
    return emitOpError("block does not end with 'nn.yield'");
  for (Operation &op : body)
    if (!isMemoryEffectFree(&op))
      return op.emitOpError("has side effects and cannot be in 'nn.fused'");
  // (C1)
  if (!llvm::equal(yield.getOperandTypes(), getResultTypes()))
    return yield.emitOpError("yields ")
           << yield.getOperandTypes() << ", expected the results of 'nn.fused' "
           << getResultTypes();
  return success();
}
