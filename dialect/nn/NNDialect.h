//===- NNDialect.h - tensor compute in einops notation ----------*- C++ -*-===//

#ifndef DIALECT_NN_NNDIALECT_H
#define DIALECT_NN_NNDIALECT_H

#include "dialect/nn/AttentionLayout.h"
#include "dialect/nn/Cost.h"
#include "dialect/nn/FactorShards.h"
#include "dialect/nn/KernelCall.h"
#include "dialect/nn/Notation.h"
#include "dialect/nn/ShardingRule.h"
#include "dialect/nn/TensorSize.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/nn/NNDialect.h.inc"
#include "dialect/nn/NNEnums.h.inc"
#include "dialect/nn/NNInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialect/nn/NNOps.h.inc"

namespace mlir::nn {

/// Attaches the interfaces of NNInterfaces.td to the ops of `arith` and `math`
/// that work on tensors.
void registerElementwiseModels(DialectRegistry &registry);

/// True for an op of `arith` or `math` that works element by element on tensors
/// (constants are not among them).
bool isElementwise(Operation *op);
/// The linearity that `op` declares (ShardingRuleOpInterface), `Linearity::none` if it declares
/// nothing.
Linearity getLinearity(Operation *op);

} // namespace mlir::nn

#endif // DIALECT_NN_NNDIALECT_H
