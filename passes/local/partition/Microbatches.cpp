//===- Microbatches.cpp - a step in parts that follow one another ---------===//

#include "passes/local/partition/Microbatches.h"

#include "dialect/fsdp/ReduceInPlace.h"
#include "dialect/fsdp/Structure.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "passes/LaunchNames.h"
#include "passes/sharding/MeshAxes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::fsdp;

std::string mlir::fsdp::getMicrobatchSegment(StringRef step, StringRef part) {
  return (step + "." + part).str();
}

namespace {

/// Where an op is computed.
enum class Part {
  free,       ///< the same in every microbatch: computed in each segment that uses it
  microbatch, ///< depends on samples
  sum,        ///< an all_reduce over microbatches
  last,       ///< reduces gradients, once they are sums over all microbatches
  update      ///< once, after the last microbatch
};

/// Which of the microbatches a segment computes.
enum class Place { first, middle, last };

class MicrobatchSplitter {
public:
  MicrobatchSplitter(SegmentOp whole, int64_t microbatches, SymbolTable &symbols)
      : whole(whole), microbatches(microbatches), symbols(symbols), builder(whole.getContext()) {}

  LogicalResult run(ArrayAttr next);

private:
  void joinSums();
  LogicalResult classify(Operation *op);
  CarriedOp declare(Value value, FlatSymbolRefAttr storage);
  void declareAll();
  SegmentOp create(StringRef part, ArrayRef<StringRef> next);
  void buildMicrobatch(SegmentOp segment, Place place);
  void buildUpdate(SegmentOp segment);
  void clone(Operation *op, IRMapping &mapping);
  Value add(AllReduceOp sum, Value term);
  bool isUsedBy(Value value, Part part) const {
    return llvm::any_of(value.getUsers(),
                        [&](Operation *user) { return parts.lookup(user) == part; });
  }

  SegmentOp whole;
  int64_t microbatches;
  SymbolTable &symbols;
  OpBuilder builder;
  DenseMap<Operation *, Part> parts;
  /// The tensor in which a sum, or a value that `last` passes to `update`, is carried.
  llvm::MapVector<Value, CarriedOp> carried;
  /// Sums that continue the accumulation of an earlier sum.
  DenseMap<Operation *, AllReduceOp> continues;
  bool readsMicrobatch = false; ///< an op reads the index of the microbatch from the step state
};

} // namespace

static bool isSumOverMicrobatches(Operation *op) {
  auto reduce = dyn_cast<AllReduceOp>(op);
  SmallVector<StringAttr> axes;
  if (reduce)
    axes = cast<CollectiveOpInterface>(op).getAxes();
  return axes.size() == 1 && axes.front() == kMicrobatchAxis;
}

/// True where `op` does more than to compute its results.
static bool hasConsequences(Operation *op) {
  SmallVector<MemoryEffects::EffectInstance> effects;
  if (auto interface = dyn_cast<MemoryEffectOpInterface>(op))
    interface.getEffects(effects);
  return llvm::any_of(effects, [](const MemoryEffects::EffectInstance &effect) {
    return isa<MemoryEffects::Write>(effect.getEffect());
  });
}

/// True where `op` adds up the gradients of a weight that several stages of a pipeline use.
static bool joinsStages(Operation *op) {
  auto add = dyn_cast<arith::AddFOp>(op);
  return add && getStructure(add.getLhs().getDefiningOp()).stage !=
                    getStructure(add.getRhs().getDefiningOp()).stage;
}

/// The sum over microbatches from which `value` is computed by ops with one operand and one use;
/// these are appended to `chain`, the last one first. Null if there is none.
static AllReduceOp findSum(Value value, SmallVectorImpl<Operation *> &chain) {
  for (Operation *op = value.getDefiningOp(); op && op->hasOneUse();
       op = op->getOperand(0).getDefiningOp()) {
    if (isSumOverMicrobatches(op))
      return cast<AllReduceOp>(op);
    if (op->getNumOperands() != 1 || !op->hasAttr(FSDPDialect::reducesAttrName))
      break;
    chain.push_back(op);
  }
  return nullptr;
}

