//===- FSDPModuleOps.td - declarations and containers ---------------------===//

#ifndef FSDP_MODULE_OPS_TD
#define FSDP_MODULE_OPS_TD

include "dialect/fsdp/FSDPAttrs.td"
include "dialect/fsdp/FSDPTypes.td"

def FSDP_MeshOp : FSDP_Op<"mesh", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "Declare the mesh of ranks that the module runs on";
  let description = [{
    A module has one mesh; shardings, placements and collectives name its axes.

    Constraints:
    - (C1) a module has one mesh at most.

    Example:
    ```mlir
    fsdp.mesh @mesh <["data"=2, "fsdp"=4]>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FSDP_MeshAttr:$mesh);
  let assemblyFormat = "$sym_name $mesh attr-dict";
  let hasVerifier = 1;
}

def FSDP_ParamOp : FSDP_Op<"param", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "Declare a parameter, its unit, its initial values and its placement";
  let description = [{
    `type` is the shape in compute, with factors apart (768x3x12x64); `file_shape` is the shape
    in weight files when it differs (768x2304), a row-major view of the same elements. Parameters of one `unit` are
    gathered together. A `frozen` parameter has no gradient. The placement is absent before
    `fsdp-shard-parameters`. `split` is how the model asks for the parameter to be split in compute: for each dimension
    axes or parts of axes (`"tensor:(1)2"`), major to minor; those that the mesh lacks split nothing, so one model serves all meshes. `padded` is the shape that
    ranks compute with, store and split where it is larger than the type: elements past those of the type are zero, stay zero, and are in no file (see
    `fsdp-pad-vocabulary`). Steps have the type; `fsdp-partition` pads.

    Constraints:
    - (C1) the element type is a float type.
    - (C2) `file_shape` has as many elements as the type.
    - (C3) a `dimension` placement names a dimension of the type; its axes are axes of the mesh.
    - (C4) the flat placements of one unit are equal, but for `compute`; (C5) they gather and reduce in the element type or a narrower one,
      and accumulate in one narrower than the element type and not narrower than `reduce`, or give none.
    - (C6) the name is not `__metadata__`.
    - (C7) `compute` is a sharding over the mesh of the module, of the rank of the type.
    - (C8) `split` has an entry for each dimension, no axis twice, no parts of axes that overlap, and only parts that divide their
      axis if the mesh has it.
    - (C9) `padded` is for a parameter with a placement, has a size for each dimension, none less than the type's and one more, and at
      most 2^48 bytes.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.param @fc1.weight : tensor<64x128xf32> unit "fc1" init <normal, 2.0e-02>
        placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
    fsdp.param @fc2.weight : tensor<128x64xf32> unit "fc2" init <normal, 2.0e-02> split [["tensor"], []]
    fsdp.param @wte : tensor<1001x8xf32> unit "wte" init <normal, 2.0e-02>
        placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always> padded [1024, 8]
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name, TypeAttrOf<FSDP_FloatTensor>:$type, StrAttr:$unit,
    FSDP_InitAttr:$init, OptionalAttr<DenseI64ArrayAttr>:$file_shape,
    OptionalAttr<ArrayAttr>:$split, OptionalAttr<FSDP_PlacementAttr>:$placement, UnitAttr:$frozen,
    OptionalAttr<DenseI64ArrayAttr>:$padded);
  let assemblyFormat = [{
    $sym_name `:` $type `unit` $unit `init` $init (`file_shape` $file_shape^)? (`split` $split^)?
    (`placement` $placement^)? (`padded` $padded^)? (`frozen` $frozen^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
    /// The shape that is split over ranks: `padded`, or that of the type.
    ::llvm::ArrayRef<int64_t> getSplitShape() {
      return getPadded() ? *getPadded() : getTensorType().getShape();
    }
    /// The shape that a rank computes with and stores: its part of `padded`, or of the type, in the sharding `compute` of the placement.
    ::mlir::RankedTensorType getComputeType();
    /// The axes over which `compute` splits the type, in the order of the mesh.
    ::llvm::SmallVector<::mlir::StringAttr> getComputeAxes();
    /// The rank in weight files decides about weight decay.
    int64_t getFileRank() {
      return getFileShape() ? getFileShape()->size() : getTensorType().getRank();
    }
  }];
}

def FSDP_Phase : I32EnumAttr<"Phase", "the phases a module goes through", [
    I32EnumAttrCase<"global", 0>, I32EnumAttrCase<"local", 1>, I32EnumAttrCase<"scheduled", 2>]> {
  let cppNamespace = "::mlir::fsdp";
  let genSpecializedAttr = 0;
}

def FSDP_StepKind : I32EnumAttr<"StepKind", "what a step is for", [
    I32EnumAttrCase<"train", 0>, I32EnumAttrCase<"evaluate", 1>, I32EnumAttrCase<"prefill", 2>,
    I32EnumAttrCase<"decode", 3>]> {
  let cppNamespace = "::mlir::fsdp";
  let genSpecializedAttr = 0;
}
def FSDP_StepKindAttr : EnumAttr<FSDP_Dialect, FSDP_StepKind, "step_kind">;

def FSDP_StepOp : FSDP_Op<"step", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, Symbol, SingleBlock, NoTerminator, HasParent<"::mlir::ModuleOp">,
                                   IsolatedFromAbove, InGlobalPhase]> {
  let summary = "The program of a single device for one batch";
  let description = [{
    The body computes on whole tensors. `train` differentiates and updates,
    `evaluate` only computes loss and metrics. `prefill` and `decode` compute with tokens of one sample, and tensors that are kept
    between steps (`fsdp-derive-generation`); `decode` leaves the scores of the next token. `optimizer` is present for `train`.

    Constraints:
    - (C1) `train` has an optimizer, other kinds have none.
    - (C2) names in the body and in its locations can be printed.
    - (C3) the body has no arguments and uses no value from outside.
    - (C4) each pattern of the optimizer matches a parameter that is trained.

    Example:
    ```mlir
    fsdp.param @w : tensor<4x3xf32> unit "w" init <constant, 0.0>
    fsdp.step @train train optimizer <sgd, lr = 0.1> {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %w = fsdp.read @w : tensor<4x3xf32>
      %y = nn.einsum "bi,io->bo" %x, %w : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
      %sum = nn.reduce sum "b o ->" %y : tensor<8x3xf32> -> tensor<f64>
      %weight = arith.constant dense<24.0> : tensor<f64>
      fsdp.loss %sum over %weight
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FSDP_StepKindAttr:$kind,
                       OptionalAttr<FSDP_OptimizerAttr>:$optimizer);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `` $kind (`optimizer` $optimizer^)? attr-dict-with-keyword custom<Body>($body)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The first pattern of `groups` that matches no trained parameter of the module.
    ::std::optional<::base::GroupFault> findFaultOf(const ::base::ParameterGroups &groups);
  }];
}

