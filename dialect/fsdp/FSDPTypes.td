//===- FSDPTypes.td - buffers and timepoints ------------------------------===//

#ifndef FSDP_TYPES_TD
#define FSDP_TYPES_TD

include "dialect/fsdp/FSDPDialect.td"

def FSDP_BufferType : TypeDef<FSDP_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "A range of the arena that contains one tensor";
  let description = [{
    Row-major and dense. Its offset is an attribute of the op that defines it.

    Constraints: (C1) the tensor has a static shape and at most 2^48 bytes.

    Example: `!fsdp.buffer<tensor<617xf32>>`
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes of the tensor; i1 takes one byte an element.
    int64_t getSizeInBytes() const;
  }];
}

def FSDP_TimepointType : TypeDef<FSDP_Dialect, "Timepoint"> {
  let mnemonic = "timepoint";
  let summary = "The completion of a launch";
  let description = [{
    Reached once in each run of a segment. Example: `!fsdp.timepoint`
  }];
}

#endif // FSDP_TYPES_TD
