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
    InterfaceMethod<"What becomes of its operands' factors and sums.",
                    "::mlir::nn::Linearity", "getLinearity", (ins), "",
                    "return ::mlir::nn::Linearity::none;">,
    InterfaceMethod<"Sets the sizes that the attributes of this op, one rank's part, state to those of the part: "
                    "factor i of `rule`, that of the whole op, is split into `parts[i]`.",
                    "void", "setLocalSizes",
                    (ins "const ::mlir::nn::ShardingRule &":$rule,
                         "::llvm::ArrayRef<int64_t>":$parts), "", "return;">,
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

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let description = [{
    How an op runs: which function of the runtime it calls and what that is told, what it may
    overwrite, and which float types it takes. Passes and code generation ask this instead of knowing
    ops by name.
  }];
  let cppNamespace = "::mlir::nn";
  let methods = [
    InterfaceMethod<"The function of the runtime; none by default.",
                    "::mlir::nn::KernelCall", "getKernelCall", (ins), "", "return {};">,
    InterfaceMethod<"Operands that results may overwrite, beyond those of elementwise ops.",
                    "::mlir::nn::InPlacePairs", "getInPlacePairs", (ins), "", "return {};">,
    InterfaceMethod<"Which float types it takes in mixed precision.",
                    "::mlir::nn::PrecisionClass", "getPrecisionClass", (ins), "",
                    "return ::mlir::nn::PrecisionClass::fixed;">,
    InterfaceMethod<"True where element i of the one result needs no other element of the operands of its type.",
                    "bool", "isElementwise", (ins), "", "return false;">,
    InterfaceMethod<"True where a loop may compute an element again in every iteration rather than store it.",
                    "bool", "isCheap", (ins), "", "return false;">,
    InterfaceMethod<"The number of things that the integers of operand `operand` number, which are checked when data is "
                    "read; 0 where it numbers none or they are not checked.",
                    "int64_t", "getIndexBound", (ins "unsigned":$operand), "", "return 0;">,
    InterfaceMethod<"True where operand `operand` holds the scores of classes that a loss is computed from: by far the "
                    "largest value of many models. A result of its type is their cotangent.",
                    "bool", "readsLogits", (ins "unsigned":$operand), "", "return false;">,
    InterfaceMethod<"Fails with a diagnostic where the CUDA target's function does not take the op.",
                    "::llvm::LogicalResult", "verifyCuda", (ins), "", "return ::mlir::success();">,
  ];
}

#endif // NN_INTERFACES_TD
