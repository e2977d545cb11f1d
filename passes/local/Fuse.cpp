//===- Fuse.cpp - elementwise chains become single kernels ----------------===//
//
// Greedy, from consumers to producers: the last op of a chain is the root of a kernel, which
// absorbs the producers of its operands as long as no op is computed twice, no value is used before
// its definition, and no op moves past a collective. Ops are moved, never changed, so results stay
// bitwise equal.
//
// Ops for prints (`fsdp.report`) do not change the grouping of other ops, on which the bits of
// 16-bit values depend: values that stay inside a kernel are recomputed for them.
//
// A kernel may begin with one matrix product and process its rows as they are completed. The
// product is computed in the buffer of the first result of its type.
//
// A kernel that reads the product of another one is then joined with that, where nothing else reads
// it. A sum over rows that is a kernel of its own is joined with a product of the same matrix.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/Carried.h"
#include "dialect/fsdp/Prints.h"
#include "dialect/nn/ConcatInputs.h"
#include "dialect/nn/RowProduct.h"
#include "passes/KernelJoiner.h"
#include "passes/Passes.h"
#include "passes/local/JoinOperandSums.h"
#include "passes/local/JoinReaders.h"
#include "passes/scheduled/SegmentPlan.h"
#include "runtime/program/Limits.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FUSEPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static bool isMap(Operation *op) {
  return nn::isElementwise(op) || isa<nn::RepeatOp, MaskPaddingOp, MaskSamplesOp>(op);
}

/// True for ops that move elements, and may compute them at the same time.
static bool isTransposition(Operation *op, Reshapes &reshapes) {
  auto rearrange = dyn_cast<nn::RearrangeOp>(op);
  return rearrange && !reshapes.contains(rearrange);
}

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Ops that are cheap enough to recompute in every iteration of a loop.
static bool isCheapKernel(Operation *op) {
  auto kernel = dyn_cast<nn::KernelOpInterface>(op);
  return kernel && kernel.isCheap();
}

using Reports = llvm::DenseSet<Operation *>;

/// A product of the shape of `op` that nothing else uses.
static Operation *ownProduct(Operation *op) {
  auto isOwn = [&](Operation *einsum) {
    return llvm::all_of(einsum->getUsers(), [&](Operation *user) {
      return user == op || user->hasAttr(kReportAttrName);
    });
  };
  for (Value operand : op->getOperands())
    if (auto einsum = operand.getDefiningOp<nn::EinsumOp>();
        einsum && isOwn(einsum) && shapeOf(operand) == shapeOf(op->getResult(0)))
      return einsum;
  return nullptr;
}

/// True for two steps of a sum of products, which are not fused: each product, or the kernel that
/// begins with it, is followed by its addition. In one kernel after the last product, all other
/// products would stay in memory until then.
static bool addProductsOneByOne(Operation *producer, Operation *user) {
  if (!isa<arith::AddFOp>(producer) || !isa<arith::AddFOp>(user))
    return false;
  Operation *first = ownProduct(producer), *second = ownProduct(user);
  return first && second && first->isBeforeInBlock(second);
}

/// True if the input's dimensions are the outer dimensions of the result: values computed from them
/// are outside the inner loops and are computed once.
static bool repeatsInner(nn::RepeatOp op) {
  nn::Notation pattern = op.getPattern();
  const nn::NotationTensor &input = pattern.operands.front(), &result = pattern.result;
  return input.size() <= result.size() && std::equal(input.begin(), input.end(), result.begin());
}

