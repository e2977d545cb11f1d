//===- FSDPAttrs.td - mesh, sharding, placement, optimizer ----------------===//

#ifndef FSDP_ATTRS_TD
#define FSDP_ATTRS_TD

include "dialect/fsdp/FSDPDialect.td"

class FSDP_Attr<string name, string attrMnemonic> : AttrDef<FSDP_Dialect, name> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------===//

def FSDP_MeshAttr : FSDP_Attr<"Mesh", "mesh"> {
  let summary = "Named axes over the ranks";
  let description = [{
    Rank r has the row-major coordinates of r in the axes, last axis fastest, unless
    `devices` gives another order: `devices[p]` is the rank at row-major position p.

    An axis may be listed in parts: `"tensor:(2)4"` is the 4 positions of axis `tensor` after the first 2, that is, of
    an axis of 2 * 4 * n positions those in the middle. Parts are listed major to minor. Passes replace an
    axis by its parts where a sharding needs one of them; ranks keep their numbers. Parts have the role of their axis.

    Constraints: (C1) axis names are distinct, a letter and then letters, digits and `_`, sizes positive, at most
    2^20 ranks and 8 axes;
    (C2) `devices` is absent (and never the identity) or a permutation of all ranks;
    (C3) an axis is listed whole or in consecutive parts, from the first, without a gap; a part has the
    size in its name.

    Example: `#fsdp.mesh<["data"=2, "fsdp"=4]>` and `#fsdp.mesh<["data"=2, "tensor:(1)2"=2, "tensor:(2)4"=4]>`
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::StringAttr">:$axisNames,
    ArrayRefParameter<"int64_t">:$axisSizes,
    ArrayRefParameter<"int64_t">:$devices);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The number of ranks: the product of the axis sizes.
    int64_t getNumRanks() const;
    /// The position of `axis` in the mesh, or -1.
    int64_t getAxisIndex(::llvm::StringRef axis) const;
    /// The size of `axis`, or 1 for an axis that the mesh lacks.
    int64_t getAxisSize(::llvm::StringRef axis) const;
    /// The product of the sizes of `axes`.
    int64_t getSize(::llvm::ArrayRef<::mlir::StringAttr> axes) const;
    /// The coordinates of `rank`, one per axis.
    ::llvm::SmallVector<int64_t> getCoordinates(int64_t rank) const;
    /// The rank at `coordinates`.
    int64_t getRank(::llvm::ArrayRef<int64_t> coordinates) const;
    /// The index of `rank` among the ranks that differ from it only along `axes`
    /// (row-major over `axes` in the order given, first is major).
    int64_t getIndexIn(int64_t rank, ::llvm::ArrayRef<::mlir::StringAttr> axes) const;
    /// The ranks of the group of `rank` along `axes`, ordered by getIndexIn.
    ::llvm::SmallVector<int64_t> getGroup(int64_t rank, ::llvm::ArrayRef<::mlir::StringAttr> axes) const;
  }];
}

//===----------------------------------------------------------------------===//
// Sharding
//===----------------------------------------------------------------------===//

def FSDP_ShardingAttr : FSDP_Attr<"Sharding", "sharding"> {
  let summary = "How a value is sharded over a mesh";
  let description = [{
    For each dimension the mesh axes that split it, major to minor; `?` ends the list of
    a dimension that propagation may split further. `unreduced` names the axes over
    which the value is still a partial sum. Rank i along a split into n parts of a
    dimension of size s holds elements [i*c, (i+1)*c) with c = ceil(s/n); those past s
    are padding. Axes not mentioned replicate. Until `fsdp-propagate`, a sharding may name parts of an axis of the mesh:
    `"tensor:(1)2"` are the first 2 of its positions, `"tensor:(2)4"` the 4 after these.

    Constraints: (C1) no axis appears twice, nor do parts overlap; (C2) `unreduced` is in the order of the names
    and absent when empty.

    Example: `#fsdp.sharding<@mesh, [{"fsdp"}, {}, {?} ], unreduced = {"data"}>`
  }];
  let parameters = (ins
    "::mlir::FlatSymbolRefAttr":$mesh,
    ArrayRefParameter<"::mlir::ArrayAttr">:$dimAxes,
    ArrayRefParameter<"bool">:$dimOpen,
    ArrayRefParameter<"::mlir::StringAttr">:$unreduced);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The sharding that replicates a tensor of `rank` dimensions; open dimensions may
    /// still be split by propagation.
    static ShardingAttr getReplicated(::mlir::MLIRContext *context, ::mlir::FlatSymbolRefAttr mesh,
                                      int64_t rank, bool open = false);
    /// Builds the canonical spelling (sorts `unreduced`).
    static ShardingAttr getCanonical(::mlir::FlatSymbolRefAttr mesh,
                            ::llvm::ArrayRef<::llvm::SmallVector<::mlir::StringAttr>> dimAxes,
                            ::llvm::ArrayRef<::mlir::StringAttr> unreduced = {});
    int64_t getRank() const { return getDimAxes().size(); }
    /// The axes that split dimension `dim`, major to minor.
    ::llvm::SmallVector<::mlir::StringAttr> getAxes(int64_t dim) const;
    /// True where no dimension is split and nothing is unreduced.
    bool isReplicated() const;
    /// The shape that one rank holds of a tensor of the `global` shape: ceil-divided.
    ::llvm::SmallVector<int64_t> getLocalShape(::llvm::ArrayRef<int64_t> global, MeshAttr mesh) const;
  }];
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

