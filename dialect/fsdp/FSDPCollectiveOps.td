//===- FSDPCollectiveOps.td - collectives ---------------------------------===//

#ifndef FSDP_COLLECTIVE_OPS_TD
#define FSDP_COLLECTIVE_OPS_TD

include "dialect/fsdp/FSDPModuleOps.td"
include "dialect/nn/NNInterfaces.td"

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let description = [{
    The interface of all collectives. A collective runs over the ranks that differ only along `over`: its
    group, in which a rank's index is row-major over these axes, the first one major. Its shared rules (known
    axes, at least one, none twice) are verified once, here. Passes, checkers, interpreter and code generation
    query collectives through this interface and name an op only where they create one.

    All ranks of the group take part in a collective. In a transfer (`fsdp.send`, `fsdp.receive`) a rank has one
    peer.
  }];
  let cppNamespace = "::mlir::fsdp";
  let methods = [
    InterfaceMethod<"The mesh axes that the collective runs over, major first.",
                    "::llvm::SmallVector<::mlir::StringAttr>", "getAxes", (ins), "",
                    [{ return ::mlir::fsdp::getAxisNames($_op.getOver()); }]>,
    InterfaceMethod<"The number of ranks that a collective of this op runs over.",
                    "int64_t", "getGroupSize", (ins), "",
                    [{ return ::mlir::fsdp::detail::getGroupSize($_op); }]>,
    InterfaceMethod<"False for a collective that moves nothing between ranks.",
                    "bool", "involvesPeers", (ins), "", [{ return true; }]>,
    InterfaceMethod<"Of a transfer: the index of the peer in the group minus that of this rank. "
                    "Such a rank need not exist. 0 for all other collectives.",
                    "int64_t", "getPeerOffset", (ins), "", [{ return 0; }]>,
    InterfaceMethod<"Of a transfer: whether the first rank of the group follows the last one.",
                    "bool", "isInRing", (ins), "", [{ return false; }]>,
    InterfaceMethod<"Of a transfer: the number of its value among those that ranks send one another in the segment. "
                    "Values of one type that have changed their order differ in it.",
                    "::std::optional<uint64_t>", "getMessage", (ins), "", [{ return ::std::nullopt; }]>,
    InterfaceMethod<"The tensor that a rank sends; null where it only receives.",
                    "::mlir::Value", "getSendValue", (ins), "",
                    [{ return $_op->getNumOperands() ? $_op->getOperand(0) : ::mlir::Value(); }]>,
    InterfaceMethod<"The tensor that a rank receives; null where it only sends.",
                    "::mlir::Value", "getRecvValue", (ins), "",
                    [{ return $_op->getNumResults() ? $_op->getResult(0) : ::mlir::Value(); }]>,
    InterfaceMethod<"Bytes of the value of one call: the larger of operand and result, which for a gather or a "
                    "scatter is the unsharded one; 0 where nothing moves between ranks.",
                    "int64_t", "getBytes", (ins), "",
                    [{ return ::mlir::fsdp::detail::getCollectiveBytes($_op); }]>,
    InterfaceMethod<"Bytes that a rank receives in one call, at most, by the algorithm that moves least.",
                    "int64_t", "getReceivedBytes">,
    InterfaceMethod<"What generated programs ask the runtime for: the request of a row of runtime/program/Collectives.def.",
                    "::mlir::nn::ShapeArgument", "getRequest">,
    InterfaceMethod<"Everything besides axes and types that must be the same on all ranks, in the op's syntax: 'dim 0', 'from [1, 0]'.",
                    "std::string", "getArguments", (ins), "",
                    [{ return ::mlir::fsdp::detail::getCollectiveArguments($_op); }]>,
  ];
  let verify = [{ return ::mlir::fsdp::detail::verifyCollective($_op); }];
}

class FSDP_CollectiveOp<string mnemonic, list<Trait> traits = [], list<string> methods = []>
    : FSDP_Op<mnemonic, !listconcat([InLocalPhase, InScheduledPhase,
        DeclareOpInterfaceMethods<CollectiveOpInterface, methods>], traits)>;

def FSDP_ReduceKind : I32EnumAttr<"ReduceKind", "how ranks' values are combined", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>]> {
  let cppNamespace = "::mlir::fsdp";
  let genSpecializedAttr = 0;
}
def FSDP_ReduceKindAttr : EnumAttr<FSDP_Dialect, FSDP_ReduceKind, "reduce_kind">;

