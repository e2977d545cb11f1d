//===- NNInterfaces.td - interfaces of compute ops -----------------------===//
//
// Differentiation, sharding propagation, partitioning, cost and code generation query
// ops through these interfaces only. Ops of `arith` and `math` on tensors implement
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
    (may not be split); a factor that is read as a whole is `combined` if
    SplitOpInterface says how ranks with parts of it work together.
  }];
  let cppNamespace = "::mlir::nn";
  let methods = [
    InterfaceMethod<"The factors of this op, with sizes read off its types.",
                    "::mlir::nn::ShardingRule", "getShardingRule">,
    InterfaceMethod<"How the op acts on partial sums of its operands.",
                    "::mlir::nn::Linearity", "getLinearity", (ins), "",
                    "return ::mlir::nn::Linearity::none;">,
    InterfaceMethod<"Replaces global sizes in the attributes of this op by the sizes of one rank: "
                    "factor i of `rule`, the rule of the unsharded op, is split into `parts[i]`.",
                    "void", "setLocalSizes",
                    (ins "const ::mlir::nn::ShardingRule &":$rule,
                         "::llvm::ArrayRef<int64_t>":$parts), "", "return;">,
  ];
}

def SplitOpInterface : OpInterface<"SplitOpInterface"> {
  let description = [{
    The ops that replace an op on each rank when its `indexed` or `combined` factor is split. It has at most one.
    Other factors need no such method: the op itself is applied to each part.
  }];
  let cppNamespace = "::mlir::nn";
  let methods = [
    InterfaceMethod<"Builds the ops of one rank at `builder` and returns one value per result, of the types `types`. "
                    "`operands` are those of this rank. In a result that has the factor the padding along it is 0.",
                    "::llvm::SmallVector<::mlir::Value>", "buildSplit",
                    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands,
                         "::mlir::TypeRange":$types, "::mlir::nn::FactorShards &":$shards)>,
    InterfaceMethod<"True if every rank must have as many instances of the factor, without padding.",
                    "bool", "needsEvenParts", (ins), "", "return false;">,
    InterfaceMethod<"The number of ranks that must share the factor; 0 for any.",
                    "int64_t", "getSplitRanks", (ins), "", "return 0;">,
  ];
}

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let description = [{
    Builds the cotangents of the operands (reverse mode) from the cotangents of
    the results. `d[i]`, that of result i, is null if the loss does not depend on
    the result. The method returns one value per operand,
    null where the operand is not differentiable (integers, labels) or its entry
    in `needed` is false. It builds only what a needed cotangent uses, and emits a diagnostic
    if it fails. An op without float results does not need this interface: it is not
    differentiated.
  }];
  let cppNamespace = "::mlir::nn";
  let methods = [
    InterfaceMethod<"Build the vector-Jacobian product.",
                    "::mlir::nn::Cotangents", "buildCotangents",
                    (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<::mlir::Value>":$d,
                         "::llvm::ArrayRef<bool>":$needed)>,
  ];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let description = [{
    Floating-point operations and bytes moved by one execution, computed from the
    types, as in the roofline model.
  }];
  let cppNamespace = "::mlir::nn";
  let methods = [
    InterfaceMethod<"flops, bytes read and bytes written by one execution.",
                    "::mlir::nn::Cost", "getCost">,
  ];
}

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let description = [{
    How an op is executed: the function of the runtime and its arguments, which operands results may
    overwrite, and the supported float types. Passes and code generation use this interface instead of the
    names of ops.
  }];
  let cppNamespace = "::mlir::nn";
  let methods = [
    InterfaceMethod<"The function of the runtime; none by default.",
                    "::mlir::nn::KernelCall", "getKernelCall", (ins), "", "return {};">,
    InterfaceMethod<"Operands that results may overwrite, where the op has them, in addition to those of elementwise ops.",
                    "::mlir::nn::InPlacePairs", "getInPlacePairs", (ins), "", "return {};">,
    InterfaceMethod<"The float types that it uses in mixed precision.",
                    "::mlir::nn::PrecisionClass", "getPrecisionClass", (ins), "",
                    "return ::mlir::nn::PrecisionClass::fixed;">,
    InterfaceMethod<"True if operand `operand` has the type of sums, f32, where mixed precision narrows the op: it is added "
                    "to sums.",
                    "bool", "keepsSumType", (ins "unsigned":$operand), "", "return false;">,
    InterfaceMethod<"True if element i of the result depends on element i only of the operands of its type.",
                    "bool", "isElementwise", (ins), "", "return false;">,
    InterfaceMethod<"True if a loop may recompute an element in every iteration instead of storing it.",
                    "bool", "isCheap", (ins), "", "return false;">,
    InterfaceMethod<"True for a sum of products: selective rematerialization keeps the results.",
                    "bool", "isContraction", (ins), "", "return false;">,
    InterfaceMethod<"The exclusive upper bound of the integers in operand `operand`, which are checked when data is "
                    "read; 0 if they are not indices or are not checked.",
                    "int64_t", "getIndexBound", (ins "unsigned":$operand), "", "return 0;">,
    InterfaceMethod<"True if operand `operand` contains the scores of classes from which a loss is computed: by far the "
                    "largest value of many models. A result of its type is their cotangent.",
                    "bool", "readsLogits", (ins "unsigned":$operand), "", "return false;">,
    InterfaceMethod<"Fails with a diagnostic if the CUDA target does not support the op.",
                    "::llvm::LogicalResult", "verifyCuda", (ins), "", "return ::mlir::success();">,
  ];
}

def RowLossOpInterface : OpInterface<"RowLossOpInterface"> {
  let description = [{
    A loss of rows of logits, its first operand, with the labels as its second one. Its kernel may compute the cotangent of the logits while it has a row at hand.
  }];
  let cppNamespace = "::mlir::nn";
  let methods = [
    InterfaceMethod<"The cotangent of the losses of rows, by which the op has that of the logits; null if it has none.",
                    "::mlir::Value", "getUpstream", (ins), "", "return $_op.getDLoss();">,
    InterfaceMethod<"The number of classes among the columns of the logits; null if all columns are classes.",
                    "::mlir::Value", "getClasses">,
    InterfaceMethod<"Whether `value` is the logarithm of the sum of the exponentials of each row, if no other rank has classes.",
                    "bool", "isLogSumExp", (ins "::mlir::Value":$value)>,
    InterfaceMethod<"Creates this op with `upstream`, and the cotangent of the logits as its last result.",
                    "::mlir::Operation *", "createWith", (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$upstream)>,
  ];
}

def ResidualOpInterface : OpInterface<"ResidualOpInterface"> {
  let description = [{
    An op whose kernel may add a tensor to its first result, and add up all rows of the sum, while it has them in registers.
  }];
  let cppNamespace = "::mlir::nn";
  let methods = [
    InterfaceMethod<"The tensor that is added; null if there is none.", "::mlir::Value", "getAdded", (ins),
                    "", "return $_op.getResidual();">,
    InterfaceMethod<"The type of sums over rows.", "::mlir::Type", "getRowSumType", (ins),
                    "", "return $_op.getDScale().getType();">,
    InterfaceMethod<"Creates this op with `added`, and with the sums over rows as its last result if `sums` is true.",
                    "::mlir::Operation *", "createWith",
                    (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$added, "bool":$sums)>,
  ];
}

#endif // NN_INTERFACES_TD