def FSDP_StorageKind : I32EnumAttr<"StorageKind", "how a parameter is stored over its axes", [
    I32EnumAttrCase<"replicated", 0>, I32EnumAttrCase<"flat", 1>, I32EnumAttrCase<"dimension", 2>]> {
  let cppNamespace = "::mlir::fsdp";
  let genSpecializedAttr = 0;
}

def FSDP_Reshard : I32EnumAttr<"Reshard", "when a gathered unit is freed", [
    I32EnumAttrCase<"always", 0>, I32EnumAttrCase<"never", 1>, I32EnumAttrCase<"axes", 2>]> {
  let cppNamespace = "::mlir::fsdp";
  let genSpecializedAttr = 0;
}

def FSDP_CheckpointPolicy : I32EnumAttr<"CheckpointPolicy", "what a region of forward keeps for backward", [
    I32EnumAttrCase<"full", 0>, I32EnumAttrCase<"selective", 1>]> {
  let cppNamespace = "::mlir::fsdp";
  let genSpecializedAttr = 0;
}

def FSDP_LayoutAttr : FSDP_Attr<"Layout", "layout"> {
  let summary = "How ranks store a tensor of a parameter";
  let description = [{
    `flat` joins the tensor with those of the other parameters of its unit into one vector that is split over `axes`, major to
    minor; `dimension` splits dimension `dim` over `axes`; `replicated` keeps a copy on every rank.

    Constraints: (C1) `replicated` has no axes, the others at least one; (C2) `dim` is given
    for `dimension` only (-1 otherwise).

    Example: `#fsdp.layout<flat over ["node", "fsdp"]>`, `#fsdp.layout<dimension 0 over ["fsdp"]>` and `#fsdp.layout<replicated>`
  }];
  let parameters = (ins
    EnumParameter<FSDP_StorageKind>:$kind,
    "int64_t":$dim,
    ArrayRefParameter<"::mlir::StringAttr">:$axes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def FSDP_PlacementAttr : FSDP_Attr<"Placement", "placement"> {
  let summary = "How a parameter, its gradient and its optimizer state are stored, and how it is split in compute";
  let description = [{
    What ranks *store*: `parameter`, `gradient` and `state` are the layouts of the parameter that forward reads, of the gradient
    that is accumulated over microbatches, and of the optimizer state. Equal layouts are given once. Updates are computed
    where the state is stored. If the parameter is replicated and the state is split, every rank
    has a copy of the parameter in the type `gather`, which is gathered after each update.

    *Precision*: a parameter is stored, and updated, in its own element type; `gather` is the type in which it is gathered and
    read, `reduce` the type of its gradient until it is reduced over ranks, `accumulate` that in which gradients of microbatches are added
    up (by default the element type).

    `reshard` is what happens to a unit gathered in forward: it is freed before backward, which gathers it again (`always`);
    it is kept (`never`); or only its part over `axes` is kept (`axes [...]`), the first axes of the parameter's layout: forward
    gathers over the other axes first, and backward over these only.

    `compute` is how the parameter is split in *compute*; ranks store their part of that. Absent, it is
    chosen by sharding propagation. Axes of layouts do not take part in propagation.

    Constraints: (C1) parameter and gradient are each replicated or stored as the state is; (C2) equal layouts are given once; (C3) types are
    f32, f64, bf16 or f16; (C4) the axes of `reshard` are some, not all, of the first axes of the parameter; (C5) `compute` has no partial
    sums and no axis of a layout.

    Example: `#fsdp.placement<flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>`,
    `#fsdp.placement<dimension 0 over ["fsdp"], gather = f32, reduce = f32, reshard = always>`,
    `#fsdp.placement<flat over ["fsdp", "node"], gather = f32, reduce = f32, reshard = axes ["fsdp"]>` and
    `#fsdp.placement<parameter replicated, gradient flat over ["fsdp"], state flat over ["fsdp"], gather = bf16, reduce = f32,
    reshard = always, compute = <@mesh, [{}, {"tensor"} ]>>`
  }];
  let parameters = (ins
    "::mlir::fsdp::LayoutAttr":$parameter,
    "::mlir::fsdp::LayoutAttr":$gradient,
    "::mlir::fsdp::LayoutAttr":$state,
    "::mlir::Type":$gather,
    "::mlir::Type":$reduce,
    "::mlir::Type":$accumulate,
    EnumParameter<FSDP_Reshard>:$reshard,
    ArrayRefParameter<"::mlir::StringAttr">:$reshardAxes,
    "::mlir::fsdp::ShardingAttr":$compute);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The layout where updates are computed: that of the state.
    StorageKind getKind() const { return getState().getKind(); }
    int64_t getDim() const { return getState().getDim(); }
    ::llvm::ArrayRef<::mlir::StringAttr> getAxes() const { return getState().getAxes(); }
    /// True if every rank keeps a copy of a parameter whose updates are split over ranks.
    bool hasCopy() const { return getParameter() != getState(); }
    /// True where the layouts of parameter, gradient and state are those of `other`.
    bool isStoredLike(PlacementAttr other) const {
      return getParameter() == other.getParameter() && getGradient() == other.getGradient() &&
             getState() == other.getState();
    }
    PlacementAttr withPrecision(::mlir::Type gather, ::mlir::Type reduce) const;
    PlacementAttr withReshard(Reshard reshard, ::llvm::ArrayRef<::mlir::StringAttr> axes = {}) const;
    PlacementAttr withCompute(ShardingAttr compute) const;
  }];
}