namespace {

/// How many collectives precede an op: all, and those of parameters and gradients.
struct Region {
  int collectives = 0, ofParameters = 0;
};
using Regions = llvm::DenseMap<Operation *, Region>;

/// Ops that will be one kernel.
class Group {
public:
  Group(Operation *root, const Regions &regions, const Reports &reports, Reshapes &reshapes)
      : root(root), regions(regions), reports(reports), reshapes(reshapes),
        isReport(reports.contains(root)) {
    Value whole = isa<nn::ReduceOp>(root) ? root->getOperand(0) : root->getResult(0);
    shape = llvm::to_vector(shapeOf(whole));
    members.insert(root);
  }
  /// Draws in all producers that may join.
  void grow();
  /// Absorbs the product whose result the kernel uses, the last one if there are several.
  void growProduct();
  /// Ops that compute something.
  size_t size() const { return members.size(); }
  /// Replaces the members by nn.fused.
  void rewrite(llvm::DenseSet<Operation *> &erased);

private:
  bool isNear(Operation *op) const;
  bool tryAdd(Operation *producer, Operation *user);
  bool mayBeginWith(nn::EinsumOp op) const;
  bool goesByRows() const;
  bool isLegal() const;
  bool isOutside(Operation *op, Operation *user) const;
  bool usedOutside(Operation *op) const;
  /// Of the members `ops`, in order.
  llvm::SetVector<Value> inputs(ArrayRef<Operation *> ops) const;
  /// Those of the members `ops`, in order, whose value is used outside; broadcasts are not among
  /// them: they are cloned instead.
  SmallVector<Operation *> results(ArrayRef<Operation *> ops) const;
  Operation *firstUserOutside(ArrayRef<Operation *> results) const;
  SmallVector<Operation *> inOrder() const;

  Operation *root;
  const Regions &regions;
  const Reports &reports;
  Reshapes &reshapes;
  const bool isReport;
  SmallVector<int64_t> shape; ///< of the loops
  llvm::SetVector<Operation *> members;
  /// Members that are computed at indices other than those of the loops, after a broadcast or a
  /// transposition.
  llvm::DenseSet<Operation *> mapped;
  Operation *product = nullptr; ///< an einsum among the members
};

struct Fuse : fsdp::impl::FusePassBase<Fuse> {
  void runOnOperation() override;

private:
  static Regions collectRegions(ArrayRef<Operation *> ops, const Reports &reports);
};

} // namespace

/// True where `user` takes the result of the member `op` from the kernel. Reports take only a
/// product, which is rounded whether it is in a kernel or not.
bool Group::isOutside(Operation *op, Operation *user) const {
  return !members.contains(user) && (isReport || isa<nn::EinsumOp>(op) || !reports.contains(user));
}

bool Group::usedOutside(Operation *op) const {
  return llvm::any_of(op->getUsers(), [&](Operation *user) { return isOutside(op, user); });
}

llvm::SetVector<Value> Group::inputs(ArrayRef<Operation *> ops) const {
  llvm::SetVector<Value> inputs;
  for (Operation *op : ops)
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (!producer || (!members.contains(producer) && !isa<arith::ConstantOp>(producer)))
        inputs.insert(operand);
    }
  return inputs;
}

SmallVector<Operation *> Group::inOrder() const {
  SmallVector<Operation *> ops(members.begin(), members.end());
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ops;
}

SmallVector<Operation *> Group::results(ArrayRef<Operation *> ops) const {
  SmallVector<Operation *> results;
  for (Operation *op : ops)
    if (op == root || (usedOutside(op) && !isa<nn::RepeatOp>(op)))
      results.push_back(op);
  if (!product)
    return results;
  // A product with other users has its own buffer, otherwise that of the first result of its type.
  auto place = llvm::find(results, product);
  if (place == results.end())
    place = llvm::find_if(results, [&](Operation *op) {
      return op->getResult(0).getType() == product->getResult(0).getType();
    });
  if (place != results.end())
    std::rotate(results.begin(), place, place + 1);
  return results;
}

Operation *Group::firstUserOutside(ArrayRef<Operation *> results) const {
  Operation *first = nullptr;
  for (Operation *op : results)
    for (Operation *user : op->getUsers())
      if (isOutside(op, user) && (!first || user->isBeforeInBlock(first)))
        first = user;
  return first;
}

/// True if there is a position for the kernel after its inputs and before its users.
bool Group::isLegal() const {
  const SmallVector<Operation *> ops = inOrder(), stored = results(ops);
  llvm::SetVector<Value> operands = inputs(ops);
  size_t masks =
      llvm::count_if(members, [](Operation *op) { return isa<MaskPaddingOp, MaskSamplesOp>(op); });
  if (operands.size() + stored.size() + masks > limits::kMaxKernelArguments)
    return false;
  Operation *user = firstUserOutside(stored);
  return !user || llvm::all_of(operands, [&](Value operand) {
    Operation *producer = operand.getDefiningOp();
    return !producer || producer->isBeforeInBlock(user);
  });
}

