//===- CudaKernelPrinter.h - kernels as CUDA C++ ----------------*- C++ -*-===//

#ifndef CODEGEN_CUDAKERNELPRINTER_H
#define CODEGEN_CUDAKERNELPRINTER_H

#include "codegen/KernelTable.h"
#include "codegen/ScheduledProgram.h"

namespace mlir::fsdp {

/// The kernel of the body of `launch` for the CUDA target: `device` holds the `__global__` function
/// (`@_kernel`), `body` launches it. Its parameters end with the stream. The work of a thread:
///
///   no reduction          one result, or a vector of 16 bytes if results are contiguous
///   innermost loop kept   the same of each of its terms; lanes of a block, and blocks, share the
///   ("columns")           terms (a second kernel, `@_total_kernel`, combines partial results)
///   innermost reduced     some terms of the result of its warp or block ("rows"); all, if few;
///                         blocks share those of a few long sums, as above
///
/// Partial results are combined in an order that depends on sizes alone, so results are the same
/// bits in every run. Fails with a diagnostic if the body has no form in C++.
FailureOr<KernelFunction> printCudaKernel(const ScheduledProgram &program, LaunchOp launch,
                                          bool anonymous);

} // namespace mlir::fsdp

#endif // CODEGEN_CUDAKERNELPRINTER_H
