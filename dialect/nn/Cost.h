//===- Cost.h - flops and bytes of one op -----------------------*- C++ -*-===//

#ifndef DIALECT_NN_COST_H
#define DIALECT_NN_COST_H

#include "mlir/IR/Operation.h"

namespace mlir::nn {

/// Work of one execution of an op: floating-point operations (a multiply-add
/// counts two) and bytes to and from memory when every operand is read once and
/// every result written once.
struct Cost {
  int64_t flops = 0;
  int64_t bytesRead = 0;
  int64_t bytesWritten = 0;

  Cost &operator+=(const Cost &other) {
    flops += other.flops;
    bytesRead += other.bytesRead;
    bytesWritten += other.bytesWritten;
    return *this;
  }
};

/// Bytes of a static ranked tensor in memory (i1 takes one byte an element), 0 for other types.
int64_t bytesOf(Type type);

/// Bytes of the tensor operands and results of `op`, and `flops` as given.
Cost costOf(Operation *op, int64_t flops);

} // namespace mlir::nn

#endif // DIALECT_NN_COST_H
