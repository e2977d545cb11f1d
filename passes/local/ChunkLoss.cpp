//===- ChunkLoss.cpp - logits and their cotangent, a part of the rows at a time -------------===//
//
// The logits of a model are by far its largest activation, and no op needs all of their rows at
// once: the loss of a row, the cotangent of its logits and its contribution to the gradients depend
// on that row alone. So the ops between the values that have rows only and those that have classes
// only are computed once per chunk of rows. The sharding rules identify these ops: those with a
// tensor that has both the factor of the rows and the factor of the classes.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/Structure.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_CHUNKLOSSPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// The rule of an op that may be computed for some of the rows; none for others. An all-reduce is
/// elementwise over ranks, so each chunk may have its own: every rank has the same chunks. A mask
/// is elementwise too.
static std::optional<nn::ShardingRule> ruleOf(Operation *op) {
  if (auto ruled = dyn_cast_or_null<nn::ShardingRuleOpInterface>(op))
    return ruled.getShardingRule();
  if (isa_and_nonnull<AllReduceOp, MaskPaddingOp>(op))
    return nn::ShardingRule::elementwise(op);
  return std::nullopt;
}

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The dimension of a tensor that runs over `factor` alone; -1 if none runs over it; nothing if a
/// dimension runs over it and other factors.
static std::optional<int64_t> dimOf(const nn::TensorFactors &tensor, int64_t factor) {
  int64_t found = -1;
  for (auto [dim, factors] : llvm::enumerate(tensor)) {
    if (!llvm::is_contained(factors, factor))
      continue;
    if (factors.size() != 1 || found != -1)
      return std::nullopt;
    found = dim;
  }
  return found;
}

/// The factor of dimension `dim`, if it has exactly one.
static std::optional<int64_t> factorOf(const nn::TensorFactors &tensor, int64_t dim) {
  if (tensor[dim].size() != 1)
    return std::nullopt;
  return tensor[dim].front();
}

/// True for ops of the `fsdp` dialect whose result depends on the position along `dim`.
static bool dependsOnPosition(Operation *op, int64_t dim) {
  if (auto mask = dyn_cast<MaskSamplesOp>(op))
    return static_cast<int64_t>(mask.getDim()) == dim;
  if (auto mask = dyn_cast<MaskPaddingOp>(op))
    return static_cast<int64_t>(mask.getDim()) == dim;
  return isa<DropoutOp>(op);
}

static RankedTensorType resized(RankedTensorType type, int64_t dim, int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return type.clone(shape);
}

/// The elements of `whole` from `begin` on along `dim`, `size` of them.
static Value makeSlice(OpBuilder &builder, Location loc, Value whole, int64_t dim, int64_t begin,
                       int64_t size) {
  RankedTensorType type = resized(typeOf(whole), dim, size);
  if (auto constant = whole.getDefiningOp<arith::ConstantOp>())
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return arith::ConstantOp::create(builder, loc, splat.resizeSplat(type));
  return nn::SliceOp::create(builder, loc, type, whole, dim, begin);
}

namespace {

/// The ops that are computed chunk by chunk, and where their tensors have the rows.
class Region {
public:
  /// `logits` have `rows` as one of their dimensions and classes as the last one. The reason for
  /// which their rows cannot be computed in chunks, or an empty one.
  std::string grow(Value logits, int64_t rows, bool even);
  void emit(Value logits, int64_t rows, int64_t chunks);
  const SetVector<Operation *> &getOps() const { return ops; }

private:
  struct Plan {
    nn::ShardingRule rule;
    int64_t factor;                         ///< of the rows
    SmallVector<int64_t> operands, results; ///< the dimension of the rows, -1 for none
  };

  std::string add(Operation *op, int64_t rowFactor, std::optional<int64_t> classFactor);
  std::string addMember(Value value, int64_t rows, int64_t classes);
  std::string closePaths();
  bool takesAnySize(Operation *op, const Plan &plan) const;
  SmallVector<Operation *> inBlockOrder() const;

