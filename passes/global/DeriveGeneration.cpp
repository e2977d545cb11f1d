//===- DeriveGeneration.cpp - steps that generate text --------------------===//
//
// A step computes the scores of every token of a sample. If, apart from causal attention, it acts
// on each position separately, the scores of a few positions follow from their tokens and from the
// keys and values of all earlier positions, which are kept from step to step. The steps added here
// are the evaluation on a part of one sample: a dimension of samples has size 1 in them, and a
// dimension of positions has their number. The sharding rule of an op states how it acts on a part
// of a dimension.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/fsdp/Generation.h"
#include "dialect/fsdp/Structure.h"
#include "dialect/fsdp/TokenSource.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_DERIVEGENERATIONPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// The index space of a factor of a dimension.
enum class Over { other, samples, positions };

struct Part {
  int64_t size;
  Over over;
};
/// The factors of a dimension, major to minor, and those of each dimension of a tensor.
using DimParts = SmallVector<Part, 2>;
using TensorParts = SmallVector<DimParts, 4>;

bool runsOver(const DimParts &dim) {
  return llvm::any_of(dim, [](const Part &part) { return part.over != Over::other; });
}
bool runsOver(const TensorParts &tensor) {
  return llvm::any_of(tensor, [](const DimParts &dim) { return runsOver(dim); });
}

/// The tensors that are kept from step to step.
struct Caches {
  SmallVector<CarriedOp> keys, values;
};

/// Builds the step of `kind` from the evaluation.
class PartOfStep {
public:
  PartOfStep(StepOp evaluate, InputOp tokens, Value logits, StepKind kind, int64_t count,
             Caches &caches)
      : evaluate(evaluate), tokens(tokens), logits(logits), kind(kind), count(count),
        caches(caches), builder(evaluate->getContext()) {}

  /// Null, with a diagnostic, if the step cannot be built.
  StepOp build();

private:
  RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
  int64_t sizeIn(const Part &part) const {
    return part.over == Over::samples ? 1 : part.over == Over::positions ? count : part.size;
  }
  RankedTensorType typeIn(RankedTensorType type, const TensorParts &parts) const;
  TensorParts partsOf(Value value);

  /// The index space of each factor of `rule`, from the parts of one of its tensors; false if they
  /// do not fit, or if two tensors disagree.
  bool assign(const nn::ShardingRule &rule, const nn::TensorFactors &tensor,
              const TensorParts &parts, SmallVectorImpl<Over> &over) const;
  TensorParts partsIn(const nn::ShardingRule &rule, const nn::TensorFactors &tensor,
                      ArrayRef<Over> over) const;
  Operation *cloneIn(Operation *op, const nn::ShardingRule &rule, ArrayRef<Over> over,
                     ValueRange operands);

  LogicalResult convert(Operation *op);
  LogicalResult convertCompute(Operation *op);
  LogicalResult convertAttention(nn::AttentionOp attention);
  LogicalResult convertRope(nn::RopeOp rope);
  LogicalResult convertPositions(nn::PositionsSinceOp op);
  Value cached(Value rows, SmallVectorImpl<CarriedOp> &caches, size_t index, StringRef name);
  Value rearranged(Value value, const Twine &notation, ArrayRef<int64_t> shape);

  /// The value as it is in the step.
  Value whole(Value value);
  /// The part of a value that does not depend on tokens; null, with a diagnostic, if there is none.
  Value partOf(Value value, const TensorParts &parts, Operation *user);

  LogicalResult refuse(Operation *op, const Twine &why) const {
    return op->emitOpError() << why << ", which --generate does not support; compile "
                             << "this model without --generate";
  }

  StepOp evaluate;
  InputOp tokens;
  Value logits;
  StepKind kind;
  int64_t count;
  Caches &caches;
  OpBuilder builder;
  StepOp step;
  Value ids, positions;
  DenseMap<Value, TensorParts> parts; ///< of values that depend on tokens
  IRMapping mapping;
  size_t attentions = 0;
};

} // namespace

