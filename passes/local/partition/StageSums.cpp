//===- StageSums.cpp ------------------------------------------------------===//

#include "passes/local/partition/StageSums.h"

#include "dialect/fsdp/Structure.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fsdp;

static int64_t stageOf(Value value) { return getStructure(value.getDefiningOp()).stage; }

void mlir::fsdp::collectTerms(Value gradient, bool byStage, SmallVectorImpl<Value> &terms,
                              SmallVectorImpl<Operation *> &sums) {
  auto add = gradient.getDefiningOp<arith::AddFOp>();
  SmallVector<Value> found;
  SmallVector<Operation *> added;
  if (add) {
    added.push_back(add);
    collectTerms(add.getLhs(), byStage, found, added);
    collectTerms(add.getRhs(), byStage, found, added);
  }
  const bool isTerm =
      !add || (byStage && llvm::all_of(found, [&](Value term) {
                 return term.getDefiningOp() && stageOf(term) == stageOf(found.front());
               }));
  if (isTerm) {
    terms.push_back(gradient);
    return;
  }
  llvm::append_range(terms, found);
  llvm::append_range(sums, added);
}

static Attribute shardingOf(Value value) {
  auto all = value.getDefiningOp()->getAttrOfType<ArrayAttr>(FSDPDialect::shardingsAttrName);
  const unsigned number = cast<OpResult>(value).getResultNumber();
  return all && number < all.size() ? all[number] : Attribute();
}

/// The sum of `a` and `b`, directly behind the later one.
static Value addBehind(Value a, Value b) {
  Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
  Operation *later = first->isBeforeInBlock(second) ? second : first;
  OpBuilder builder(later->getBlock(), std::next(later->getIterator()));
  auto sum = arith::AddFOp::create(builder, b.getLoc(), a, b);
  setStructure(sum, getStructure(later).in(Direction::backward));
  sum->setDiscardableAttr(FSDPDialect::shardingsAttrName, builder.getArrayAttr({shardingOf(a)}));
  return sum;
}

static void groupByStage(Value gradient) {
  SmallVector<Value> terms;
  SmallVector<Operation *> sums;
  collectTerms(gradient, /*byStage=*/false, terms, sums);
  if (!llvm::all_of(terms, [](Value term) { return bool(term.getDefiningOp()); }))
    return;
  llvm::MapVector<int64_t, SmallVector<Value>> stages;
  for (Value term : terms)
    stages[stageOf(term)].push_back(term);
  const Attribute sharding = shardingOf(terms.front());
  auto isAlike = [&](Value value) { return sharding && shardingOf(value) == sharding; };
  const bool isGrouped = stages.size() < 2 ||
                         llvm::all_of(stages, [](auto &stage) { return stage.second.size() < 2; });
  if (isGrouped || !llvm::all_of(terms, isAlike) || !llvm::all_of(sums, [&](Operation *sum) {
        return isAlike(sum->getResult(0)) && llvm::all_of(sum->getUsers(), [&](Operation *user) {
                 return isa<GlobalNormOp, UpdateOp>(user) || llvm::is_contained(sums, user);
               });
      }))
    return;
  Value whole;
  for (auto &[stage, members] : stages) {
    Value sum;
    for (Value term : members)
      sum = sum ? addBehind(sum, term) : term;
    whole = whole ? addBehind(whole, sum) : sum;
  }
  gradient.replaceAllUsesWith(whole);
  for (Operation *sum : sums) // each before those that it adds
    sum->erase();
}

void mlir::fsdp::groupSumsByStage(StepOp step) {
  llvm::SetVector<Value> gradients;
  for (Operation &op : step.getBody().front()) {
    if (auto update = dyn_cast<UpdateOp>(op))
      gradients.insert(update.getGradient());
    if (auto norm = dyn_cast<GlobalNormOp>(op))
      gradients.insert(norm.getGradients().begin(), norm.getGradients().end());
  }
  for (Value gradient : gradients)
    groupByStage(gradient);
}
