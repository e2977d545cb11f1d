//===- Evaluator.h - reference implementations of pure ops ------*- C++ -*-===//
// The semantics of every op of `nn`, `arith`, `math` on tensors, and of the pure ops of `fsdp` that
// do not depend on ranks. An op is compiled once into a kernel (with indices computed from its
// notation) that may run many times, once for each simulated rank and step.
//
//===----------------------------------------------------------------------===//

#ifndef INTERPRETER_EVALUATOR_H
#define INTERPRETER_EVALUATOR_H

#include "interpreter/Tensor.h"
#include "mlir/IR/Operation.h"
#include <functional>

namespace mlir::fsdp::interpreter {

/// Computes the results (one tensor each, in order) from the operands.
using Kernel = std::function<void(ArrayRef<Tensor> operands, MutableArrayRef<Tensor> results)>;

/// The kernel of a pure op, or of a dropout as it is on the first rank in the first step with seed
/// 0. Fails, emitting on `op`, where the op is unknown.
FailureOr<Kernel> compile(Operation *op, Numerics numerics);

/// The results of `op` for `operands`, which have the types of its operands.
FailureOr<SmallVector<Tensor>> evaluate(Operation *op, ArrayRef<Tensor> operands,
                                        Numerics numerics = Numerics::exact);

/// Runs the pure ops of `block` in order, without its terminator, and returns the values of
/// `wanted`, which are defined in the block or are arguments of it.
FailureOr<SmallVector<Tensor>> evaluate(Block &block, ArrayRef<Tensor> arguments,
                                        ArrayRef<Value> wanted,
                                        Numerics numerics = Numerics::exact);

namespace detail {
/// The numerics of the op `op` in the body of an nn.fused that is computed with `numerics`: 16-bit
/// floats are held in f32, except a product, which is rounded as if it were stored.
Numerics numericsInside(Operation *op, Numerics numerics);
/// Rounds the results of an nn.fused that is computed with `numerics`, as they are stored.
void roundStored(MutableArrayRef<Tensor> results, Numerics numerics);

/// The kernel of an op of `arith` or `math`; null where the op is unknown.
Kernel compileElementwise(Operation *op, Numerics numerics);
/// The kernel of an op of `nn` except nn.fused; null if the op is unknown.
Kernel compileCompute(Operation *op, Numerics numerics);
/// Parts of it: softmax and norms; attention and rotary positions; lookups, slices and joins.
Kernel compileNorm(Operation *op, Numerics numerics);
/// `rank`: among those that share the sequence of an attention.
Kernel compileAttention(Operation *op, Numerics numerics, int64_t rank = 0);
Kernel compileMove(Operation *op, Numerics numerics);
} // namespace detail

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_EVALUATOR_H