  SetVector<Operation *> ops;
  DenseMap<Operation *, Plan> plans;
  DenseSet<Value> members; ///< have both rows and classes
  bool even = true;
};

/// Adds `op`, whose rows are `rowFactor`; if it has classes too, adds every op that has both.
std::string Region::add(Operation *op, int64_t rowFactor, std::optional<int64_t> classFactor) {
  if (!ops.insert(op))
    return plans[op].factor == rowFactor
               ? ""
               : "'" + op->getName().getStringRef().str() + "' has the rows twice";
  Plan plan{*ruleOf(op), rowFactor, {}, {}};
  const std::string name = "'" + op->getName().getStringRef().str() + "'";
  nn::FactorKind kind = plan.rule.factors[rowFactor].kind;
  if ((kind != nn::FactorKind::parallel && kind != nn::FactorKind::sumReduction) ||
      plan.rule.factors[rowFactor].indexed)
    return name + " needs all rows at once";
  SmallVector<std::tuple<Value, int64_t, int64_t>> both;
  auto visit = [&](Value value, const nn::TensorFactors &tensor, SmallVectorImpl<int64_t> &dims) {
    std::optional<int64_t> row = dimOf(tensor, rowFactor);
    if (!row)
      return false;
    dims.push_back(*row);
    std::optional<int64_t> classes = classFactor ? dimOf(tensor, *classFactor) : -1;
    if (!classes)
      return false;
    if (*row >= 0 && *classes >= 0 && !value.getDefiningOp<arith::ConstantOp>())
      both.push_back({value, *row, *classes});
    return true;
  };
  for (auto [value, tensor] : llvm::zip_equal(op->getOperands(), plan.rule.operands))
    if (!visit(value, tensor, plan.operands))
      return name + " merges the rows with another dimension";
  for (auto [value, tensor] : llvm::zip_equal(op->getResults(), plan.rule.results)) {
    if (!visit(value, tensor, plan.results))
      return name + " merges the rows with another dimension";
    if (plan.results.back() < 0 && !isa<FloatType>(typeOf(value).getElementType()))
      return name + " reduces rows to integers";
    if (plan.results.back() >= 0 && dependsOnPosition(op, plan.results.back()))
      return name + " depends on the position of a row";
  }
  if (!even && !takesAnySize(op, plan))
    return name + " needs chunks of one size";
  plans.insert({op, std::move(plan)});
  for (auto [value, row, classes] : both)
    if (std::string reason = addMember(value, row, classes); !reason.empty())
      return reason;
  return "";
}

/// True unless the op has sizes in its attributes that state a number of equal parts.
bool Region::takesAnySize(Operation *op, const Plan &plan) const {
  if (!isa<nn::ShardingRuleOpInterface>(op))
    return true;
  Operation *copy = op->clone();
  SmallVector<int64_t> parts(plan.rule.factors.size(), 1);
  parts[plan.factor] = 2;
  cast<nn::ShardingRuleOpInterface>(copy).setLocalSizes(plan.rule, parts);
  bool same = copy->getAttrDictionary() == op->getAttrDictionary();
  copy->destroy();
  return same;
}

/// Adds the op that computes `value` and those that use it: no other op can use the value of a
/// chunk.
std::string Region::addMember(Value value, int64_t rows, int64_t classes) {
  // Values that are whole in any case, such as inputs, are sliced.
  if (!members.empty() && !ruleOf(value.getDefiningOp()))
    return "";
  if (!members.insert(value).second)
    return "";
  auto follow = [&](Operation *op, bool result, unsigned index) -> std::string {
    std::optional<nn::ShardingRule> rule = ruleOf(op);
    if (!rule)
      return op ? "'" + op->getName().getStringRef().str() + "' needs all of the logits"
                : "the logits are an argument";
    const nn::TensorFactors &tensor = result ? rule->results[index] : rule->operands[index];
    std::optional<int64_t> row = factorOf(tensor, rows), column = factorOf(tensor, classes);
    if (!row || !column)
      return "'" + op->getName().getStringRef().str() + "' merges the rows with another dimension";
    return add(op, *row, *column);
  };
  auto result = dyn_cast<OpResult>(value);
  if (std::string reason =
          follow(value.getDefiningOp(), true, result ? result.getResultNumber() : 0);
      !reason.empty())
    return reason;
  for (OpOperand &use : value.getUses())
    if (std::string reason = follow(use.getOwner(), false, use.getOperandNumber()); !reason.empty())
      return reason;
  return "";
}

SmallVector<Operation *> Region::inBlockOrder() const {
  SmallVector<Operation *> ordered(ops.begin(), ops.end());
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ordered;
}

/// Adds the ops outside that both use results of the region and compute its operands: they must
/// work row by row, or the region cannot be computed in chunks.
std::string Region::closePaths() {
  for (bool changed = true; changed;) {
    changed = false;
    SmallVector<Operation *> ordered = inBlockOrder();
    DenseSet<Operation *> feeding;
    for (Operation *op = ordered.back(); op != ordered.front(); op = op->getPrevNode()) {
      if (!ops.contains(op) && !feeding.contains(op))
        continue;
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp(); producer && !ops.contains(producer))
          feeding.insert(producer);
    }
    for (Operation *op = ordered.front(); op != ordered.back() && !changed;
         op = op->getNextNode()) {
      if (ops.contains(op) || !feeding.contains(op))
        continue;
      for (OpOperand &operand : op->getOpOperands()) {
        auto value = dyn_cast<OpResult>(operand.get());
        if (!value || !ops.contains(value.getOwner()))
          continue;
        int64_t rows = plans[value.getOwner()].results[value.getResultNumber()];
        std::optional<nn::ShardingRule> rule = ruleOf(op);
        const std::string name = "'" + op->getName().getStringRef().str() + "'";
        if (rows < 0 || !rule)
          return name + " makes the gradient of a row depend on all rows";
        std::optional<int64_t> factor = factorOf(rule->operands[operand.getOperandNumber()], rows);
        if (!factor)
          return name + " merges the rows with another dimension";
        if (std::string reason = add(op, *factor, std::nullopt); !reason.empty())
          return reason;
        changed = true;
        break;
      }
    }
  }
  // A sum over rows is complete after the last chunk.
  for (Operation *op : ops)
    for (auto [result, rows] : llvm::zip_equal(op->getResults(), plans[op].results))
      for (Operation *user : result.getUsers())
        if (rows < 0 && ops.contains(user))
          return "'" + user->getName().getStringRef().str() +
                 "' makes the gradient of a row depend on all rows";
  return "";
}

