//===- AttentionOps.cpp - attention and rotary positions ------------------===//

#include "dialect/nn/HeadWidth.h"
#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Precision.h"
#include "runtime/program/Limits.h"

using namespace mlir;
using namespace mlir::nn;

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// One entry for each dimension of `order`: that of its letter.
template <typename T>
static SmallVector<T, 4> inOrder(StringRef order, T batch, T heads, T positions, T width, T parts) {
  SmallVector<T, 4> entries;
  for (char letter : order)
    if (letter != ' ')
      entries.push_back(letter == 'b'   ? batch
                        : letter == 'h' ? heads
                        : letter == 't' ? positions
                        : letter == 'd' ? width
                                        : parts);
  return entries;
}

/// (C1), (C2): how many inputs there are, and how many dimensions they have.
static LogicalResult verifyInputs(Operation *op, StringRef order, TypeRange inputs, bool bias,
                                  bool documents) {
  // (C1)
  if (!isAttentionOrder(order))
    return op->emitOpError("has order '")
           << order << "', expected the letters b, h, t, and n where one input holds queries, "
           << "keys and values, with single spaces between them, then d";
  // (C2)
  int64_t parts = attentionDim(order, 'n');
  if (size_t expected = (parts < 0 ? 3 : 1) + bias + documents; inputs.size() != expected)
    return op->emitOpError("has ")
           << inputs.size() << " inputs, expected " << expected << " for the order '" << order
           << "'" << (bias ? " with a bias" : "")
           << (documents ? (bias ? " and the ids of documents" : " with the ids of documents")
                         : "");
  // (C3)
  size_t rank = order.size() / 2 + 1;
  constexpr StringRef names[] = {"'q'", "'k'"};
  for (auto [input, name] : llvm::zip(inputs.drop_back(bias + documents), names))
    if (auto type = cast<RankedTensorType>(input); size_t(type.getRank()) != rank)
      return op->emitOpError() << (parts < 0 ? name : "the input") << " has type " << type
                               << ", expected the " << rank << " dimensions '" << order << "'";
  if (parts >= 0)
    if (auto type = cast<RankedTensorType>(inputs[0]); type.getDimSize(parts) != 3)
      return op->emitOpError("the input has type ")
             << type << ", expected size 3 in dimension " << parts << ": queries, keys and values";
  return success();
}

/// The bias of an attention that has one.
template <typename Op> static Value getBiasOf(Op op) {
  return op.getInputs()[op.getTensors().size()];
}

/// (C8).
static LogicalResult verifyScores(Operation *op, bool causal, std::optional<uint64_t> window,
                                  std::optional<APFloat> softcap) {
  if (window && static_cast<int64_t>(*window) < 1)
    return op->emitOpError("has window ")
           << static_cast<int64_t>(*window) << ", expected a positive number of keys";
  if (window && !causal)
    return op->emitOpError("has window ")
           << *window << " without 'causal', expected both, as a window ends at the query";
  if (softcap && !(softcap->isFiniteNonZero() && !softcap->isNegative()))
    return op->emitOpError("has softcap ")
           << softcap->convertToDouble() << ", expected a positive number";
  return success();
}

/// (C9).
static LogicalResult verifyDocuments(Operation *op, const AttentionLayout &sizes, Type ids) {
  auto type = cast<RankedTensorType>(ids);
  if (!type.getElementType().isInteger(32) ||
      type.getShape() != ArrayRef<int64_t>({sizes.batch, sizes.keys}))
    return op->emitOpError("has documents of type ")
           << type << ", expected ids of "
           << RankedTensorType::get({sizes.batch, sizes.keys},
                                    IntegerType::get(op->getContext(), 32))
           << ", one for each batch and key";
  if (sizes.keys < sizes.queries)
    return op->emitOpError("has ") << sizes.keys << " keys for " << sizes.queries
                                   << " queries, expected at least as many with documents, so "
                                      "that every query is at a key, whose document is its own";
  return success();
}

