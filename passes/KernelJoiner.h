//===- KernelJoiner.h - kernels made of several ops ------------*- C++ -*-===//

#ifndef PASSES_KERNELJOINER_H
#define PASSES_KERNELJOINER_H

#include "dialect/fsdp/Structure.h"

#include "mlir/IR/IRMapping.h"

namespace mlir::fsdp {

/// Makes one `nn.fused` of ops of a block. The ops themselves stay where they are.
class KernelJoiner {
public:
  /// Begins a kernel in front of `place`, with the structure and the location of `like`.
  /// `operands`: what the kernel reads, each once.
  KernelJoiner(Operation *place, Operation *like, TypeRange results, ValueRange operands);

  /// Copies `op` to the end of the kernel. Its operands are operands of the kernel, results of ops
  /// copied before, or replaced ones.
  Operation *copy(Operation *op);
  /// Copies the ops of `kernel`. The values that it yields, in this kernel.
  SmallVector<Value> copyBody(nn::FusedOp kernel);

  bool contains(Value outside) const { return mapping.contains(outside); }
  /// The value in this kernel that has the place of `outside`.
  Value lookup(Value outside) const { return mapping.lookup(outside); }
  /// Ops copied from now on read `inside` where they read `outside`.
  void replace(Value outside, Value inside) { mapping.map(outside, inside); }

  /// Ends the kernel: it yields `values`. Shardings and structures of its ops are removed, as they
  /// have no meaning inside a kernel.
  Operation *finish(ValueRange values);

private:
  OpBuilder builder;
  nn::FusedOp kernel;
  IRMapping mapping;
};

/// Which ops of a block may become one kernel.
class JoinableOps {
public:
  explicit JoinableOps(Block &block);

  /// True if `a` and `b` belong to the same part of the step, no collective is between them, and
  /// neither is only for reports.
  bool mayJoin(Operation *a, Operation *b) const;

private:
  Block &block;
  DenseMap<Operation *, int> collectives; ///< before each op
};

} // namespace mlir::fsdp

#endif // PASSES_KERNELJOINER_H