RankedTensorType PartOfStep::typeIn(RankedTensorType type, const TensorParts &parts) const {
  SmallVector<int64_t> shape;
  for (const DimParts &dim : parts) {
    shape.push_back(1);
    for (const Part &part : dim)
      shape.back() *= sizeIn(part);
  }
  return type.clone(shape);
}

TensorParts PartOfStep::partsOf(Value value) {
  if (auto found = parts.find(value); found != parts.end())
    return found->second;
  TensorParts plain;
  for (int64_t size : typeOf(value).getShape())
    plain.push_back({{size, Over::other}});
  return plain;
}

bool PartOfStep::assign(const nn::ShardingRule &rule, const nn::TensorFactors &tensor,
                        const TensorParts &parts, SmallVectorImpl<Over> &over) const {
  for (auto [factors, dim] : llvm::zip(tensor, parts)) {
    if (!runsOver(dim))
      continue;
    const Part *part = dim.begin();
    for (int64_t factor : factors) {
      const int64_t size = rule.factors[factor].size;
      if (part != dim.end() && part->size == size) {
        if (part->over != Over::other) {
          if (over[factor] != Over::other && over[factor] != part->over)
            return false;
          over[factor] = part->over;
        }
        ++part;
        continue;
      }
      // A factor of several parts that run over nothing, or several factors of one part.
      int64_t product = 1;
      while (part != dim.end() && part->over == Over::other && product < size)
        product *= part++->size;
      if (product != size)
        return false;
    }
    if (part != dim.end())
      return false;
  }
  return true;
}

TensorParts PartOfStep::partsIn(const nn::ShardingRule &rule, const nn::TensorFactors &tensor,
                                ArrayRef<Over> over) const {
  TensorParts parts;
  for (const nn::DimFactors &factors : tensor) {
    DimParts &dim = parts.emplace_back();
    for (int64_t factor : factors)
      dim.push_back({rule.factors[factor].size, over[factor]});
  }
  return parts;
}

Operation *PartOfStep::cloneIn(Operation *op, const nn::ShardingRule &rule, ArrayRef<Over> over,
                               ValueRange operands) {
  Operation *clone = op->clone();
  clone->setOperands(operands);
  for (auto [result, tensor] : llvm::zip_equal(clone->getResults(), rule.results))
    if (typeOf(result).getRank() == static_cast<int64_t>(tensor.size()))
      result.setType(typeIn(typeOf(result), partsIn(rule, tensor, over)));
  SmallVector<int64_t> shares;
  for (auto [factor, runs] : llvm::zip_equal(rule.factors, over))
    shares.push_back(factor.size / std::max<int64_t>(sizeIn({factor.size, runs}), 1));
  cast<nn::ShardingRuleOpInterface>(clone).setLocalSizes(rule, shares);
  builder.insert(clone);
  return clone;
}

/// The operands but for the ids of documents: a text is one.
static OperandRange getNeeded(Operation *op) {
  auto attention = dyn_cast<nn::AttentionOp>(op);
  return attention ? attention.getInputs().drop_back(attention.getDocuments() ? 1 : 0)
                   : op->getOperands();
}

//===----------------------------------------------------------------------===//
// Values that do not depend on tokens
//===----------------------------------------------------------------------===//