std::string Region::grow(Value logits, int64_t rows, bool evenChunks) {
  even = evenChunks;
  if (std::string reason = addMember(logits, rows, typeOf(logits).getRank() - 1); !reason.empty())
    return reason;
  return closePaths();
}

/// Replaces the ops of the region by those of each chunk, one chunk after the other.
void Region::emit(Value logits, int64_t rows, int64_t chunks) {
  int64_t size = typeOf(logits).getDimSize(rows);
  SmallVector<Operation *> ordered = inBlockOrder();
  Operation *last = ordered.back();
  // Users of the region's results that are between its ops are moved after all of them.
  SmallVector<Operation *> behind;
  DenseSet<Operation *> dependent(ordered.begin(), ordered.end());
  for (Operation *op = ordered.front(); op != last; op = op->getNextNode())
    if (!ops.contains(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
          return dependent.contains(operand.getDefiningOp());
        })) {
      dependent.insert(op);
      behind.push_back(op);
    }

  OpBuilder builder(last);
  DenseMap<Value, SmallVector<Value>> parts; ///< of results that have rows
  DenseMap<Value, Value> sums;               ///< of ops that have none
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    // Sizes differ by one at most. (Without overflow: chunks <= size.)
    int64_t begin = size / chunks * chunk + std::min(chunk, size % chunks);
    int64_t here = size / chunks + (chunk < size % chunks);
    DenseMap<std::pair<Value, int64_t>, Value> slices;
    for (Operation *op : ordered) {
      const Plan &plan = plans[op];
      StructureScope scope(builder, getStructure(op));
      SmallVector<Value> operands;
      for (auto [operand, dim] : llvm::zip_equal(op->getOperands(), plan.operands)) {
        if (dim < 0) {
          operands.push_back(operand);
        } else if (auto part = parts.find(operand); part != parts.end()) {
          operands.push_back(part->second.back());
        } else {
          Value &slice = slices[{operand, dim}];
          if (!slice) {
            slice = makeSlice(builder, op->getLoc(), operand, dim, begin, here);
          }
          operands.push_back(slice);
        }
      }
      Operation *part = op->clone();
      part->setOperands(operands);
      SmallVector<int64_t> divisors(plan.rule.factors.size(), 1);
      divisors[plan.factor] = chunks; // read only where chunks are equal
      for (auto [result, dim] : llvm::zip_equal(part->getResults(), plan.results))
        if (dim >= 0)
          result.setType(resized(typeOf(result), dim, here));
      if (auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(part))
        ruled.setLocalSizes(plan.rule, divisors);
      builder.insert(part);
      for (auto [whole, result, dim] :
           llvm::zip_equal(op->getResults(), part->getResults(), plan.results)) {
        if (dim >= 0) {
          parts[whole].push_back(result);
        } else {
          Value &sum = sums[whole];
          sum = sum ? Value(arith::AddFOp::create(builder, op->getLoc(), sum, result))
                    : Value(result);
        }
      }
    }
  }
  for (Operation *op : ordered) {
    StructureScope scope(builder, getStructure(op));
    for (auto [result, dim] : llvm::zip_equal(op->getResults(), plans[op].results)) {
      bool leaves =
          llvm::any_of(result.getUsers(), [&](Operation *user) { return !ops.contains(user); });
      if (!leaves)
        continue;
      result.replaceUsesWithIf(
          dim < 0 ? sums[result]
                  : Value(nn::ConcatOp::create(builder, op->getLoc(), result.getType(),
                                               parts[result], dim)),
          [&](OpOperand &use) { return !ops.contains(use.getOwner()); });
    }
  }
  for (Operation *op : behind)
    op->moveBefore(last);
  for (Operation *op : llvm::reverse(ordered))
    op->erase();
}