/// True if there is no collective between `op` and the root. A broadcast may move past a collective
/// of activations, which precedes a bias: its operand is not kept longer than its unit needs.
bool Group::isNear(Operation *op) const {
  const Region here = regions.lookup(op), there = regions.lookup(root);
  return isa<nn::RepeatOp>(op) ? here.ofParameters == there.ofParameters
                               : here.collectives == there.collectives;
}

bool Group::tryAdd(Operation *producer, Operation *user) {
  if (!producer || members.contains(producer) || !isMap(producer) ||
      reports.contains(producer) != isReport || producer->getBlock() != root->getBlock() ||
      !isNear(producer) || addProductsOneByOne(producer, user))
    return false;
  bool isMapped = mapped.contains(user) || isa<nn::RepeatOp, nn::RearrangeOp>(user);
  if (isMapped && !isTransposition(user, reshapes)) {
    auto repeat = dyn_cast<nn::RepeatOp>(user);
    bool once = repeat && !mapped.contains(user) && repeatsInner(repeat);
    // Behind a row that is computed once, all of its chain is computed once.
    once |=
        mapped.contains(user) && !repeat && llvm::all_of(user->getUsers(), [&](Operation *next) {
          auto above = dyn_cast<nn::RepeatOp>(next);
          return above && !mapped.contains(next) && repeatsInner(above);
        });
    if (!once && !isCheapKernel(producer))
      return false;
  }
  members.insert(producer);
  if (isMapped)
    mapped.insert(producer);
  // A value with other users becomes a further result, if it has the shape of the loops; a
  // broadcast costs nothing and is repeated.
  bool storable = !isMapped && shapeOf(producer->getResult(0)) == ArrayRef<int64_t>(shape);
  bool fits = isa<nn::RepeatOp>(producer) || !usedOutside(producer) || storable;
  if (fits && isLegal())
    return true;
  members.remove(producer);
  mapped.erase(producer);
  return false;
}

void Group::grow() {
  bool changed = true;
  while (changed) {
    changed = false;
    // Producers last in the block first: their users are in the group by then, if ever.
    SmallVector<Operation *> ops = inOrder();
    for (Operation *op : llvm::reverse(ops))
      for (Value operand : op->getOperands())
        changed |= tryAdd(operand.getDefiningOp(), op);
  }
}

/// True where all that the kernel does with a row of its loops follows from this row and rows
/// before.
bool Group::goesByRows() const {
  if (isTransposition(root, reshapes))
    return false; // walks over its result
  // Sums of 16 bits are completed one by one, each over all rows.
  return !isa<nn::ReduceOp>(root) ||
         getElementTypeOrSelf(root->getResult(0).getType()).getIntOrFloatBitWidth() >= 32;
}

/// True if the kernel uses the elements of `op` one by one, row by row, and has a result in whose
/// buffer they can be computed. isLegal checks collectives and the positions of other operands.
bool Group::mayBeginWith(nn::EinsumOp op) const {
  if (!nn::getRowDims(op) || !isNear(op) || !goesByRows() || op->getBlock() != root->getBlock() ||
      shapeOf(op.getResult()) != ArrayRef<int64_t>(shape))
    return false;
  // A constant, or a broadcast that the chain absorbs as well, would be inside the kernel, not in
  // memory.
  if (llvm::any_of(op->getOperands(), [&](Value side) {
        return side.getDefiningOp<arith::ConstantOp>() || members.contains(side.getDefiningOp());
      }))
    return false;
  // A product is computed in the buffer of the result before the chain reads its operands: a result
  // that replaces a carried tensor would overwrite it.
  if (llvm::any_of(members, [&](Operation *member) {
        return llvm::any_of(member->getOperands(), isCarried);
      }))
    return false;
  bool stays = false;
  for (Operation *user : op->getUsers()) {
    if (!members.contains(user))
      stays = true;
    else if (mapped.contains(user) || isa<nn::RepeatOp, nn::RearrangeOp>(user))
      return false;
  }
  return stays || llvm::any_of(results(inOrder()), [&](Operation *result) {
           return result->getResult(0).getType() == op.getType();
         });
}