/// (C10).
static LogicalResult verifyBias(Operation *op, const AttentionLayout &sizes, Type bias,
                                Type element) {
  auto type = cast<RankedTensorType>(bias);
  auto expected = [&](int64_t heads) {
    return RankedTensorType::get({heads, sizes.queries, sizes.keys}, element);
  };
  if (type == expected(1) || type == expected(sizes.heads))
    return success();
  InFlightDiagnostic error = op->emitOpError("has a bias of type ") << type << ", expected ";
  if (sizes.heads != 1)
    error << expected(sizes.heads) << ", one for each head, or ";
  return error << expected(1) << ", one for all heads";
}

/// (C11) to (C13).
template <typename Op>
static LogicalResult verifySharedPositions(Op op, const AttentionLayout &sizes) {
  if (std::optional<KeyExchange> exchange = op.getExchange()) {
    if (sizes.keys != sizes.queries)
      return op.emitOpError("has ")
             << sizes.keys << " keys for " << sizes.queries
             << " queries, expected as many with 'exchange', whose ranks have "
                "those of the same positions";
    if (op.getAt() || op.getOver())
      return op.emitOpError("has 'at' and 'exchange', expected one of them: partitioning replaces "
                            "'exchange' by 'at'");
    if (*exchange == KeyExchange::ring && (op.getBias() || op.getDocuments()))
      return op.emitOpError("has ")
             << (op.getBias() ? "a bias" : "the ids of documents")
             << " with 'exchange ring', expected 'exchange gather', where each "
                "rank has all keys";
  }
  // (C13)
  if (std::optional<uint64_t> zigzag = op.getZigzag()) {
    const auto ranks = static_cast<int64_t>(*zigzag);
    if (!op.getExchange() || !op.getCausal() || op.getBias())
      return op.emitOpError("has 'zigzag', expected 'exchange' and 'causal' with it, and no bias");
    if (ranks < 2 || ranks > sizes.queries || sizes.queries % (2 * ranks) != 0)
      return op.emitOpError("has 'zigzag' ")
             << ranks << " for " << sizes.queries
             << " positions, expected at least 2 ranks with two chunks of as many positions each";
  }
  if (op.getAt().has_value() != op.getOver().has_value() || (op.getAt() && op.getAt()->empty()))
    return op.emitOpError("expected 'at' and 'over' together, with one number for each rank");
  if (const std::optional<ArrayRef<int64_t>> at = op.getAt(); at && op.getDocuments())
    for (int64_t first : *at)
      if (first < 0 || first + sizes.queries > sizes.keys)
        return op.emitOpError("has queries at ")
               << first << " to " << first + sizes.queries - 1 << ", expected keys from 0 to "
               << sizes.keys - 1 << " with documents, so that every query is at a key";
  return success();
}