def FSDP_StorageKindAttr : EnumAttr<FSDP_Dialect, FSDP_StorageKind, "storage_kind">;

def FSDP_StorageOp : FSDP_Op<"storage", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "Declare the tensors of a unit (or of one parameter) that a rank keeps from step to step";
  let description = [{
    `shard` is what one rank holds; `states` are the names of further tensors of that type
    (the optimizer's). For `flat`, the unsplit storage is the members one after the other, padded at the end to
    (number of ranks over the axes) x (shard size). For `dimension` there is one member,
    and the shard is its ceil-divided part. For `replicated` the shard is whole.
    Where members are split in compute (`compute` of their placements), they are stored here as a rank's part of them; the ranks
    that share a storage are those with the same parts.
    With `copy` every rank also keeps all members unsplit, in a tensor of that type: forward reads it, and it is gathered after each
    update. The parameter is then stored as a shard only if its element type is not that of the copy.
    Decay applies to the members whose file rank is two or more.
    `roles` names the programs whose ranks keep the storage; without it all ranks do. Several of them keep the same values: each
    updates its own copy.

    Constraints:
    - (C1) flat members do not overlap, are in order and fit; their shard has rank one.
    - (C2) `dimension` has one member at offset 0 and the shard has its ceil-divided shape.
    - (C3) `replicated` storages are flat (rank one) with all members whole.
    - (C5) all members are split over the same axes in compute, none of which the storage is over.
    - (C4) a `copy` is of a storage that is split; it has the members without padding (the one member's shape) in the shard's element
      type or a narrower one.
    - (C6) `roles` names some programs of the module, not all of them, each once; no other program uses the storage.
    - (C7) with `roles`, neither the storage nor its members are split over an axis of a program's role.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=2]>
    fsdp.param @w : tensor<4x3xf32> unit "fc" init <constant, 0.0>
    fsdp.param @b : tensor<3xf32> unit "fc" init <constant, 0.0>
    fsdp.storage @fc : tensor<8xf32> flat over ["fsdp"] states ["momentum"]
        members [#fsdp.member<@w at 0>, #fsdp.member<@b at 12>]
    fsdp.storage @copied : tensor<8xf32> flat over ["fsdp"] copy tensor<15xbf16> states ["momentum"]
        members [#fsdp.member<@w at 0>, #fsdp.member<@b at 12>]
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name, TypeAttrOf<FSDP_FloatTensor>:$shard,
    FSDP_StorageKindAttr:$kind,
    DefaultValuedAttr<I64Attr, "-1">:$dim, StrArrayAttr:$axes,
    OptionalAttr<TypedArrayAttrBase<FlatSymbolRefAttr, "programs">>:$roles,
    OptionalAttr<TypeAttrOf<FSDP_FloatTensor>>:$copy, StrArrayAttr:$states, ArrayAttr:$members);
  let assemblyFormat = [{
    $sym_name `:` $shard `` $kind (`dim` $dim^)? `over` $axes (`roles` $roles^)? (`copy` $copy^)? `states` $states `members` $members attr-dict
  }];
  let extraClassDeclaration = [{
    /// The tensors that a rank keeps besides states: its shard of the parameter, and the copy of all of it.
    static constexpr ::llvm::StringLiteral parameter = "parameter", copy = "copy";
    ::mlir::RankedTensorType getShardType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getShard());
    }
    /// The axes over which all members are split in compute, in the order of the mesh.
    ::llvm::SmallVector<::mlir::StringAttr> getSplitAxes();
    /// The type of the copy, or null.
    ::mlir::RankedTensorType getCopyType() {
      return getCopy() ? ::llvm::cast<::mlir::RankedTensorType>(*getCopy()) : ::mlir::RankedTensorType();
    }
    /// False where the copy holds the parameter exactly.
    bool keepsShard() {
      return !getCopy() || getCopyType().getElementType() != getShardType().getElementType();
    }
    /// The names of all tensors that a rank keeps: the shard, the copy, the states.
    ::llvm::SmallVector<::llvm::StringRef> getKept();
    /// The type of the tensor `what`; null for other names.
    ::mlir::RankedTensorType getKeptType(::llvm::StringRef what);
    /// Whether the ranks of `program` keep the storage.
    bool isOwnedBy(ProgramOp program);
  }];
}

def FSDP_CarriedOp : FSDP_Op<"carried", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    Symbol, HasParent<"::mlir::ModuleOp">, InGlobalPhase, InLocalPhase]> {
  let summary = "Declare a tensor that is carried from step to step, or from segment to segment";
  let description = [{
    Written and read by `fsdp.carry_store` and `fsdp.carry_load`, in segments that follow one another: sums over microbatches, and
    values that a segment passes to the next one. In the global phase it is a whole tensor that steps pass on (the keys and values of
    earlier tokens); in the local phase a rank has its part. Unwritten before it is first stored. In the scheduled phase it is a persistent
    `fsdp.buffer`. `of` names the storage whose gradients it sums up. A `zeroed` tensor holds zeros before it is first stored, instead of being unwritten.

    Constraints:
    - (C1) `of` names a `fsdp.storage`.

    Example: see `fsdp.carry_store`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FSDP_Tensor>:$type,
                       OptionalAttr<FlatSymbolRefAttr>:$storage, UnitAttr:$zeroed);
  let assemblyFormat = "$sym_name `:` $type (`of` $storage^)? (`zeroed` $zeroed^)? attr-dict";
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
  }];
}

