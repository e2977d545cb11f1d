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
    The `fsdp` dialect describes how values are distributed and when work is executed; the computation itself
    is expressed in `nn`, `arith` and `math`. A module goes through three phases,
    named by the module attribute `fsdp.phase` and checked by `fsdp-verify-phase`:

    - **global**: `fsdp.step` ops contain the program for a single device, on unsharded
      tensors. Parameters are symbols (`fsdp.param`) with a *placement*; `fsdp.read` is
      the use of one. `fsdp.loss`, `fsdp.metric`, `fsdp.gradient` and `fsdp.update` mark the
      results of the step. Values carry shardings (attribute `fsdp.shardings`) after propagation.
    - **local**: `fsdp.program` ops, one per role, contain `fsdp.segment`s in which values
      are the tensors of one rank. Parameters are stored in `fsdp.storage`, read by
      `fsdp.load`, gathered by `fsdp.all_gather` and split into views by `fsdp.view`; gradients are
      concatenated by `fsdp.flatten` and reduced by `fsdp.reduce_scatter`.
    - **scheduled**: the same programs and segments, but values are `fsdp.buffer`s at
      fixed offsets of one arena, and work consists of `fsdp.launch`es on named streams, which wait
      for and produce timepoints. The body of a launch is local IR on tensors.

    The attribute `fsdp.structure` of an op is the part of the step that it belongs to (see `#fsdp.structure`). In the local
    phase, ops that gather the parameters of a storage have `fsdp.gathers = @fc1.flat`, and ops that reduce their gradients have
    `fsdp.reduces = @fc1.flat`; `fsdp-schedule` assigns streams and groups accordingly.

    An all-gather is not `Pure`: it allocates its result. Otherwise `--cse` would merge the
    forward and the backward gather of a unit into one whose result is kept for the whole step,
    which would silently disable ZeRO-3. The same holds for `fsdp.read`.

    Names (of parameters, units, inputs, metrics, steps, streams, launches: everything in a string or
    symbol attribute of an op of this dialect, and in the location of an op inside a step) are any
    printable text: valid UTF-8 without control characters, not empty; those of parameters, units,
    inputs and metrics have at most 1024 bytes. Quotes, backslashes, blanks and other scripts are legal;
    code that prints a name escapes it for the output language, and different names get
    different identifiers. Reserved names are refused: `__metadata__`, which is reserved in
    safetensors files, for a parameter or an input; the keys of a training log (`step`,
    `loss`, `grad_norm`, `lr`, `tokens_per_s`, `step_ms`, `peak_bytes`, `workspace`, `library_bytes`, `run`,
    and all that begin with `val_`) for a metric. Axes of a mesh are identifiers: a letter, then letters,
    digits and `_`.

    Order of the files: FSDPAttrs.td (mesh, sharding, placement, initializer, structure, optimizer),
    FSDPTypes.td, FSDPModuleOps.td (declarations and containers), FSDPGlobalOps.td, FSDPManualOps.td,
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

// Phase traits: the phase in whose steps, segments or launches an op may be. An op without a trait
// is a declaration.
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

// A number of one of several things, from 0.
def FSDP_Number : ConfinedAttr<I64Attr, [IntNonNegative]>;

def FSDP_ParameterResource : Resource<"::mlir::fsdp::ParameterResource">;
def FSDP_StepStateResource : Resource<"::mlir::fsdp::StepStateResource">;
def FSDP_BadGradientResource : Resource<"::mlir::fsdp::BadGradientResource">;
def FSDP_OutputResource : Resource<"::mlir::fsdp::OutputResource">;
def FSDP_TransferResource : Resource<"::mlir::fsdp::TransferResource">;

#endif // FSDP_DIALECT_TD