template <typename Op> static LogicalResult verifyAttention(Op op) {
  const StringRef order = op.getOrder();
  const bool causal = op.getCausal();
  if (failed(verifyInputs(op, order, op.getInputs().getTypes(), op.getBias(), op.getDocuments())))
    return failure();
  const TypeRange inputs = op.getTensors().getTypes();
  const Type outType = op.getOut().getType(), sumsType = op.getLogSumExp().getType();
  auto q = cast<RankedTensorType>(inputs.front()), out = cast<RankedTensorType>(outType),
       logSumExp = cast<RankedTensorType>(sumsType);
  const AttentionLayout sizes(order, inputs);
  if (inputs.size() > 1) {
    // (C3)
    auto k = cast<RankedTensorType>(inputs[1]), v = cast<RankedTensorType>(inputs[2]);
    if (k.getShape() !=
        ArrayRef(inOrder(order, sizes.batch, sizes.groups, sizes.keys, sizes.width, int64_t(3))))
      return op.emitOpError("'k' has type ") << k << ", expected batch " << sizes.batch
                                             << " and width " << sizes.width << " as in 'q'";
    if (v.getShape() != k.getShape())
      return op.emitOpError("'v' has type ") << v << ", expected the shape of 'k', " << k;
    // (C4)
    if (sizes.groups == 0 ? sizes.heads != 0 : sizes.heads % sizes.groups != 0)
      return op.emitOpError("has ") << sizes.heads << " heads and " << sizes.groups
                                    << " groups, expected the groups to divide the heads";
  }
  // (C5)
  SmallVector<int64_t, 4> shape = inOrder(attentionOutOrder(order), sizes.batch, sizes.heads,
                                          sizes.queries, sizes.width, int64_t(3));
  if (out.getShape() != ArrayRef(shape))
    return op.emitOpError("'out' has type ")
           << out << ", expected " << RankedTensorType::get(shape, q.getElementType());
  if (logSumExp.getShape() != ArrayRef<int64_t>({sizes.batch, sizes.heads, sizes.queries}))
    return op.emitOpError("'log_sum_exp' has type ")
           << logSumExp << ", expected batch " << sizes.batch << ", " << sizes.heads
           << " heads and " << sizes.queries << " queries";
  // (C6)
  int64_t least = causal && !op.getAt() ? std::max<int64_t>(sizes.queries, 1) : 1;
  if (sizes.keys < least)
    return op.emitOpError("has ") << sizes.keys << " keys for " << sizes.queries
                                  << " queries, expected at least " << least
                                  << " so that every query sees one";
  // (C7)
  if (!isa<FloatType>(q.getElementType()))
    return op.emitOpError("has an operand of type ") << q << ", expected floats to attend with";
  for (Type type : llvm::concat<const Type>(SmallVector<Type>(inputs), ArrayRef<Type>(outType)))
    if (getElementTypeOrSelf(type) != q.getElementType())
      return op.emitOpError("has an operand or result of type ")
             << type << ", expected element type " << q.getElementType()
             << " as in the first operand";
  if (Type sum = getSumType(q.getElementType()); logSumExp.getElementType() != sum)
    return op.emitOpError("'log_sum_exp' has type ")
           << logSumExp << ", expected element type " << sum << " for sums of "
           << q.getElementType();
  if (failed(verifyScores(op, causal, op.getWindow(), op.getSoftcap())))
    return failure();
  if (op.getDocuments() && failed(verifyDocuments(op, sizes, op.getInputs().back().getType())))
    return failure();
  if (failed(verifySharedPositions(op, sizes)))
    return failure();
  return op.getBias() ? verifyBias(op, sizes, getBiasOf(op).getType(), logSumExp.getElementType())
                      : success();
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this); }

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  // (C14)
  if (getGradients().size() != getTensors().size())
    return emitOpError("has ") << getGradients().size() << " results, expected "
                               << getTensors().size() << ": one for each input"
                               << (getBias() ? " but the bias" : "")
                               << (getDocuments() ? (getBias() ? " and the ids" : " but the ids")
                                                  : "");
  for (auto [index, gradient, input] : llvm::enumerate(getGradients(), getTensors()))
    if (gradient.getType() != input.getType())
      return emitOpError("has a gradient #") << index << " of type " << gradient.getType()
                                             << ", expected that of the input, " << input.getType();
  return success();
}

LogicalResult AttentionBiasGradOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  // (C14)
  if (Type bias = getBiasOf(*this).getType(); getGradient().getType() != bias)
    return emitOpError("has a gradient of type ")
           << getGradient().getType() << ", expected that of the bias, " << bias;
  return success();
}

AttentionLayout AttentionOp::getLayout() { return {getOrder(), getInputs().getTypes()}; }
AttentionLayout AttentionGradOp::getLayout() { return {getOrder(), getInputs().getTypes()}; }
AttentionLayout AttentionBiasGradOp::getLayout() { return {getOrder(), getInputs().getTypes()}; }

