//===- NNBase.td - the dialect and what its ops share --------------------===//

#ifndef NN_BASE_TD
#define NN_BASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialect/nn/NNInterfaces.td"
include "dialect/nn/NNTypes.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::mlir::nn";
  let summary = "Tensor compute in einops notation";
  let description = [{
    The `nn` dialect contains the computation of a model, on ranked tensors and without side
    effects. Every structured op names its dimensions in the notation of einsum and
    einops; differentiation, sharding propagation, partitioning, cost and code generation use
    this notation through four interfaces (`ShardingRule`, `Differentiable`,
    `Cost`, `Kernel`). Elementwise arithmetic is upstream `arith` and `math` on tensors, which
    implement the same interfaces through external models.

    The ops have the same semantics in the global phase (unsharded tensors), in the local phase
    (the shard of one rank) and inside the launches of the scheduled phase.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let hasConstantMaterializer = 1;
}

class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, traits>;

/// `kernel` and `rule` are the methods of the Kernel and ShardingRule interfaces that the op overrides,
/// in addition to those that every op must implement.
class NN_ComputeOp<string mnemonic, list<Trait> traits = [], list<string> kernel = [],
                   list<string> rule = []>
    : NN_Op<mnemonic, !listconcat([Pure,
        DeclareOpInterfaceMethods<ShardingRuleOpInterface, rule>,
        DeclareOpInterfaceMethods<KernelOpInterface, kernel>,
        DeclareOpInterfaceMethods<CostOpInterface>], traits)>;

def NN_FloatTensor : NN_SizedTensorOf<[F32, F64, BF16, F16]>;
def NN_IntTensor : NN_SizedTensorOf<[I32, I64]>;
def NN_ScalarI64 : 0DTensorOf<[I64]>, BuildableType<
    "::mlir::RankedTensorType::get({}, $_builder.getI64Type())">;
def NN_AnyTensor : NN_SizedTensorOf<[F32, F64, BF16, F16, I1, I32, I64]>;

def NN_Reduction : I32EnumAttr<"Reduction", "how elements are combined", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"mean", 1>, I32EnumAttrCase<"max", 2>]> {
  let cppNamespace = "::mlir::nn";
}

#endif // NN_BASE_TD