def FSDP_InitKind : I32EnumAttr<"InitKind", "distribution of initial values", [
    I32EnumAttrCase<"constant", 0>, I32EnumAttrCase<"normal", 1>, I32EnumAttrCase<"uniform", 2>]> {
  let cppNamespace = "::mlir::fsdp";
  let genSpecializedAttr = 0;
}

def FSDP_InitAttr : FSDP_Attr<"Init", "init"> {
  let summary = "Initial values of a parameter";
  let description = [{
    `constant` fills with `value`; `normal` draws with mean 0 and standard deviation `value`;
    `uniform` draws from [-value, value). Draws are counter-based on (seed, parameter name,
    global index): independent of the mesh.

    Constraints: (C1) `value` is finite, and not negative for `normal` and `uniform`.

    Example: `#fsdp.init<normal, 2.000000e-02>`
  }];
  let parameters = (ins EnumParameter<FSDP_InitKind>:$kind, "::mlir::FloatAttr":$value);
  let assemblyFormat = "`<` $kind `,` custom<F64>($value) `>`";
  let genVerifyDecl = 1;
}

def FSDP_MemberAttr : FSDP_Attr<"Member", "member"> {
  let summary = "A parameter inside a storage";
  let description = [{
    The parameter `param` occupies the elements [offset, offset + size) of the unsharded
    storage, in row-major order; size is the number of elements of its type.

    Example: `#fsdp.member<@"fc1.weight" at 0>`
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$param, "int64_t":$offset);
  let assemblyFormat = "`<` $param `at` $offset `>`";
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def FSDP_Direction : I32EnumAttr<"Direction", "forward, backward or update", [
    I32EnumAttrCase<"forward", 0>, I32EnumAttrCase<"backward", 1>, I32EnumAttrCase<"update", 2>]> {
  let cppNamespace = "::mlir::fsdp";
  let genSpecializedAttr = 0;
}

def FSDP_StructureAttr : FSDP_Attr<"Structure", "structure"> {
  let summary = "Which part of a step an op belongs to";
  let description = [{
    `unit` is the unit of the model that the op computes for, `direction` whether it is part of forward,
    backward or the update, `stage` is the stage of a pipeline, `microbatch` the number of the microbatch where a segment computes several. `recomputed` marks ops that backward computes again instead of
    keeping their results from forward. Ops of steps and segments carry it as the
    discardable attribute `fsdp.structure`, launches as `of`. An op without it belongs to the module
    itself, forward, stage 0; constants have none and belong to their users. Passes preserve it: an op that is created
    for another op gets the structure of that op.

    Constraints:
    - (C1) the name of the unit is printable and has at most 1024 bytes.
    - (C2) stages are 0 to 2^20.
    - (C3) it is not the default (no unit, forward, stage 0).
    - (C4) recomputed ops are part of backward.
    - (C5) microbatches are below 2^20.

    Example: `#fsdp.structure<"h.0" backward>`, `#fsdp.structure<update>`,
    `#fsdp.structure<"h.0" backward recomputed>` and `#fsdp.structure<"h.0" stage 1 microbatch 3>`
  }];
  let parameters = (ins
    OptionalParameter<"::mlir::StringAttr">:$unit,
    EnumParameter<FSDP_Direction>:$direction,
    "int64_t":$stage,
    "bool":$recomputed,
    "int64_t":$microbatch);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

def FSDP_ScheduleKind : I32EnumAttr<"ScheduleKind", "learning rate over the steps", [
    I32EnumAttrCase<"constant", 0>, I32EnumAttrCase<"linear", 1>, I32EnumAttrCase<"cosine", 2>,
    I32EnumAttrCase<"inverse_sqrt", 3>, I32EnumAttrCase<"wsd", 4>]> {
  let cppNamespace = "::mlir::fsdp";
  let genSpecializedAttr = 0;
}

def FSDP_OptimizerAttr : FSDP_Attr<"Optimizer", "optimizer"> {
  let summary = "Update rule, its constants and its schedule";
  let description = [{
    The rule is a row of the table in `dialect/fsdp/UpdateRule.cpp`, which names its constants, states and formula; docs/optimizers.md
    lists them. A rule takes the constants that its row names, besides `lr` and `clip`. Weight decay applies
    to parameters of rank two and more. `clip` > 0 scales gradients by
    min(1, clip/(norm + 1e-6)), norm being the global L2 norm. The learning rate rises linearly
    over `warmup` steps to `lr`, then stays (`constant`), falls to `min_lr` at the last step of the run
    along a line (`linear`) or half a cosine wave (`cosine`), falls with the inverse square root of the step, to no less than `min_lr`
    (`inverse_sqrt`), or stays and falls to `min_lr` along a line in the last steps, `decay_share` of all (`wsd`); docs/optimizers.md has the formulas.
    `lr_scale` multiplies the rate of the parameters whose names match a pattern ("PATTERN=X", '*' being any part of a name), the last that matches; `no_decay` has patterns of
    parameters to which weight decay does not apply.

    Constraints: (C1) rates, eps, decay, clip and warmup are finite and not negative; those that the row calls fractions (momentum, betas) and `decay_share` are in [0, 1); (C2) `min_lr` is at most `lr`; (C3) factors of `lr_scale` are finite and not negative.

    Example: `#fsdp.optimizer<adamw, lr = 3.000000e-04, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.01>`;
    `#fsdp.optimizer<lion, lr = 1.0e-04, lr_scale = ["wte.*=0.1", "h.0.*=0"], no_decay = ["wte.*"]>`;
    omitted constants have the values of the rule's row; lr, clip, min_lr and warmup are 0, decay_share is 0.1, the schedule is constant.
  }];
  let parameters = (ins
    StringRefParameter<"name of the update rule">:$rule,
    "::mlir::DenseF64ArrayAttr":$constants,
    EnumParameter<FSDP_ScheduleKind>:$schedule, "int64_t":$warmup,
    "::mlir::ArrayAttr":$lr_scale, "::mlir::ArrayAttr":$no_decay);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// A constant by its name.
    using Constant = std::pair<::llvm::StringRef, double>;
    /// The attribute with the `given` constants and the defaults of the others. Emits an error for
    /// a constant that the rule does not read, and where the verifier emits one.
    static OptimizerAttr create(::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError,
                                ::mlir::MLIRContext *context, ::llvm::StringRef rule,
                                ::llvm::ArrayRef<Constant> given, ScheduleKind schedule, int64_t warmup,
                                const ::base::ParameterGroups &groups = {});
    /// `lr_scale` and `no_decay`.
    ::base::ParameterGroups getGroups() const;
    /// The row of the table.
    const UpdateRule &getUpdateRule() const;
    /// The names of the state tensors of one parameter, each of its shape, such as `exp_avg` and `exp_avg_sq` of adam.
    ::llvm::SmallVector<::llvm::StringRef> getStateNames() const;
    /// The value of a constant of the rule or of those that every rule has; 0 where the rule has none of this name.
    double getConstant(::llvm::StringRef name) const;
    /// All constants in the order of printing: `lr`, those of the rule's row, `clip`, `min_lr`, `decay_share`.
    ::llvm::SmallVector<Constant> getNamedConstants() const;
    double getLr() const { return getConstants()[0]; }
    double getClip() const { return getConstant("clip"); }
    double getMinLr() const { return getConstant("min_lr"); }
    double getDecayShare() const { return getConstant("decay_share"); }
  }];
}

#endif // FSDP_ATTRS_TD