LogicalResult RopeOp::verify() {
  RankedTensorType type = getX().getType();
  // (C1)
  int64_t dim = getDim();
  if (dim < 0 || dim >= type.getRank() - 1)
    return emitOpError("takes positions from dimension ")
           << dim << " of " << type << ", expected a dimension before the last";
  if (type.getShape().back() % 2 != 0)
    return emitOpError("has width ")
           << type.getShape().back()
           << ", expected an even number, because pairs of elements are rotated";
  // (C2)
  double theta = getTheta().convertToDouble();
  if (!(theta > 0))
    return emitOpError("has theta ") << theta << ", expected a positive number";
  // (C3)
  for (auto [name, value] : {std::pair("factor", getFactor()), {"magnitude", getMagnitude()}})
    if (value && !(value->isFiniteNonZero() && !value->isNegative()))
      return emitOpError("has ") << name << " " << value->convertToDouble()
                                 << ", expected a positive number";
  // (C4)
  const bool ramp = getRamp().has_value();
  if (ramp != getFrom().has_value() || ramp != getTo().has_value() || (ramp && !getFactor()))
    return emitOpError("expected 'ramp', 'from' and 'to' together, and with a 'factor'");
  if (ramp && !(getFrom()->isFinite() && getTo()->isFinite() &&
                getFrom()->compare(*getTo()) != APFloat::cmpEqual))
    return emitOpError("has a ramp from ")
           << getFrom()->convertToDouble() << " to " << getTo()->convertToDouble()
           << ", expected two different finite numbers";
  // (C5)
  if (!getPositions())
    return success();
  if (dim == 0)
    return emitOpError("takes 'positions' for dimension 0, expected a dimension after the samples");
  const int64_t shape[] = {type.getDimSize(0), type.getDimSize(dim)};
  if (auto positions = cast<RankedTensorType>(getPositions().getType());
      positions.getShape() != ArrayRef(shape) || !positions.getElementType().isInteger(32))
    return emitOpError("'positions' has type ")
           << positions << ", expected tensor<" << shape[0] << "x" << shape[1] << "xi32>";
  return success();
}

//===----------------------------------------------------------------------===//
// Sharding rules
//===----------------------------------------------------------------------===//

/// Batch, groups and the heads of a group may be split, these where each rank has (heads of) one
/// group; width and parts stay whole, and positions without `exchange`. `heads`: keys and values,
/// which all heads of a group read, have no such factor.
template <typename Op> static ShardingRule attentionRule(Op op, FactorKind heads) {
  const StringRef order = op.getOrder();
  const AttentionLayout sizes = op.getLayout();
  ShardingRule rule;
  rule.factors = {
      {"batch", sizes.batch, FactorKind::parallel},
      {"group", sizes.groups, FactorKind::parallel},
      {"head", sizes.groups ? sizes.heads / sizes.groups : 1, heads},
      {"query", sizes.queries, op.getExchange() ? FactorKind::combined : FactorKind::whole},
      {"key", sizes.keys, FactorKind::whole},
      {"width", sizes.width, FactorKind::whole}};
  if (attentionDim(order, 'n') >= 0)
    rule.factors.push_back({"part", 3, FactorKind::whole});
  return rule;
}

/// The factors of an operand that has such heads, and the positions of queries or of keys.
static TensorFactors factorsIn(StringRef order, DimFactors heads, int64_t positions) {
  return inOrder<DimFactors>(order, {0}, heads, {positions}, {5}, {6});
}

/// The factor of the positions of keys and values: that of queries where they share positions, with
/// `exchange` and in one tensor.
template <typename Op> static int64_t keyFactor(Op op) {
  return op.getExchange() || op.getTensors().size() == 1 ? 3 : 4;
}

/// Whether the bias of an attention is one for all heads.
template <typename Op> static bool sharesBias(Op op) {
  return cast<RankedTensorType>(getBiasOf(op).getType()).getDimSize(0) == 1;
}

/// The factors of the bias.
static TensorFactors biasFactors(bool shared) {
  return {shared ? DimFactors{} : DimFactors{1, 2}, {3}, {4}};
}

