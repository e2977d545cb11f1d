//===- UpdateKernel.h - update rules as kernels -----------------*- C++ -*-===//

#ifndef CODEGEN_UPDATEKERNEL_H
#define CODEGEN_UPDATEKERNEL_H

#include "codegen/Kernel.h"

namespace mlir::fsdp {

/// One loop over elements of a shard, which reads parameter, gradient and states, and writes the
/// new parameter and states. Its other argument is `step`, an UpdateStep of the runtime. `decays`
/// is the C++ expression of whether weight decay applies; it may depend on the element if
/// `decaysVary`.
Kernel createUpdateKernel(OptimizerStepOp op, StringRef decays, bool decaysVary);

} // namespace mlir::fsdp

#endif // CODEGEN_UPDATEKERNEL_H