Value PartOfStep::whole(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    whole(operand);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

Value PartOfStep::rearranged(Value value, const Twine &notation, ArrayRef<int64_t> shape) {
  return nn::RearrangeOp::create(builder, value.getLoc(), typeOf(value).clone(shape),
                                 builder.getStringAttr(notation), value, DictionaryAttr());
}

Value PartOfStep::partOf(Value value, const TensorParts &parts, Operation *user) {
  if (!runsOver(parts))
    return whole(value);
  Operation *op = value.getDefiningOp();
  RankedTensorType type = typeIn(typeOf(value), parts);
  DenseElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)) && constant.isSplat())
    return arith::ConstantOp::create(builder, value.getLoc(), constant.resizeSplat(type));
  if (auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(op); ruled && op->getNumResults() == 1) {
    nn::ShardingRule rule = ruled.getShardingRule();
    SmallVector<Over> over(rule.factors.size(), Over::other);
    bool fits = assign(rule, rule.results.front(), parts, over);
    for (auto [factor, runs] : llvm::zip_equal(rule.factors, over))
      fits &= runs == Over::other || (factor.kind == nn::FactorKind::parallel && !factor.indexed);
    if (fits) {
      SmallVector<Value> operands;
      for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), rule.operands)) {
        operands.push_back(partOf(operand, partsIn(rule, tensor, over), user));
        if (!operands.back())
          return Value();
      }
      return cloneIn(op, rule, over, operands)->getResult(0);
    }
  }
  // Rows of a table, selected by the positions.
  const bool hasRows = parts.front().size() == 1 && parts.front().front().over == Over::positions &&
                       !runsOver(TensorParts(ArrayRef(parts).drop_front())) &&
                       type.getRank() >= 2 && isa<FloatType>(type.getElementType());
  if (!hasRows) {
    (void)refuse(user, "takes a value that differs from sample to sample or from position to "
                       "position and is not a table of positions");
    return Value();
  }
  Value table = whole(value);
  ArrayRef<int64_t> shape = typeOf(value).getShape();
  const int64_t width = nn::elementsOf(shape.drop_front());
  std::string names;
  for (int64_t dim = 1; dim < type.getRank(); ++dim)
    names += " d" + std::to_string(dim);
  if (type.getRank() > 2)
    table = rearranged(table, "d0" + names + " -> d0 (" + names.substr(1) + ")", {shape[0], width});
  Value rows = nn::EmbeddingOp::create(builder, value.getLoc(),
                                       typeOf(value).clone({1, count, width}), table, positions,
                                       /*partial=*/false);
  if (type.getRank() == 2)
    return rearranged(rows, "1 d0 d1 -> d0 d1", type.getShape());
  // The size of the last dimension alone does not determine its factors.
  NamedAttrList sizes;
  for (int64_t dim = 1; dim < type.getRank(); ++dim)
    sizes.append("d" + std::to_string(dim), builder.getI64IntegerAttr(shape[dim]));
  return nn::RearrangeOp::create(
      builder, value.getLoc(), type,
      builder.getStringAttr("1 d0 (" + names.substr(1) + ") -> d0" + names), rows,
      sizes.getDictionary(builder.getContext()));
}

//===----------------------------------------------------------------------===//
// Values that depend on tokens
//===----------------------------------------------------------------------===//

LogicalResult PartOfStep::convertCompute(Operation *op) {
  auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(op);
  if (!ruled || op->getNumRegions() != 0)
    return refuse(op, "computes with tokens and has no sharding rule");
  nn::ShardingRule rule = ruled.getShardingRule();
  SmallVector<Over> over(rule.factors.size(), Over::other);
  for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), rule.operands))
    if (parts.contains(operand) && !assign(rule, tensor, parts[operand], over))
      return refuse(op, "mixes samples or positions with other dimensions");
  for (auto [factor, runs] : llvm::zip_equal(rule.factors, over))
    if (runs != Over::other && (factor.kind != nn::FactorKind::parallel || factor.indexed))
      return refuse(op, runs == Over::samples ? "combines samples"
                                              : "combines the tokens of different positions");
  SmallVector<Value> operands;
  for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), rule.operands)) {
    operands.push_back(parts.contains(operand) ? mapping.lookup(operand)
                                               : partOf(operand, partsIn(rule, tensor, over), op));
    if (!operands.back())
      return failure();
  }
  Operation *clone = cloneIn(op, rule, over, operands);
  for (auto [before, after, tensor] :
       llvm::zip_equal(op->getResults(), clone->getResults(), rule.results)) {
    parts[before] = partsIn(rule, tensor, over);
    mapping.map(before, after);
  }
  return success();
}