/// The factors of queries, keys and values, and of their gradients.
template <typename Op> static SmallVector<TensorFactors, 3> inputFactors(Op op) {
  const StringRef order = op.getOrder();
  TensorFactors q = factorsIn(order, {1, 2}, 3), k = factorsIn(order, {1}, keyFactor(op));
  if (attentionDim(order, 'n') >= 0)
    return {q};
  return {q, k, k};
}

static const TensorFactors rowFactors = {{0}, {1, 2}, {3}};

/// The factors of all inputs.
template <typename Op> static SmallVector<TensorFactors, 3> allInputFactors(Op op) {
  SmallVector<TensorFactors, 3> factors = inputFactors(op);
  if (op.getBias())
    factors.push_back(biasFactors(sharesBias(op)));
  if (op.getDocuments())
    factors.push_back({{0}, {keyFactor(op)}});
  return factors;
}

ShardingRule AttentionOp::getShardingRule() {
  ShardingRule rule = attentionRule(*this, FactorKind::parallel);
  rule.operands = allInputFactors(*this);
  rule.results = {factorsIn(attentionOutOrder(getOrder()), {1, 2}, 3), rowFactors};
  return rule;
}

ShardingRule AttentionGradOp::getShardingRule() {
  ShardingRule rule = attentionRule(*this, FactorKind::sumReduction);
  SmallVector<TensorFactors, 3> gradients = inputFactors(*this);
  TensorFactors out = factorsIn(attentionOutOrder(getOrder()), {1, 2}, 3);
  rule.operands = allInputFactors(*this);
  llvm::append_range(rule.operands, ArrayRef<TensorFactors>({out, rowFactors, out}));
  rule.results.assign(gradients.begin(), gradients.end());
  // Without the cotangent a head adds nothing to keys and values; without its query it still does.
  rule.annihilator = static_cast<int64_t>(rule.operands.size()) - 1;
  return rule;
}

// Summed over the batch, and a bias for all heads over these.
ShardingRule AttentionBiasGradOp::getShardingRule() {
  const bool shared = sharesBias(*this);
  ShardingRule rule =
      attentionRule(*this, shared ? FactorKind::sumReduction : FactorKind::parallel);
  rule.factors[0].kind = FactorKind::sumReduction;
  rule.factors[1].kind = rule.factors[2].kind;
  TensorFactors out = factorsIn(attentionOutOrder(getOrder()), {1, 2}, 3);
  rule.operands = allInputFactors(*this);
  llvm::append_range(rule.operands, ArrayRef<TensorFactors>({out, rowFactors, out}));
  rule.results = {biasFactors(shared)};
  // Scores without a cotangent add nothing.
  rule.annihilator = static_cast<int64_t>(rule.operands.size()) - 1;
  return rule;
}

// The width that pairs are made of stays whole, as do positions that turn by their index.
ShardingRule RopeOp::getShardingRule() {
  ShardingRule rule;
  const TensorFactors row = rule.addDims(getX().getType());
  rule.factors.back().kind = FactorKind::whole;
  if (!getPositions())
    rule.factors[getDim()].kind = FactorKind::whole;
  rule.operands = {row};
  if (getPositions())
    rule.operands.push_back({{0}, {static_cast<int64_t>(getDim())}});
  rule.results = {row};
  return rule;
}

Linearity RopeOp::getLinearity() { return Linearity::additive; }

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

PrecisionClass AttentionOp::getPrecisionClass() { return PrecisionClass::narrow; }
bool AttentionOp::isContraction() { return true; }
bool AttentionOp::keepsSumType(unsigned operand) {
  return getBias() && operand == getTensors().size();
}
PrecisionClass RopeOp::getPrecisionClass() { return PrecisionClass::first; }