void Group::growProduct() {
  llvm::SmallSetVector<Operation *, 4> products;
  for (Operation *op : members)
    for (Value operand : op->getOperands())
      if (auto einsum = operand.getDefiningOp<nn::EinsumOp>(); einsum && mayBeginWith(einsum))
        products.insert(einsum);
  SmallVector<Operation *> last(products.begin(), products.end());
  llvm::sort(last, [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
  for (Operation *op : last) {
    members.insert(op);
    product = op;
    if (isLegal())
      return;
    members.remove(op);
    product = nullptr;
  }
}

void Group::rewrite(llvm::DenseSet<Operation *> &erased) {
  SmallVector<Operation *> ops = inOrder(), stored = results(ops);
  llvm::SetVector<Value> operands = inputs(ops);
  Operation *user = firstUserOutside(stored);
  SmallVector<Type> types;
  for (Operation *op : stored)
    types.push_back(op->getResult(0).getType());
  KernelJoiner joiner(user && user->isBeforeInBlock(root) ? user : root, root, types,
                      operands.getArrayRef());
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      if (auto constant = operand.getDefiningOp<arith::ConstantOp>())
        if (!joiner.contains(operand))
          joiner.copy(constant);
    joiner.copy(op);
  }
  SmallVector<Value> yielded;
  for (Operation *op : stored)
    yielded.push_back(joiner.lookup(op->getResult(0)));
  Operation *fused = joiner.finish(yielded);
  // Members that reports need before the kernel stay, for them alone.
  for (auto [index, result] : llvm::enumerate(fused->getResults())) {
    Operation *op = stored[index];
    op->getResult(0).replaceUsesWithIf(result, [&](OpOperand &use) {
      Operation *user = use.getOwner();
      return isOutside(op, user) || (!members.contains(user) && fused->isBeforeInBlock(user));
    });
  }
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty()) {
      erased.insert(op);
      op->erase();
    }
}

/// True for an op without effects whose results, if any, are used only by `reports`.
static bool isForReports(Operation *op, const Reports &reports) {
  return op->hasAttr(kReportAttrName) ||
         (!op->use_empty() &&
          llvm::all_of(op->getUsers(), [&](Operation *user) { return reports.contains(user); }));
}

Regions Fuse::collectRegions(ArrayRef<Operation *> ops, const Reports &reports) {
  Regions regions;
  Region region;
  for (Operation *op : ops) {
    if (isa<CollectiveOpInterface>(op) && !reports.contains(op)) {
      ++region.collectives;
      region.ofParameters += op->hasAttr(FSDPDialect::gathersAttrName) ||
                             op->hasAttr(FSDPDialect::reducesAttrName) ||
                             getStructure(op).direction == Direction::update;
    }
    regions[op] = region;
  }
  return regions;
}

void Fuse::runOnOperation() {
  Reshapes reshapes;
  for (SegmentOp segment : getOperation().getOps<SegmentOp>()) {
    nn::limitConcatInputs(segment.getBody().front(), limits::kMaxConcatInputs);
    SmallVector<Operation *> ops;
    Reports reports;
    for (Operation &op : segment.getBody().front())
      ops.push_back(&op);
    for (Operation *op : llvm::reverse(ops))
      if (isForReports(op, reports))
        reports.insert(op);
    const Regions regions = collectRegions(ops, reports);
    llvm::DenseSet<Operation *> erased;
    // Reports come last, together with the ops computed only for them.
    for (bool ofReports : {false, true}) {
      for (Operation *op : llvm::reverse(ops)) {
        if (erased.contains(op))
          continue;
        if (isForReports(op, reports))
          reports.insert(op);
        // Broadcasts alone do not form a kernel; they join the kernel that uses them.
        if (reports.contains(op) != ofReports || isa<nn::RepeatOp>(op) ||
            !(isMap(op) || isTransposition(op, reshapes) || isa<nn::ReduceOp>(op)))
          continue;
        Group group(op, regions, reports, reshapes);
        group.grow();
        if (!ofReports)
          group.growProduct();
        if (group.size() > 1)
          group.rewrite(erased);
      }
    }
    for (Operation *op : llvm::reverse(ops))
      if (!erased.contains(op) && isa<arith::ConstantOp>(op) && op->use_empty())
        op->erase();
    joinReaders(segment.getBody().front());
    joinOperandSums(segment.getBody().front());
  }
}