LogicalResult PartOfStep::convertRope(nn::RopeOp rope) {
  TensorParts &x = parts[rope.getX()];
  const auto dim = static_cast<size_t>(rope.getDim());
  const bool turnsPositions = x[dim].size() == 1 && x[dim].front().over == Over::positions;
  if (!turnsPositions)
    return convertCompute(rope);
  // Positions in documents are positions in the text.
  Value given = rope.getPositions();
  if ((given && mapping.lookupOrNull(given) != positions) || x.front().size() != 1 ||
      x.front().front().over != Over::samples)
    return refuse(rope, "turns positions of something other than samples");
  Value value = mapping.lookup(rope.getX());
  auto turned = nn::RopeOp::create(builder, rope.getLoc(), value.getType(), value, positions,
                                   rope.getDimAttr(), rope.getThetaAttr(), rope.getInverseAttr(),
                                   rope.getFactorAttr(), rope.getRampAttr(), rope.getFromAttr(),
                                   rope.getToAttr(), rope.getMagnitudeAttr());
  turned->setDiscardableAttrs(rope->getDiscardableAttrDictionary());
  parts[rope.getY()] = TensorParts(x);
  mapping.map(rope.getY(), turned.getY());
  return success();
}

/// A text is one document.
LogicalResult PartOfStep::convertPositions(nn::PositionsSinceOp op) {
  if (!op.getDocuments() || op.getTokens() != tokens.getResult())
    return convertCompute(op);
  parts[op.getResult()] = TensorParts(parts[op.getTokens()]);
  mapping.map(op.getResult(), positions);
  return success();
}

/// The rows of all positions, those of this step among them.
Value PartOfStep::cached(Value rows, SmallVectorImpl<CarriedOp> &kept, size_t index,
                         StringRef name) {
  RankedTensorType type = typeOf(rows);
  SmallVector<int64_t> shape(type.getShape());
  shape[2] = typeOf(tokens).getDimSize(1);
  if (index == kept.size()) {
    OpBuilder module(evaluate);
    auto carried = CarriedOp::create(
        module, rows.getLoc(), module.getStringAttr(name + "." + Twine(index)),
        TypeAttr::get(type.clone(shape)), FlatSymbolRefAttr(),
        // Positions without a token are read with the others, and not attended to.
        /*zeroed=*/module.getUnitAttr());
    SymbolTable(evaluate->getParentOfType<ModuleOp>()).insert(carried);
    kept.push_back(carried);
  }
  CarriedOp carried = kept[index];
  Value before = CarryLoadOp::create(builder, rows.getLoc(), type.clone(shape),
                                     carried.getSymNameAttr().getValue());
  Value after =
      nn::WriteRowsOp::create(builder, rows.getLoc(), before.getType(), before, rows, positions, 2);
  CarryStoreOp::create(builder, rows.getLoc(), after, carried.getSymNameAttr().getValue());
  return after;
}

