//===- CudaKernelPrinter.h - kernels as CUDA C++ ----------------*- C++ -*-===//

#ifndef CODEGEN_CUDAKERNELPRINTER_H
#define CODEGEN_CUDAKERNELPRINTER_H

#include "codegen/KernelTable.h"
#include "codegen/ScheduledProgram.h"

namespace mlir::fsdp {

/// The kernel of the body of `launch` for the CUDA target: `device` holds the `__global__` function
/// (`@_kernel`), `body` launches it. Its parameters end with the stream. The work of a thread:
///
///   no reduction         one thread per result, or per vector of 16 bytes if results are
///   contiguous innermost loop kept  a thread per result and a few lanes that share its sum
///   ("columns") innermost reduced    a warp or a block per result ("rows")
///
/// Lanes' sums are combined in a fixed order, so results are the same bits in every run. Fails with
/// a diagnostic if the body has no form in C++.
FailureOr<KernelFunction> printCudaKernel(const ScheduledProgram &program, LaunchOp launch,
                                          bool anonymous);

} // namespace mlir::fsdp

#endif // CODEGEN_CUDAKERNELPRINTER_H
