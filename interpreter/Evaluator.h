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

/// The kernel of an op with one result of `type`: `fill(operands, elements)` writes the elements of
/// the result, which are zero before.
template <typename Fn> Kernel makeKernel(RankedTensorType type, Fn fill) {
  return [=](ArrayRef<Tensor> operands, MutableArrayRef<Tensor> results) {
    Tensor result(type);
    fill(operands, result.mutableData());
    results[0] = std::move(result);
  };
}

/// The kernel of a pure op other than nn.fused. Fails, emitting on `op`, where the op is unknown.
FailureOr<Kernel> compile(Operation *op, Numerics numerics);

namespace detail {
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