LogicalResult PartOfStep::convertAttention(nn::AttentionOp attention) {
  const StringRef order = attention.getOrder();
  const int64_t packed = nn::attentionDim(order, 'n');
  const std::string outOrder = nn::attentionOutOrder(order);
  if (!attention.getCausal())
    return refuse(attention, "lets tokens attend to later ones");
  if (attention.getBias())
    return refuse(attention, "adds a bias to its scores");
  if (!attention.getLogSumExp().use_empty())
    return refuse(attention, "has a second result, which is used");
  SmallVector<Value> inputs;
  for (Value input : attention.getTensors()) {
    if (!parts.contains(input))
      return refuse(attention, "attends to something other than the tokens of the sample");
    for (auto [dim, factors] : llvm::enumerate(parts[input])) {
      const char letter = order[2 * dim];
      const Over expected = letter == 'b'   ? Over::samples
                            : letter == 't' ? Over::positions
                                            : Over::other;
      if (expected == Over::other ? runsOver(factors)
                                  : factors.size() != 1 || factors.front().over != expected)
        return refuse(attention, "attends to something other than the tokens of the sample");
    }
    inputs.push_back(mapping.lookup(input));
  }
  const Location loc = attention.getLoc();
  StructureScope scope(builder, getStructure(attention));
  if (packed >= 0) {
    Value all = inputs.front();
    SmallVector<int64_t> shape(typeOf(all).getShape()), cut(shape);
    cut[packed] = 1;
    shape.erase(shape.begin() + packed);
    std::string from = order.str();
    from[2 * packed] = '1';
    inputs.clear();
    for (int64_t part = 0; part < 3; ++part) {
      Value piece = nn::SliceOp::create(builder, loc, typeOf(all).clone(cut), all, packed, part);
      inputs.push_back(rearranged(piece, from + " -> " + outOrder, shape));
    }
  }
  Value kept[2];
  for (int i : {0, 1}) {
    Value rows = inputs[1 + i];
    SmallVector<int64_t> shape;
    for (char letter : {'b', 'h', 't', 'd'})
      shape.push_back(typeOf(rows).getDimSize(nn::attentionDim(outOrder, letter)));
    if (outOrder != "b h t d")
      rows = rearranged(rows, outOrder + " -> b h t d", shape);
    kept[i] = cached(rows, i ? caches.values : caches.keys, attentions, i ? "values" : "keys");
  }
  ++attentions;
  Value out = nn::CachedAttentionOp::create(builder, loc, inputs[0].getType(),
                                            builder.getStringAttr(outOrder), inputs[0], kept[0],
                                            kept[1], positions, attention.getScaleAttr(),
                                            attention.getWindowAttr(), attention.getSoftcapAttr());
  TensorParts result;
  for (size_t dim = 0; dim < outOrder.size(); dim += 2)
    result.push_back(parts[attention.getInputs().front()][nn::attentionDim(order, outOrder[dim])]);
  parts[attention.getOut()] = result;
  mapping.map(attention.getOut(), out);
  return success();
}

LogicalResult PartOfStep::convert(Operation *op) {
  if (op == tokens) {
    mapping.map(tokens.getResult(), ids);
    ArrayRef<int64_t> shape = typeOf(tokens).getShape();
    parts[tokens.getResult()] = {{{shape[0], Over::samples}}, {{shape[1], Over::positions}}};
    return success();
  }
  if (llvm::none_of(op->getOperands(), [&](Value operand) { return parts.contains(operand); })) {
    if (isa<InputOp>(op))
      return refuse(op, "is an input beside the tokens");
    return success(); // whole, or part of it, where it is used
  }
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](nn::AttentionOp attention) { return convertAttention(attention); })
      .Case([&](nn::RopeOp rope) { return convertRope(rope); })
      .Case([&](nn::PositionsSinceOp op) { return convertPositions(op); })
      .Default([&](Operation *op) { return convertCompute(op); });
}

StepOp PartOfStep::build() {
  builder.setInsertionPoint(evaluate->getBlock(), std::next(Block::iterator(evaluate)));
  step = StepOp::create(builder, evaluate.getLoc(), stringifyStepKind(kind), kind, OptimizerAttr());
  builder.createBlock(&step.getBody());
  auto input = [&](StringRef name) {
    auto type = RankedTensorType::get({1, count}, builder.getI32Type());
    auto op = InputOp::create(
        builder, tokens.getLoc(), type,
        builder.getStringAttr(generatedInputName(stringifyStepKind(kind), name)),
        builder.getI64IntegerAttr(0), IntegerAttr(), ArrayAttr(), IntegerAttr(), IntegerAttr());
    op->setDiscardableAttr(generatedAttrName, builder.getUnitAttr());
    return op.getResult();
  };
  ids = input(generatedTokens);
  positions = input("positions");

  llvm::SetVector<Operation *> needed;
  needed.insert(logits.getDefiningOp());
  for (size_t i = 0; i < needed.size(); ++i)
    for (Value operand : getNeeded(needed[i]))
      needed.insert(operand.getDefiningOp());
  for (Operation &op : evaluate.getBody().front())
    if (needed.contains(&op) && failed(convert(&op)))
      return StepOp();
  if (kind == StepKind::decode) {
    Value scores = mapping.lookup(logits);
    if (!typeOf(scores).getElementType().isF32())
      scores = arith::ExtFOp::create(builder, logits.getLoc(),
                                     typeOf(scores).clone(builder.getF32Type()), scores);
    CarryStoreOp::create(builder, logits.getLoc(), scores, generatedLogitsName);
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(step.getBody().front())))
    if (op.use_empty() && !isa<CarryStoreOp, InputOp>(op))
      op.erase();
  return step;
}