/// The first value in `block` whose rows are not in chunks yet, from which a loss is computed.
Value findLogits(Block &block, const DenseSet<Operation *> &done) {
  for (Operation &op : block)
    if (auto kernel = dyn_cast<nn::KernelOpInterface>(op); kernel && !done.contains(&op))
      for (OpOperand &operand : op.getOpOperands())
        if (kernel.readsLogits(operand.getOperandNumber()))
          return operand.get();
  return Value();
}

/// The sizes of the rows of `logits` in the whole batch, from the input that the labels come from;
/// nothing if they come from none.
std::optional<SmallVector<int64_t>> findGlobalRows(Value logits) {
  for (OpOperand &use : logits.getUses()) {
    auto kernel = dyn_cast<nn::KernelOpInterface>(use.getOwner());
    if (!kernel || !kernel.readsLogits(use.getOperandNumber()))
      continue;
    for (Value label : use.getOwner()->getOperands()) {
      Operation *op = label == logits ? nullptr : label.getDefiningOp();
      while (op && !isa<InputOp>(op))
        op = op->getNumOperands() == 0 ? nullptr : op->getOperand(0).getDefiningOp();
      auto input = dyn_cast_or_null<InputOp>(op);
      if (!input || input.getType().getRank() != typeOf(logits).getRank() - 1)
        continue;
      SmallVector<int64_t> rows(input.getType().getShape());
      int64_t &samples = rows[input.getSampleDim()];
      samples = input.getGlobalBatch().value_or(samples);
      return rows;
    }
  }
  return std::nullopt;
}

std::string spellRows(ArrayRef<int64_t> rows) {
  std::string text;
  for (int64_t size : rows)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

struct ChunkLossPass : fsdp::impl::ChunkLossPassBase<ChunkLossPass> {
  using ChunkLossPassBase::ChunkLossPassBase;

  /// Computes the users of `logits` in chunks of the first dimension that admits it, preferably one
  /// that the number of chunks divides.
  LogicalResult chunk(Value logits) {
    RankedTensorType type = typeOf(logits);
    std::string reasons;
    for (bool even : {true, false})
      for (int64_t rows = 0; rows + 1 < type.getRank(); ++rows) {
        int64_t size = type.getDimSize(rows);
        if (size < chunks.value || (size % chunks.value == 0) != even)
          continue;
        Region region;
        std::string reason = region.grow(logits, rows, even);
        if (reason.empty()) {
          region.emit(logits, rows, chunks.value);
          return success();
        }
        reasons += "; dimension " + std::to_string(rows) + ": " + reason;
      }
    ArrayRef<int64_t> local = type.getShape().drop_back();
    const auto global = findGlobalRows(logits);
    InFlightDiagnostic diag = emitError(logits.getLoc())
                              << "the loss of " << spellRows(global ? ArrayRef(*global) : local)
                              << " rows of logits cannot be computed in " << chunks.value
                              << " chunks";
    if (global && ArrayRef(*global) != local)
      diag << ": a rank has " << spellRows(local) << " of them at once";
    return diag << ", expected a dimension of at least that size whose rows are independent"
                << reasons << "; leave out --loss-chunks or give a smaller number";
  }

  void runOnOperation() override {
    if (chunks.value == 1)
      return;
    bool any = false;
    auto walk = getOperation().walk([&](SegmentOp segment) {
      Block &block = segment.getBody().front();
      DenseSet<Operation *> before;
      while (Value logits = findLogits(block, before)) {
        any = true;
        DenseSet<Operation *> old;
        for (Operation &op : block)
          old.insert(&op);
        if (failed(chunk(logits)))
          return WalkResult::interrupt();
        for (Operation &op : block)
          if (!old.contains(&op))
            before.insert(&op);
      }
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    if (!any) {
      getOperation().emitError()
          << "--loss-chunks=" << chunks.value
          << " has no effect: no op computes a loss from logits; leave it out";
      signalPassFailure();
    }
  }
};

} // namespace