def FSDP_ProgramOp : FSDP_Op<"program", [Symbol, SymbolTable, SingleBlock, NoTerminator,
                                         HasParent<"::mlir::ModuleOp">, IsolatedFromAbove,
                                         InLocalPhase, InScheduledPhase]> {
  let summary = "The program of the ranks of one role";
  let description = [{
    `role` gives the coordinates that the ranks of this program have on axes whose ranks
    run different programs (such as `pipeline`); an empty role is every rank. The body holds segments and walks, and, in the
    scheduled phase, first the buffers that persist from segment to segment and the events. `arena` is the
    number of bytes that every rank allocates, once memory is planned.

    Constraints:
    - (C1) axes of `role` are axes of the mesh, coordinates below their size.
    - (C2) programs cover every rank once.
    - (C3) the body has no arguments and holds buffers, events, walks and segments only; `arena` is not negative.

    Example:
    ```mlir
    fsdp.mesh @mesh <["pipeline"=2]>
    fsdp.program @first role {pipeline = 0 : i64} {
      fsdp.segment @step train next [@step] {
      }
    }
    fsdp.program @second role {pipeline = 1 : i64} {
      fsdp.segment @step train next [@step] {
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DictionaryAttr:$role, OptionalAttr<I64Attr>:$arena);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `role` $role (`arena` $arena^)? attr-dict-with-keyword custom<Body>($body)
  }];
  let hasVerifier = 1;
}

def FSDP_SegmentOp : FSDP_Op<"segment", [Symbol, SingleBlock, NoTerminator, HasParent<"ProgramOp">,
                                         InLocalPhase, InScheduledPhase]> {
  let summary = "A straight line of a program; `next` names the segments that may follow";
  let description = [{
    A program runs its segments one after another in an endless cycle. At the end of a
    segment every stream is idle and no transient buffer is live, so every edge of `next` holds the same state. At the end
    of an `async` segment launches may still be running: those of the next segments are issued after them on the same streams, and
    wait for `fsdp.event`s where they need more order than that. Running launches and the contents of persistent buffers carry over into
    the segments of `next`. Buffers of a segment are unwritten each time it starts. A `drain` performs the updates that a step
    leaves to the next one (`fsdp-defer-updates`); it runs between training and any use of the parameters, as a separate walk.

    Constraints:
    - (C1) `next` is not empty and names segments of the same program.
    - (C2) the body has no arguments.
    - (C3) a drain trains.

    Example:
    ```mlir
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train, @evaluate] {
      }
      fsdp.segment @evaluate evaluate next [@train, @evaluate] {
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FSDP_StepKindAttr:$kind,
                       UnitAttr:$async, UnitAttr:$drain, TypedArrayAttrBase<FlatSymbolRefAttr, "segments">:$next);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `` $kind (`async` $async^)? (`drain` $drain^)? `next` $next attr-dict-with-keyword custom<Body>($body)";
  let hasVerifier = 1;
}

def FSDP_WalkOp : FSDP_Op<"walk", [Symbol, HasParent<"ProgramOp">, InLocalPhase, InScheduledPhase]> {
  let summary = "The segments that the driver runs for one step, and how often";
  let description = [{
    The driver runs walks, not single segments: to train one step or to evaluate one batch it runs
    the segments of a walk in order, each as many `times` as given. The outputs of a walk are those
    of its segments. In a program without walks each segment is also a walk, with the segment's name
    and kind.

    Constraints:
    - (C1) a walk has segments of the same program, one number for each, from 1 to 2^20.
    - (C2) each segment is followed by the one after it (`next`), and by itself where it runs more than once; and the last one by
      the first.
    - (C3) a walk that trains has segments that train, one that evaluates has segments that evaluate.

    Example:
    ```mlir
    fsdp.program @all role {} {
      fsdp.walk @train train [@first, @middle, @last] times [1, 2, 1]
      fsdp.segment @first train async next [@middle] {
      }
      fsdp.segment @middle train async next [@middle, @last] {
      }
      fsdp.segment @last train next [@first] {
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FSDP_StepKindAttr:$kind,
                       TypedArrayAttrBase<FlatSymbolRefAttr, "segments">:$segments, DenseI64ArrayAttr:$times);
  let assemblyFormat = "$sym_name `` $kind $segments `times` $times attr-dict";
  let hasVerifier = 1;
}

#endif // FSDP_MODULE_OPS_TD