/// The terms of a tied weight's gradient are summed up in one tensor instead of one tensor each:
/// the ops on both sums before they are added are linear, and are done once.
void MicrobatchSplitter::joinSums() {
  for (Operation &op : llvm::make_early_inc_range(whole.getBody().front())) {
    auto add = dyn_cast<arith::AddFOp>(op);
    if (!add || !add->hasAttr(FSDPDialect::reducesAttrName))
      continue;
    SmallVector<Operation *> firstChain, secondChain;
    AllReduceOp first = findSum(add.getLhs(), firstChain),
                second = findSum(add.getRhs(), secondChain);
    bool alike = first && second && first->isBeforeInBlock(second) &&
                 getStructure(first).stage == getStructure(second).stage &&
                 first.getType() == second.getType() && firstChain.size() == secondChain.size() &&
                 llvm::all_of(llvm::zip(firstChain, secondChain), [](auto pair) {
                   auto [a, b] = pair;
                   return a->getName() == b->getName() && a->getAttrs() == b->getAttrs() &&
                          a->getResultTypes() == b->getResultTypes();
                 });
    if (!alike)
      continue;
    continues[second] = first;
    add.getResult().replaceAllUsesWith(add.getRhs());
    add.erase();
    for (Operation *unused : firstChain)
      unused->erase();
  }
}

LogicalResult MicrobatchSplitter::classify(Operation *op) {
  bool ofSums = false, ofSamples = isa<InputOp, MicrobatchSamplesOp>(op), afterSums = true;
  if (auto dropout = dyn_cast<DropoutOp>(op))
    ofSamples |= dropout.getMicrobatches().has_value();
  readsMicrobatch |= ofSamples && !isa<InputOp>(op);
  Value sum;
  for (Value operand : op->getOperands()) {
    Part part = parts.lookup(operand.getDefiningOp());
    ofSamples |= part == Part::microbatch;
    if (part == Part::sum || part == Part::last || part == Part::update) {
      ofSums = true;
      sum = operand;
    }
    afterSums &= part != Part::update;
  }
  if (ofSums && ofSamples) {
    std::string name = getLocationName(sum.getLoc());
    return op->emitError() << "'" << op->getName() << "' needs "
                           << (name.empty() ? "a value" : "'" + name + "'")
                           << ", which depends on the samples of the whole batch, in each "
                              "microbatch; train without gradient accumulation";
  }
  Part &part = parts[op];
  if (isSumOverMicrobatches(op))
    part = Part::sum;
  else if (ofSums)
    part = afterSums && op->hasAttr(FSDPDialect::reducesAttrName) && !joinsStages(op)
               ? Part::last
               : Part::update;
  else if (ofSamples)
    part = Part::microbatch;
  else
    part = hasConsequences(op) ? Part::update : Part::free;
  return success();
}

CarriedOp MicrobatchSplitter::declare(Value value, FlatSymbolRefAttr storage) {
  std::string name = getLocationName(value.getLoc());
  if (storage)
    name = (storage.getValue() +
            (parts.lookup(value.getDefiningOp()) == Part::sum ? ".accumulator" : ".reduced"))
               .str();
  else
    name = (name.empty() ? "value" : name) + ".total";
  auto declared = CarriedOp::create(builder, value.getLoc(), builder.getStringAttr(name),
                                    TypeAttr::get(value.getType()), storage,
                                    /*zeroed=*/UnitAttr());
  symbols.insert(declared, builder.getInsertionPoint());
  return declared;
}

/// Declares a carried tensor for each sum, and for each result of `last` that `update` uses.
void MicrobatchSplitter::declareAll() {
  for (Operation &op : whole.getBody().front()) {
    auto storage = op.getAttrOfType<FlatSymbolRefAttr>(FSDPDialect::reducesAttrName);
    if (parts.lookup(&op) == Part::sum)
      carried[op.getResult(0)] = continues.contains(&op)
                                     ? carried.lookup(continues.lookup(&op).getResult())
                                     : declare(op.getResult(0), storage);
    if (parts.lookup(&op) != Part::last)
      continue;
    for (Value result : op.getResults())
      if (isUsedBy(result, Part::update)) {
        CarriedOp place = carried.lookup(findReducedInPlace(result));
        carried[result] = place ? place : declare(result, storage);
      }
  }
}

SegmentOp MicrobatchSplitter::create(StringRef part, ArrayRef<StringRef> next) {
  auto name = [&](StringRef part) { return getMicrobatchSegment(whole.getSymName(), part); };
  SmallVector<Attribute> names;
  for (StringRef part : next)
    names.push_back(FlatSymbolRefAttr::get(builder.getContext(), name(part)));
  builder.setInsertionPoint(whole);
  auto segment = SegmentOp::create(builder, whole.getLoc(), name(part), whole.getKind(),
                                   /*async=*/false, /*drain=*/false, builder.getArrayAttr(names));
  builder.createBlock(&segment.getBody());
  return segment;
}

/// Clones `op`, and before it the operands that may be anywhere.
void MicrobatchSplitter::clone(Operation *op, IRMapping &mapping) {
  for (Value operand : op->getOperands())
    if (!mapping.contains(operand))
      clone(operand.getDefiningOp(), mapping);
  builder.clone(*op, mapping);
}

