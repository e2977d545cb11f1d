//===- NNInterfaces.td - what every compute op says of itself -------------===//
//
// Autodiff, sharding propagation, partitioning, cost and codegen read nothing
// of an op but these interfaces. Ops of `arith` and `math` on tensors implement
// them through external models (ElementwiseModels.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef NN_INTERFACES_TD
#define NN_INTERFACES_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/Interfaces.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let description = [{
    States the iteration space of an op as named factors, and which factors each
    dimension of each operand and result runs over. A factor is `parallel`
    (independent instances), `reduction` (summed or maximized away) or `whole`
    (may not be split).
  }];
  let cppNamespace = "::mlir::nn";
  let methods = [
    InterfaceMethod<"The factors of this op, with sizes read off its types.",
                    "::mlir::nn::ShardingRule", "getShardingRule">,
  ];
}

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let description = [{
    Builds the cotangents of the operands (reverse mode) from the cotangents of
    the results. `resultCotangents[i]` is null where nothing flows back into
    result i. The method appends one value per operand to `operandCotangents`,
    null where the operand is not differentiable (integers, labels) or its entry
    in `needed` is false. It builds nothing that no needed cotangent uses, and emits a diagnostic
    where it fails. An op without float results needs no such interface: nothing flows
    back through it.
  }];
  let cppNamespace = "::mlir::nn";
  let methods = [
    InterfaceMethod<"Build the vector-Jacobian product.",
                    "::llvm::LogicalResult", "buildCotangents",
                    (ins "::mlir::OpBuilder &":$builder,
                         "::llvm::ArrayRef<::mlir::Value>":$resultCotangents,
                         "::llvm::ArrayRef<bool>":$needed,
                         "::llvm::SmallVectorImpl<::mlir::Value> &":$operandCotangents)>,
  ];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let description = [{
    Floating-point operations and bytes moved by one execution, read off the
    types: the arithmetic of the roofline model.
  }];
  let cppNamespace = "::mlir::nn";
  let methods = [
    InterfaceMethod<"flops, bytes read and bytes written by one execution.",
                    "::mlir::nn::Cost", "getCost">,
  ];
}

#endif // NN_INTERFACES_TD