namespace {
struct DeriveGeneration : fsdp::impl::DeriveGenerationPassBase<DeriveGeneration> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<StepOp> steps = llvm::filter_to_vector(
        module.getOps<StepOp>(), [](StepOp step) { return step.getKind() == StepKind::evaluate; });
    if (steps.size() != 1) {
      module.emitError() << "has " << steps.size()
                         << " steps that evaluate, expected one, from which --generate is derived";
      return signalPassFailure();
    }
    StepOp evaluate = steps.front();
    SmallVector<InputOp> tokens =
        llvm::filter_to_vector(evaluate.getBody().getOps<InputOp>(),
                               [](InputOp input) { return input->hasAttr(tokensAttrName); });
    if (tokens.size() != 1)
      return refuse(evaluate, "has " + Twine(tokens.size()) +
                                  " inputs of tokens, expected one for --generate");
    Value logits = findLogits(evaluate, tokens.front());
    if (!logits)
      return refuse(evaluate, "computes no single loss from the scores of a vocabulary for each "
                              "token, which --generate needs");
    auto type = cast<RankedTensorType>(logits.getType());
    const int64_t context = cast<RankedTensorType>(tokens.front().getType()).getDimSize(1);
    SymbolTable symbols(module);
    for (StringRef name :
         {StringRef(stringifyStepKind(StepKind::decode)),
          StringRef(stringifyStepKind(StepKind::prefill)), StringRef(generatedLogitsName)})
      if (Operation *taken = symbols.lookup(name))
        return refuse(taken, "has the name of something that --generate adds; rename it");
    OpBuilder builder(evaluate);
    CarriedOp::create(
        builder, logits.getLoc(), builder.getStringAttr(generatedLogitsName),
        TypeAttr::get(RankedTensorType::get({1, 1, type.getShape().back()}, builder.getF32Type())),
        FlatSymbolRefAttr(), /*zeroed=*/UnitAttr());
    Caches caches;
    // As many positions at a time as divide the context and are at most `chunk`.
    int64_t count = std::min<int64_t>(chunk.value, context);
    while (context % count != 0)
      --count;
    if (!PartOfStep(evaluate, tokens.front(), logits, StepKind::decode, 1, caches).build())
      return signalPassFailure();
    if (!caches.keys.empty() &&
        !PartOfStep(evaluate, tokens.front(), logits, StepKind::prefill, count, caches).build())
      return signalPassFailure();
  }

private:
  void refuse(Operation *op, const Twine &why) {
    op->emitOpError() << why;
    signalPassFailure();
  }

  /// The scores from which the only loss over classes is computed; null if there is no such loss or
  /// more than one, or if they are not (samples, positions, vocabulary).
  static Value findLogits(StepOp step, InputOp tokens) {
    llvm::SetVector<Value> found;
    step.walk([&](nn::KernelOpInterface op) {
      for (unsigned i = 0; i < op->getNumOperands(); ++i)
        if (op.readsLogits(i))
          found.insert(op->getOperand(i));
    });
    ArrayRef<int64_t> shape = cast<RankedTensorType>(tokens.getType()).getShape();
    if (found.size() != 1)
      return Value();
    auto type = cast<RankedTensorType>(found.front().getType());
    if (type.getRank() != 3 || type.getShape().drop_back() != shape)
      return Value();
    return found.front();
  }
};
} // namespace
