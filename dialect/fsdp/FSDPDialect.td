//===- FSDPDialect.td - the map of the distribution dialect ---------------===//

#ifndef FSDP_DIALECT_TD
#define FSDP_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialect/nn/NNTypes.td"

def FSDP_Dialect : Dialect {
  let name = "fsdp";
  let cppNamespace = "::mlir::fsdp";
  let summary = "Distribution: meshes, shardings, parameters, collectives, timeline";
  let description = [{
    The `fsdp` dialect says where values live and when things happen; what is computed
    is the business of `nn`, `arith` and `math`. A module goes through three phases,
    named by the module attribute `fsdp.phase` and checked by `fsdp-verify-phase`:

    - **global**: `fsdp.step` ops hold the program of one imaginary device on whole
      tensors. Parameters are symbols (`fsdp.param`) with a *placement*; `fsdp.read` is
      the use of one. `fsdp.loss`, `fsdp.metric`, `fsdp.gradient` and `fsdp.update` mark what
      the step is for. Values carry shardings (attribute `fsdp.shardings`) once propagated.
    - **local**: `fsdp.program` ops, one per role, hold `fsdp.segment`s in which values
      are what one rank holds. Parameters live in `fsdp.storage`, are read by
      `fsdp.load`, gathered by `fsdp.all_gather` and cut up by `fsdp.view`; gradients are
      joined by `fsdp.flatten` and leave through `fsdp.reduce_scatter`.
    - **scheduled**: the same programs and segments, but values are `fsdp.buffer`s at
      fixed offsets of one arena, and work is `fsdp.launch`es on named streams which wait
      on and produce timepoints. The body of a launch is local IR on tensors.

    Ops say which part of a step they belong to (`fsdp.structure`, see `#fsdp.structure`). In the local phase what gathers the
    parameters of a storage says so as well (`fsdp.gathers = @fc1.flat`), and what reduces their gradients
    (`fsdp.reduces = @fc1.flat`); `fsdp-schedule` chooses streams and groups by it.

    An all-gather is not `Pure`: it allocates its result. Otherwise `--cse` would merge the
    forward and the backward gather of a unit into one that lives across the whole step,
    and ZeRO-3 would be silently undone. The same holds for `fsdp.read`.

    Names (of parameters, units, inputs, metrics, steps, streams, launches: whatever stands in a string or
    symbol attribute of an op of this dialect, and in the location of an op inside a step) are any text
    that can be printed: valid UTF-8 without control characters, not empty; those of parameters, units,
    inputs and metrics have at most 1024 bytes. Quotes, backslashes, blanks and other scripts are legal;
    what prints a name escapes it for the language that it prints, and gives identifiers of their own to
    names that differ. Some names have a meaning already and are refused: `__metadata__`, which a
    safetensors file keeps for itself, as a parameter or an input; the keys of a training log (`step`,
    `loss`, `grad_norm`, `lr`, `tokens_per_s`, `step_ms`, `peak_bytes`, `workspace`, `run`, and all that
    begin with `val_`) as a metric. Axes of a mesh are words of a command line: a letter, then letters,
    digits and `_`.

    Order of the files: FSDPAttrs.td (mesh, sharding, placement, initializer, structure, optimizer),
    FSDPTypes.td, FSDPModuleOps.td (declarations and containers), FSDPGlobalOps.td,
    FSDPLocalOps.td, FSDPCollectiveOps.td, FSDPOptimizerOps.td, FSDPRandomOps.td, FSDPSampleOps.td, FSDPTimelineOps.td;
    FSDPOps.td includes them all.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
    /// Module attribute: the phase the module is in, a `Phase` keyword as a string.
    static constexpr ::llvm::StringLiteral phaseAttrName = "fsdp.phase";
    /// Discardable attribute of a global op: an array with one sharding per result.
    static constexpr ::llvm::StringLiteral shardingsAttrName = "fsdp.shardings";
    /// Discardable attribute of ops of a step or segment: a `#fsdp.structure`.
    static constexpr ::llvm::StringLiteral structureAttrName = "fsdp.structure";
    /// Discardable attributes of ops of a segment: the storage whose parameters an op gathers, or
    /// whose gradients it reduces.
    static constexpr ::llvm::StringLiteral gathersAttrName = "fsdp.gathers";
    static constexpr ::llvm::StringLiteral reducesAttrName = "fsdp.reduces";
  }];
}

class FSDP_Op<string mnemonic, list<Trait> traits = []>
    : Op<FSDP_Dialect, mnemonic, traits>;

// Phase traits: where an op may stand, in the text (in no step, segment or launch of another phase)
// and in the flow. An op without one is a declaration.
class FSDP_Phase<string name> : NativeOpTrait<name> {
  let cppNamespace = "::mlir::fsdp";
}
def InGlobalPhase : FSDP_Phase<"InGlobalPhase">;
def InLocalPhase : FSDP_Phase<"InLocalPhase">;
def InScheduledPhase : FSDP_Phase<"InScheduledPhase">;

// Shapes are static, and so small that sums of sizes in bytes cannot overflow.
def FSDP_Tensor : NN_SizedTensorOf<[F32, F64, BF16, F16, I1, I32, I64]>;
def FSDP_FloatTensor : NN_SizedTensorOf<[F32, F64, BF16, F16]>;

// Scalars are tensors of rank zero; their types are known and never printed.
class FSDP_Scalar<string elementType, string name> :
    Type<CPred<"$_self == ::mlir::RankedTensorType::get({}, ::mlir::Builder($_self.getContext()).get"
               # elementType # "Type())">, "tensor<" # name # ">", "::mlir::RankedTensorType">,
    BuildableType<"::mlir::RankedTensorType::get({}, $_builder.get" # elementType # "Type())">;
def FSDP_ScalarF32 : FSDP_Scalar<"F32", "f32">;
def FSDP_ScalarF64 : FSDP_Scalar<"F64", "f64">;
def FSDP_ScalarI64 : FSDP_Scalar<"I64", "i64">;
def FSDP_ScalarI1 : FSDP_Scalar<"I1", "i1">;

def FSDP_ParameterResource : Resource<"::mlir::fsdp::ParameterResource">;
def FSDP_StepStateResource : Resource<"::mlir::fsdp::StepStateResource">;
def FSDP_OutputResource : Resource<"::mlir::fsdp::OutputResource">;

#endif // FSDP_DIALECT_TD