template <typename Op> static KernelCall attentionCall(Op op) {
  AttentionLayout at = op.getLayout();
  auto strides = [](const AttentionStrides &s) {
    return SmallVector<int64_t, 3>{s.batch, s.head, s.position};
  };
  ShapeArgument shape("AttentionShape");
  shape.field("batch", at.batch)
      .field("heads", at.heads)
      .field("groups", at.groups)
      .field("queries", at.queries)
      .field("keys", at.keys)
      .field("width", at.width)
      .single("scale", op.getScale())
      .field("causal", op.getCausal())
      .field("q", strides(at.q))
      .field("k", strides(at.k))
      .field("out", strides(at.out));
  // From one head's bias to the next's.
  const int64_t bias = op.getBias() && !sharesBias(op) ? at.queries * at.keys : 0;
  const bool options = op.getWindow() || op.getSoftcap() || bias || op.getAt();
  if (op.getTensors().size() == 1 || options)
    shape.field("part", at.part);
  // The largest distance of a query from a key that it is behind of.
  const int64_t reach =
      op.getAt() ? std::max<int64_t>(*llvm::max_element(*op.getAt()) + at.queries, 1) : at.keys;
  if (options)
    shape.field("window", std::min<int64_t>(op.getWindow().value_or(0), reach));
  if (op.getSoftcap() || bias || op.getAt())
    shape.single("softcap", op.getSoftcap().value_or(APFloat(0.0)));
  if (bias || op.getAt())
    shape.field("bias", bias);
  if (op.getAt())
    shape.numberOfRank(
        "offset",
        llvm::map_to_vector<4>(*op.getAt(),
                               [&](int64_t first) { return first - (at.keys - at.queries); }),
        *op.getOver());
  KernelCall call(op, std::move(shape));
  unsigned next = op.getTensors().size();
  if (op.getBias())
    call.marked.push_back({next++, "withBias"});
  if (op.getDocuments())
    call.marked.push_back({next, "inDocuments"});
  return call;
}

KernelCall AttentionOp::getKernelCall() { return attentionCall(*this); }
KernelCall AttentionGradOp::getKernelCall() { return attentionCall(*this); }
KernelCall AttentionBiasGradOp::getKernelCall() { return attentionCall(*this); }

KernelCall RopeOp::getKernelCall() {
  ArrayRef<int64_t> shape = getX().getType().getShape();
  ShapeArgument argument("RopeShape");
  argument.field("blocks", elementsOf(shape.take_front(getDim())))
      .field("positions", shape[getDim()])
      .field("inner", elementsOf(shape.drop_front(getDim() + 1).drop_back()))
      .field("width", shape.back())
      .number("theta", getTheta())
      .field("inverse", getInverse());
  if (getFactor() || getMagnitude() || getPositions()) {
    const StringRef ramp = !getRamp() ? "None" : *getRamp() == RopeRamp::index ? "Index" : "Rate";
    argument.number("magnitude", getMagnitude().value_or(APFloat(1.0)))
        .number("factor", getFactor().value_or(APFloat(1.0)))
        .expression("ramp", ("RopeRamp::" + ramp).str())
        .number("from", getFrom().value_or(APFloat(0.0)))
        .number("to", getTo().value_or(APFloat(0.0)));
  }
  if (getPositions())
    argument.field("repeats", elementsOf(shape.take_front(getDim()).drop_front()));
  return {*this, std::move(argument)};
}

// A pair is read before it is written.
InPlacePairs RopeOp::getInPlacePairs() { return {{0, 0}}; }

LogicalResult mlir::nn::verifyHeadWidth(Operation *op, int64_t width) {
  constexpr int64_t most = limits::kMaxHeadWidth;
  if (width <= most)
    return success();
  return op->emitError("got heads of width ")
         << width << ", expected at most " << most
         << " for the attention kernels of --target=cuda; use more heads, which are narrower, or "
            "--target=cpu";
}

