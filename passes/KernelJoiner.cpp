//===- KernelJoiner.cpp --------------------------------------------------===//

#include "passes/KernelJoiner.h"

#include "dialect/fsdp/Prints.h"

using namespace mlir;
using namespace mlir::fsdp;

KernelJoiner::KernelJoiner(Operation *place, Operation *like, TypeRange results,
                           ValueRange operands)
    : builder(place) {
  kernel = nn::FusedOp::create(builder, like->getLoc(), results, operands);
  setStructure(kernel, getStructure(like));
  // Numbers the kernel while its neighbours have numbers: of two neighbours without, the first
  // question about their order would number the whole block again.
  (void)kernel->isBeforeInBlock(place);
  Block *body = builder.createBlock(&kernel.getBody());
  for (Value operand : operands)
    mapping.map(operand, body->addArgument(operand.getType(), operand.getLoc()));
}

Operation *KernelJoiner::copy(Operation *op) { return builder.clone(*op, mapping); }

SmallVector<Value> KernelJoiner::copyBody(nn::FusedOp other) {
  Block &body = other.getBody().front();
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), other->getOperands()))
    mapping.map(argument, mapping.lookup(operand));
  for (Operation &op : body.without_terminator())
    copy(&op);
  return llvm::map_to_vector(body.getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

Operation *KernelJoiner::finish(ValueRange values) {
  nn::YieldOp::create(builder, kernel.getLoc(), values);
  for (Operation &op : kernel.getBody().front()) {
    op.removeDiscardableAttr(FSDPDialect::gathersAttrName);
    op.removeDiscardableAttr(FSDPDialect::shardingsAttrName);
    removeStructure(&op);
  }
  return kernel;
}

JoinableOps::JoinableOps(Block &block) : block(block) {
  int count = 0;
  for (Operation &op : block) {
    count += isa<CollectiveOpInterface>(op) && !op.hasAttr(kReportAttrName);
    collectives[&op] = count;
  }
}

bool JoinableOps::mayJoin(Operation *a, Operation *b) const {
  return a->getBlock() == &block && b->getBlock() == &block && !a->hasAttr(kReportAttrName) &&
         !b->hasAttr(kReportAttrName) && getStructure(a) == getStructure(b) &&
         collectives.lookup(a) == collectives.lookup(b);
}