/// The sum of `term` and the previous terms.
Value MicrobatchSplitter::add(AllReduceOp sum, Value term) {
  CarriedOp tensor = carried.lookup(sum.getResult());
  Location loc = sum.getLoc();
  Value old = CarryLoadOp::create(builder, loc, term.getType(), tensor.getSymName());
  bool isInteger = isa<IntegerType>(getElementTypeOrSelf(term.getType()));
  if (sum.getKind() == ReduceKind::max)
    return isInteger ? arith::MaxSIOp::create(builder, loc, old, term).getResult()
                     : arith::MaximumFOp::create(builder, loc, old, term).getResult();
  return isInteger ? arith::AddIOp::create(builder, loc, old, term).getResult()
                   : arith::AddFOp::create(builder, loc, old, term).getResult();
}

void MicrobatchSplitter::buildMicrobatch(SegmentOp segment, Place place) {
  builder.setInsertionPointToEnd(&segment.getBody().front());
  IRMapping mapping;
  auto store = [&](Value global) {
    CarryStoreOp::create(builder, global.getLoc(), mapping.lookup(global),
                         carried.lookup(global).getSymName());
  };
  for (Operation &op : whole.getBody().front()) {
    Part part = parts.lookup(&op);
    if (part == Part::microbatch)
      clone(&op, mapping);
    if (part == Part::sum) {
      auto sum = cast<AllReduceOp>(op);
      StructureScope scope(builder, getStructure(&op));
      Value term = op.getOperand(0);
      if (!mapping.contains(term))
        clone(term.getDefiningOp(), mapping);
      Value partial = mapping.lookup(term);
      bool begins = place == Place::first && !continues.contains(&op);
      mapping.map(sum.getResult(), begins ? partial : add(sum, partial));
      store(sum.getResult());
    }
    if (part != Part::last || place != Place::last)
      continue;
    clone(&op, mapping);
    StructureScope scope(builder, getStructure(&op));
    for (Value result : op.getResults())
      if (carried.contains(result))
        store(result);
  }
  if (readsMicrobatch)
    NextMicrobatchOp::create(builder, whole.getLoc(), microbatches);
}

void MicrobatchSplitter::buildUpdate(SegmentOp segment) {
  builder.setInsertionPointToEnd(&segment.getBody().front());
  IRMapping mapping;
  for (Operation &op : whole.getBody().front()) {
    if (parts.lookup(&op) != Part::update)
      continue;
    for (Value operand : op.getOperands()) {
      auto known = carried.find(operand);
      if (known == carried.end() || mapping.contains(operand))
        continue;
      StructureScope scope(builder, getStructure(&op));
      mapping.map(operand, CarryLoadOp::create(builder, operand.getLoc(), operand.getType(),
                                               known->second.getSymName()));
    }
    clone(&op, mapping);
  }
}

LogicalResult MicrobatchSplitter::run(ArrayAttr next) {
  joinSums();
  for (Operation &op : whole.getBody().front())
    if (failed(classify(&op)))
      return failure();
  builder.setInsertionPoint(whole->getParentOp());
  declareAll();

  bool hasMiddle = microbatches > 2;
  SmallVector<StringRef> fromMiddle{"last"};
  if (microbatches > 3)
    fromMiddle.insert(fromMiddle.begin(), "middle");
  SmallVector<Attribute> walked;
  auto add = [&](StringRef part, ArrayRef<StringRef> following) {
    SegmentOp segment = create(part, following);
    walked.push_back(FlatSymbolRefAttr::get(segment.getSymNameAttr()));
    return segment;
  };
  buildMicrobatch(add("first", {hasMiddle ? "middle" : "last"}), Place::first);
  if (hasMiddle)
    buildMicrobatch(add("middle", fromMiddle), Place::middle);
  // An evaluation updates nothing.
  StringRef end = whole.getKind() == StepKind::train ? "update" : "end";
  buildMicrobatch(add("last", {end}), Place::last);
  SegmentOp update = add(end, {});
  update.setNextAttr(next);
  buildUpdate(update);

  SmallVector<int64_t> times{1, 1, 1};
  if (hasMiddle)
    times.insert(times.begin() + 1, microbatches - 2);
  builder.setInsertionPoint(*whole->getBlock()->getOps<SegmentOp>().begin());
  WalkOp::create(builder, whole.getLoc(), whole.getSymName(), whole.getKind(),
                 builder.getArrayAttr(walked), times);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(whole.getBody().front())))
    op.erase();
  whole.erase();
  return success();
}

LogicalResult mlir::fsdp::cutIntoMicrobatches(SegmentOp whole, int64_t count, ArrayAttr next,
                                              SymbolTable &symbols) {
  return MicrobatchSplitter(whole, count, symbols).run(next);
}
