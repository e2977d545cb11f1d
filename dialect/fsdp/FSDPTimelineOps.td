//===- FSDPTimelineOps.td - buffers, launches, timepoints -----------------===//

#ifndef FSDP_TIMELINE_OPS_TD
#define FSDP_TIMELINE_OPS_TD

include "dialect/fsdp/FSDPModuleOps.td"

def FSDP_BufferOp : FSDP_Op<"buffer", [InScheduledPhase,
                                       DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A tensor in the arena";
  let description = [{
    A `persistent` buffer is declared in the program before its segments and keeps its contents from segment to segment. The driver fills
    parameter and state shards, copies and the step state before the first segment; others (accumulators) are unwritten until a launch writes them; a buffer of a segment lives from its first write to its last use there. `offset` is in bytes
    from the start of the arena and is set by `fsdp-plan-memory`. `storage` and `what` say what a persistent buffer
    holds: "parameter", "copy" or a state; a buffer of a segment holds all members of the storage, "gathered", or their "gradient" before it
    is reduced. A `zeroed` buffer holds zeros before the first segment, instead of being unwritten.

    Constraints:
    - (C1) offsets are multiples of 64, not negative.
    - (C2) buffers directly in a program are persistent.
    - (C3) `holds` names a storage; a persistent buffer holds what that storage keeps and has its type, or it holds
      "accumulator", the sum of its gradients over microbatches; another one holds "gathered" or "gradient", and all members fit.
    - (C4) a zeroed buffer is persistent, and the driver does not fill it: it is neither the step state nor a tensor that a storage keeps.

    A buffer declares no allocation to memory effects: two of them may share bytes once they have offsets, so analyses may not conclude
    that accesses to different buffers are independent.

    Example:
    ```mlir
    fsdp.program @all role {} {
      %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
      %ok = fsdp.buffer "ok" persistent zeroed offset 256 : !fsdp.buffer<tensor<i1>>
      fsdp.segment @train train next [@train] {
        %b = fsdp.buffer "fc1.z" offset 128 : !fsdp.buffer<tensor<8x4xf32>>
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$persistent, UnitAttr:$zeroed, OptionalAttr<FlatSymbolRefAttr>:$storage,
                       OptionalAttr<StrAttr>:$what, OptionalAttr<I64Attr>:$offset);
  let results = (outs FSDP_BufferType:$result);
  let assemblyFormat = [{
    $name (`persistent` $persistent^)? (`zeroed` $zeroed^)? (`holds` $storage^ $what)? (`offset` $offset^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Contents of a segment's buffer for a storage: all its members, or their gradients.
    static constexpr ::llvm::StringLiteral gathered = "gathered", gradient = "gradient";
    /// Contents of a persistent buffer for a storage, besides its parameter and states.
    static constexpr ::llvm::StringLiteral accumulator = "accumulator";
  }];
}

def FSDP_SubviewOp : FSDP_Op<"subview", [Pure, InScheduledPhase]> {
  let summary = "A part of a buffer, seen as a tensor";
  let description = [{
    The elements [offset, offset + size) of the buffer in row-major order. Reading or writing it
    is reading or writing the buffer.

    Constraints:
    - (C1) the range lies inside the buffer; element types are equal.

    Example:
    ```mlir
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %b = fsdp.buffer "fc1.gathered" offset 128 : !fsdp.buffer<tensor<16xf32>>
        %w = fsdp.subview %b at 0 : !fsdp.buffer<tensor<16xf32>> -> !fsdp.buffer<tensor<4x3xf32>>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_BufferType:$buffer, I64Attr:$offset);
  let results = (outs FSDP_BufferType:$result);
  let assemblyFormat = "$buffer `at` $offset attr-dict `:` type($buffer) `->` type($result)";
  let hasVerifier = 1;
}

def FSDP_EventOp : FSDP_Op<"event", [InScheduledPhase, HasParent<"::mlir::fsdp::ProgramOp">]> {
  let summary = "A completion that launches of later segments can wait for";
  let description = [{
    The timepoint at which the launch that recorded the event last, in issue order, is complete; reached from the start
    while nothing has recorded it. Timepoints of launches end with their segment. An event carries one into the segments
    that follow, on every path that leads to them: segments without a join at their end need it. Same as an event of CUDA.

    Constraints:
    - (C1) it is directly in a program.
    - (C2) its name can be printed.

    Example:
    ```mlir
    fsdp.program @all role {} {
      %sum = fsdp.buffer "sum" persistent offset 0 : !fsdp.buffer<tensor<8xf32>>
      %done = fsdp.event "sum.done"
      fsdp.segment @train train async next [@train] {
        %t = fsdp.launch "sum" on "compute" wait(%done) records(%done) outs(%sum : !fsdp.buffer<tensor<8xf32>>) {
          %x = arith.constant dense<1.0> : tensor<8xf32>
          fsdp.yield %x : tensor<8xf32>
        }
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs FSDP_TimepointType:$timepoint);
  let assemblyFormat = "$name attr-dict";
}

def FSDP_LaunchOp : FSDP_Op<"launch", [InScheduledPhase, AttrSizedOperandSegments,
                                       SingleBlockImplicitTerminator<"YieldOp">,
                                       DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
                                       IsolatedFromAbove]> {
  let summary = "Run one kernel, one collective or a group of collectives on a stream";
  let description = [{
    Launches on one stream run in program order. This one starts when it is its turn and every timepoint of `wait` is
    reached; the result is the timepoint of its completion, which the events in `records` denote from then on: a wait
    for an event means the launch that recorded it last before the waiting one was issued. The block holds local IR on tensors: its
    arguments are the contents of `ins`, what `fsdp.yield` yields becomes the contents of
    `outs`. A buffer may be in both where the kernel works in place. Several collectives in one body are one grouped call: ranks
    meet once for all of them. Several updates in one body are of different storages, by the same rule, rate, scale and condition. Launches
    whose body reads or writes the step state name its buffer as `step_state`; it is not a block argument. `of` is
    the `#fsdp.structure` of the body.

    Memory effects: a launch reads `ins` and the events in `wait`, writes `outs` and the events in `records`, and has the effects of its body on
    resources (the step state, outputs, transfers).

    Constraints:
    - (C1) block arguments have the tensor types of `ins`, yielded values those of `outs`.
    - (C2) a body that holds a collective holds nothing else, or a group: at most 8 `fsdp.all_gather`, or
      `fsdp.reduce_scatter`, over the same axes, in the order of the block arguments that they take and of the values
      that the body yields.
    - (C3) `ins`, `outs` and `step_state` are buffers or subviews of this program, `wait` are launches of this segment and
      events, `records` are events, each once; the step state is a `tensor<16xi64>`.

    Example:
    ```mlir
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %a = fsdp.buffer "a" offset 0 : !fsdp.buffer<tensor<8xf32>>
        %b = fsdp.buffer "b" offset 64 : !fsdp.buffer<tensor<8xf32>>
        %t0 = fsdp.launch "input" on "input" outs(%a : !fsdp.buffer<tensor<8xf32>>) {
          %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
          fsdp.yield %x : tensor<8xf32>
        }
        %t1 = fsdp.launch "neg" on "compute" of "fc1" backward wait(%t0) ins(%a : !fsdp.buffer<tensor<8xf32>>) outs(%b : !fsdp.buffer<tensor<8xf32>>) {
        ^bb0(%x: tensor<8xf32>):
          %y = arith.negf %x : tensor<8xf32>
          fsdp.yield %y : tensor<8xf32>
        }
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, StrAttr:$stream, OptionalAttr<FSDP_StructureAttr>:$structure,
                       Variadic<FSDP_TimepointType>:$wait, Variadic<FSDP_TimepointType>:$records,
                       Variadic<FSDP_BufferType>:$ins, Variadic<FSDP_BufferType>:$outs,
                       Optional<FSDP_BufferType>:$step_state);
  let results = (outs FSDP_TimepointType:$done);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name `on` $stream (`of` custom<Structure>($structure)^)? (`wait` `(` $wait^ `)`)? (`records` `(` $records^ `)`)? (`ins` `(` $ins^ `:` type($ins) `)`)?
    (`outs` `(` $outs^ `:` type($outs) `)`)? (`step_state` `(` $step_state^ `:` type($step_state) `)`)?
    attr-dict-with-keyword custom<LaunchBody>($body)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The buffers that the launch accesses: `ins`, `outs`, then the step state.
    ::mlir::OperandRange getBuffers() {
      return getOperation()->getOperands().drop_front(getWait().size() + getRecords().size());
    }
    /// The name and, of a launch for one microbatch of a pipeline, its stage and microbatch: "fc1.relu stage 1 microbatch 2".
    std::string getFullName();
  }];
}

def FSDP_YieldOp : FSDP_Op<"yield", [Pure, Terminator, InGlobalPhase, InScheduledPhase,
                                     ParentOneOf<["LaunchOp", "CheckpointOp", "ManualOp"]>]> {
  let summary = "End the body of a launch, a checkpoint or a manual region with its results";
  let description = [{
    Names, in order, the tensors that a launch writes to its `outs`, or the results of a checkpoint or a manual region.

    Example: see `fsdp.launch`, `fsdp.checkpoint` and `fsdp.manual`.
  }];
  let arguments = (ins Variadic<FSDP_Tensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

#endif // FSDP_TIMELINE_OPS_TD
