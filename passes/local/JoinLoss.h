//===- JoinLoss.h - a loss and its gradient in one launch -------*- C++ -*-===//

#ifndef PASSES_LOCAL_JOINLOSS_H
#define PASSES_LOCAL_JOINLOSS_H

#include "mlir/IR/Block.h"

namespace mlir::fsdp {

/// Lets each loss of rows of logits in `block` compute the cotangent of the logits too, where the
/// cotangent of the loss does not depend on the loss and nothing reads the logits afterwards.
void joinLosses(Block &block);

} // namespace mlir::fsdp

#endif // PASSES_LOCAL_JOINLOSS_H