LogicalResult AttentionOp::verifyCuda() { return verifyHeadWidth(*this, getLayout().width); }
LogicalResult AttentionGradOp::verifyCuda() { return verifyHeadWidth(*this, getLayout().width); }
LogicalResult AttentionBiasGradOp::verifyCuda() {
  return verifyHeadWidth(*this, getLayout().width);
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// Pairs of a query and a key it sees, over all batches and heads; of the last rank where ranks
/// have different ones: it has the last positions, of which no other has more, or in zigzag order
/// as many as each other. Documents are not known.
template <typename Op> static int64_t countPairs(Op op) {
  const AttentionLayout sizes = op.getLayout();
  // How many keys the queries at positions below `end` see together, without a window.
  auto seenBelow = [&](int64_t end) {
    const int64_t inside = std::clamp<int64_t>(end, 0, sizes.keys);
    return inside * (inside + 1) / 2 + (std::max(end, inside) - inside) * sizes.keys;
  };
  auto seenFrom = [&](int64_t first) {
    return seenBelow(first + sizes.queries) - seenBelow(first);
  };
  const int64_t first = op.getAt() ? op.getAt()->back() : sizes.keys - sizes.queries;
  int64_t pairs = sizes.queries * sizes.keys;
  if (op.getCausal())
    pairs = seenFrom(first);
  if (op.getWindow())
    pairs -= seenFrom(first - static_cast<int64_t>(*op.getWindow()));
  return sizes.batch * sizes.heads * pairs;
}

// Two products over the width, as runtime/device/Work.h counts them for traces: the softmax is not
// counted.
Cost AttentionOp::getCost() { return costOf(*this, countPairs(*this) * 4 * getLayout().width); }

// Five products over the width, likewise.
Cost AttentionGradOp::getCost() {
  return costOf(*this, countPairs(*this) * 10 * getLayout().width);
}

// Two of these products.
Cost AttentionBiasGradOp::getCost() {
  return costOf(*this, countPairs(*this) * 4 * getLayout().width);
}

// Two products and a sum per element; sine and cosine are shared by all rows.
Cost RopeOp::getCost() { return costOf(*this, 3 * getX().getType().getNumElements()); }

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

Cotangents AttentionOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                        ArrayRef<bool> needed) {
  if (d[1])
    return emitOpError("has no derivative of 'log_sum_exp'; compute it with 'nn.einsum' where the "
                       "loss depends on it");
  SmallVector<Value> cotangents(getInputs().size());
  const size_t tensors = getTensors().size();
  if (!d[0])
    return cotangents;
  if (llvm::is_contained(needed.take_front(tensors), true)) {
    auto grad = AttentionGradOp::create(builder, getLoc(), getTensors().getTypes(), getOrderAttr(),
                                        getInputs(), getOut(), getLogSumExp(), d[0], getScaleAttr(),
                                        getCausalAttr(), getWindowAttr(), getSoftcapAttr(),
                                        getBiasAttr(), getDocumentsAttr(), getExchangeAttr(),
                                        getZigzagAttr(), getAtAttr(), getOverAttr());
    for (auto [cotangent, gradient, wanted] :
         llvm::zip(cotangents, grad->getResults(), needed.take_front(tensors)))
      if (wanted)
        cotangent = gradient;
  }
  if (getBias() && needed[tensors])
    cotangents[tensors] = AttentionBiasGradOp::create(
        builder, getLoc(), getBiasOf(*this).getType(), getOrderAttr(), getInputs(), getOut(),
        getLogSumExp(), d[0], getScaleAttr(), getCausalAttr(), getWindowAttr(), getSoftcapAttr(),
        getDocumentsAttr(), getExchangeAttr(), getAtAttr(), getOverAttr());
  return cotangents;
}

Cotangents RopeOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d, ArrayRef<bool> needed) {
  SmallVector<Value> cotangents(getNumOperands());
  if (d[0] && needed[0])
    cotangents[0] = RopeOp::create(
        builder, getLoc(), getX().getType(), d[0], getPositions(), getDimAttr(), getThetaAttr(),
        getInverse() ? UnitAttr() : builder.getUnitAttr(), getFactorAttr(), getRampAttr(),
        getFromAttr(), getToAttr(), getMagnitudeAttr());
  return cotangents;
}
