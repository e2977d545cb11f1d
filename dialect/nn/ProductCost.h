//===- ProductCost.h - the matrix products of an op -------------*- C++ -*-===//

#ifndef DIALECT_NN_PRODUCTCOST_H
#define DIALECT_NN_PRODUCTCOST_H

#include "mlir/IR/Operation.h"

namespace mlir::nn {

/// The matrix products of one execution of an op. Their rate depends on the implementation, on the
/// shape and on the element type.
struct ProductCost {
  StringRef kind;    ///< a literal: "matrix", "attention" or "attention_grad"; empty for none
  int64_t flops = 0; ///< of the flops of the op (CostOpInterface), those in products
  int64_t extent =
      0;            ///< the smallest of rows, columns and terms; of attention, the width of a head
  Type elementType; ///< of the operands; null for none
  int64_t keys = 0; ///< that a query of attention sees at most; 0 for others
};

/// The loops fused behind a product.
struct Epilogue {
  /// Bytes that they would read and write as a separate kernel: the product's result, their other
  /// operands and their results, of which the product is none. 0 if there are no loops.
  int64_t bytes = 0;
  bool isBias = false; ///< only a bias is added
  /// The rows of an operand of the product are added up (OperandSum.h): a pass of their own, unless
  /// a library has it with the product. Bytes are those of that operand and of the sum.
  bool isOperandSum = false;
  /// Bytes, likewise, of the loops that libraries of products do not compute with the product
  /// (LibraryEpilogue.h).
  int64_t remainingBytes = 0;
};

/// The loops behind the product of `op`; none for an op without a product.
Epilogue getEpilogue(Operation *op);

/// The products of `op`; of a kernel with several ops, the largest.
ProductCost getProductCost(Operation *op);

} // namespace mlir::nn

#endif // DIALECT_NN_PRODUCTCOST_H