def FSDP_AllGatherOp : FSDP_CollectiveOp<"all_gather"> {
  let summary = "Concatenate the shards of all ranks along a dimension";
  let description = [{
    Rank i of n holds elements [i*c, (i+1)*c) of dimension `dim`, c being the operand's size
    there; the result has all of them, on every rank. Padding past the result's size is dropped, so uneven
    sizes need no other op.

        before:  rank 0 [a0 a1]   rank 1 [a2 a3]   rank 2 [a4 --]
        after:   every rank [a0 a1 a2 a3 a4]

    The result is allocated storage: two gathers of one shard are never merged, and none is
    hoisted; an unused one is removed.

    Constraints:
    - (C1) axes are distinct axes of the mesh, at least one.
    - (C2) along `dim`, the operand has at least ceil(result size / n) elements; other dimensions and the
      element types are equal.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %s = arith.constant dense<1.0> : tensor<3xf32>
        %w = fsdp.all_gather %s dim 0 over ["fsdp"] : tensor<3xf32> -> tensor<10xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, I64Attr:$dim, StrArrayAttr:$over);
  let results = (outs Res<FSDP_Tensor, "gathered storage", [MemAlloc]>:$result);
  let assemblyFormat = "$input `dim` $dim `over` $over attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def FSDP_ReduceScatterOp : FSDP_CollectiveOp<"reduce_scatter", [Pure]> {
  let summary = "Sum over all ranks and keep this rank's part along a dimension";
  let description = [{
    The elementwise sum (in rank order) of the operands, of which rank i of n keeps elements [i*c, (i+1)*c) of
    dimension `dim`, c being the result's size there. Elements past the operand's size are zero.

        before:  rank 0 [a0 a1 a2]       rank 1 [b0 b1 b2]
        after:   rank 0 [a0+b0 a1+b1]    rank 1 [a2+b2 0]

    Constraints:
    - (C1) axes are distinct axes of the mesh, at least one.
    - (C2) along `dim`, the result has at least ceil(operand size / n) elements; other dimensions and the
      element types are equal.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %g = arith.constant dense<1.0> : tensor<10xf32>
        %s = fsdp.reduce_scatter %g dim 0 over ["fsdp"] : tensor<10xf32> -> tensor<3xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, I64Attr:$dim, StrArrayAttr:$over);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim `over` $over attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def FSDP_AllReduceOp : FSDP_CollectiveOp<"all_reduce", [Pure, SameOperandsAndResultType]> {
  let summary = "Sum or maximize over all ranks";
  let description = [{
    Every rank receives the elementwise sum (in rank order) or maximum of all ranks' operands.

        before:  rank 0 [a0 a1]          rank 1 [b0 b1]
        after:   both ranks [a0+b0 a1+b1]

    Constraints:
    - (C1) axes are distinct axes of the mesh, at least one.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %g = arith.constant dense<1.0> : tensor<f64>
        %s = fsdp.all_reduce sum %g over ["fsdp"] : tensor<f64>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_ReduceKindAttr:$kind, FSDP_Tensor:$input, StrArrayAttr:$over);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "`` $kind $input `over` $over attr-dict `:` type($result)";
}

def FSDP_AllSliceOp : FSDP_CollectiveOp<"all_slice", [Pure,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelCall"]>], ["involvesPeers"]> {
  let summary = "Keep this rank's part of a value that every rank has";
  let description = [{
    Rank i of n keeps elements [i*c, (i+1)*c) of dimension `dim`, c = ceil(size/n); elements past the operand's size are
    zero. Moves nothing between ranks.

        before:  both ranks [a0 a1 a2]
        after:   rank 0 [a0 a1]   rank 1 [a2 0]

    Constraints:
    - (C1) axes are distinct axes of the mesh, at least one.
    - (C2) along `dim`, the result has ceil(operand size / n) elements, of rank one also more (the shard of a flat unit); other
      dimensions and the element types are equal.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %w = arith.constant dense<1.0> : tensor<10x2xf32>
        %s = fsdp.all_slice %w dim 0 over ["fsdp"] : tensor<10x2xf32> -> tensor<3x2xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, I64Attr:$dim, StrArrayAttr:$over);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim `over` $over attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def FSDP_AllToAllOp : FSDP_CollectiveOp<"all_to_all", [Pure]> {
  let summary = "Move the split of a value from one dimension to another";
  let description = [{
    The ranks of the group hold the parts of a value that is split along dimension `concat`, and get its parts along
    dimension `split`: rank j cuts its operand along `split` into n parts, of which rank i receives the i-th, and joins
    what it receives along `concat` in rank order. Padding along `concat` past the result's size is dropped,
    elements past the operand's size along `split` are zero.

        before:  rank 0 [a00 a01]   rank 1 [a10 a11]        split along dimension 0 (rows)
        after:   rank 0 [a00]       rank 1 [a01]            split along dimension 1 (columns)
                        [a10]              [a11]

    Where `split` and `concat` are one dimension, the op changes the size of the parts: rank i holds elements
    [i*c, (i+1)*c) and gets [i*d, (i+1)*d), c and d being the sizes of operand and result there; elements that no rank
    holds are zero. Only elements of other ranks are moved.

        before:  rank 0 [a0 a1 a2]   rank 1 [a3 a4 --]
        after:   rank 0 [a0 a1]      rank 1 [a2 a3]         (d = 2: the last element is dropped)

    Constraints:
    - (C1) axes are distinct axes of the mesh, at least one.
    - (C2) `split` and `concat` are dimensions of the operand; other dimensions and the element types are
      equal.
    - (C3) where they differ, the result has ceil(operand size / n) elements along `split`, and the
      operand has ceil(result size / n) along `concat`.

    Example:
    ```mlir
    fsdp.mesh @mesh <["tensor"=4]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %x = arith.constant dense<1.0> : tensor<3x6xf32>
        %y = fsdp.all_to_all %x split 1 concat 0 over ["tensor"] : tensor<3x6xf32> -> tensor<10x2xf32>
        %z = fsdp.all_to_all %y split 0 concat 0 over ["tensor"] : tensor<10x2xf32> -> tensor<12x2xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, I64Attr:$split, I64Attr:$concat, StrArrayAttr:$over);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = [{
    $input `split` $split `concat` $concat `over` $over attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def FSDP_CollectivePermuteOp
    : FSDP_CollectiveOp<"collective_permute", [Pure, SameOperandsAndResultType]> {
  let summary = "Send every rank the value of another one";
  let description = [{
    Rank i of the group receives the operand of rank `from`[i], or zeros where that is -1. No rank sends to two:
    `from` is a permutation of the group or part of one, such as a shift along a pipeline.

        from [2, 0, -1]
        before:  rank 0 [a]   rank 1 [b]   rank 2 [c]
        after:   rank 0 [c]   rank 1 [a]   rank 2 [0]

    Constraints:
    - (C1) axes are distinct axes of the mesh, at least one.
    - (C2) `from` has an entry for each rank of the group: a rank, or -1.
    - (C3) no rank is in `from` twice.

    Example:
    ```mlir
    fsdp.mesh @mesh <["data"=2, "tensor"=2]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %x = arith.constant dense<1.0> : tensor<3xf32>
        // Parts that were split by data, then tensor, are split by tensor, then data.
        %y = fsdp.collective_permute %x from [0, 2, 1, 3] over ["data", "tensor"] : tensor<3xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, DenseI64ArrayAttr:$from, StrArrayAttr:$over);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "$input `from` $from `over` $over attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def FSDP_BroadcastOp : FSDP_CollectiveOp<"broadcast", [Pure, SameOperandsAndResultType]> {
  let summary = "Send every rank the value of one of them";
  let description = [{
    Every rank receives the operand of rank `from` of the group.

        from 0
        before:  rank 0 [a0 a1]   rank 1 [b0 b1]
        after:   both ranks [a0 a1]

    Constraints:
    - (C1) axes are distinct axes of the mesh, at least one.
    - (C2) `from` is a rank of the group.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %x = arith.constant dense<1.0> : tensor<3xf32>
        %y = fsdp.broadcast %x from 0 over ["fsdp"] : tensor<3xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, I64Attr:$from, StrArrayAttr:$over);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "$input `from` $from `over` $over attr-dict `:` type($result)";
  let hasVerifier = 1;
}

class FSDP_TransferOp<string mnemonic, list<Trait> traits>
    : FSDP_CollectiveOp<mnemonic, traits, ["getPeerOffset", "isInRing"]> {
  let hasVerifier = 1;
}

def FSDP_SendOp : FSDP_TransferOp<"send", [MemoryEffects<[MemWrite<FSDP_TransferResource>]>]> {
  let summary = "Send a value to another rank";
  let description = [{
    Rank i of the group sends the operand to rank i + `offset`, which takes it with a `fsdp.receive` of the negative offset
    over the same axes. A rank that has no such rank in its group sends nothing; in a `ring` the first rank follows the
    last one, so that every rank has one. Ranks may run one program, as below, or
    each its own (see `fsdp.program`), in which one sends what another receives:

        offset 1
        before:  rank 0 [a]          rank 1 [b]          rank 2 [c]
        sent:    rank 0 [a] -> rank 1     rank 1 [b] -> rank 2     rank 2 nothing

    The sends of one rank with one offset over the same axes, in a ring or not, match the receives of its peer with the
    negative offset: values are received in the order in which they are sent, the n-th send matches the n-th receive,
    with the same type. Nothing is implied about transfers of other ranks or offsets: where two ranks are each other's
    neighbours on both sides (a ring of two), a value that goes up with offset 1 and one that goes down with offset -1
    do not wait for each other. In the scheduled phase sends and receives may be on different streams, and the two launches of a transfer
    run together: neither completes before the other one has begun, as in NCCL. `fsdp-verify-schedule` checks that every send has its receive and that no launches wait for one
    another in a cycle. In the local phase, which does not order execution, a send never waits.
    `message` numbers the values that ranks send one another in a segment; a send and its receive have the same number, so that
    values of one type that have changed their order are found.

    Constraints:
    - (C1) axes are distinct axes of the mesh, at least one.
    - (C2) `offset` is not 0 and less than the size of the group, either way.
    - (C3) some rank that runs the op has a rank to send to.

    Example:
    ```mlir
    fsdp.mesh @mesh <["pipeline"=2]>
    fsdp.program @first role {pipeline = 0 : i64} {
      fsdp.segment @train train next [@train] {
        %x = arith.constant dense<1.0> : tensor<3xf32>
        fsdp.send %x offset 1 over ["pipeline"] : tensor<3xf32>
      }
    }
    fsdp.program @second role {pipeline = 1 : i64} {
      fsdp.segment @train train next [@train] {
        %y = fsdp.receive offset -1 over ["pipeline"] : tensor<3xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, I64Attr:$offset, UnitAttr:$ring, StrArrayAttr:$over,
                       OptionalAttr<FSDP_Number>:$message);
  let assemblyFormat = "$input `offset` $offset (`ring` $ring^)? `over` $over (`message` $message^)? attr-dict `:` type($input)";
}

def FSDP_ReceiveOp : FSDP_TransferOp<"receive",
    [MemoryEffects<[MemRead<FSDP_TransferResource>, MemWrite<FSDP_TransferResource>]>]> {
  let summary = "Receive a value that another rank sends";
  let description = [{
    Rank i of the group receives the value that rank i + `offset` sends with a `fsdp.send` of the negative offset, both in a `ring` or
    both not. A rank that has no such rank in its group receives zeros without communicating; in a ring every rank has one. See `fsdp.send` for the order of values and the
    checks. A receive is never removed, even if its result is unused: the value sent to it must be received.

        offset -1
        before:  rank 0 sends [a]    rank 1 sends [b]    rank 2 sends nothing
        after:   rank 0 [0]          rank 1 [a]          rank 2 [b]

    Constraints:
    - (C1) axes are distinct axes of the mesh, at least one.
    - (C2) `offset` is not 0 and less than the size of the group, either way.
    - (C3) some rank that runs the op has a rank to receive from.

    Example:
    ```mlir
    fsdp.mesh @mesh <["context"=4]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %x = arith.constant dense<1.0> : tensor<3xf32>
        // Every rank sends its last rows to the next one.
        fsdp.send %x offset 1 over ["context"] : tensor<3xf32>
        %y = fsdp.receive offset -1 over ["context"] : tensor<3xf32>
      }
    }
    ```
  }];
  let arguments = (ins I64Attr:$offset, UnitAttr:$ring, StrArrayAttr:$over, OptionalAttr<FSDP_Number>:$message);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "`offset` $offset (`ring` $ring^)? `over` $over (`message` $message^)? attr-dict `:` type($result)";
}

#endif // FSDP_COLLECTIVE_OPS_TD
