//===- KernelPrinter.h - kernels as C++ functions ---------------*- C++ -*-===//

#ifndef CODEGEN_KERNELPRINTER_H
#define CODEGEN_KERNELPRINTER_H

#include "codegen/KernelTable.h"

namespace mlir::fsdp {

/// The function of the body of `launch` for the CPU target: loops in the order of the indices.
/// With `anonymous`, its variables have no names of the model, so that equal kernels have equal
/// text. Fails with a diagnostic if the body has no form in C++.
FailureOr<KernelFunction> printKernel(LaunchOp launch, bool anonymous);

} // namespace mlir::fsdp

#endif // CODEGEN_KERNELPRINTER_H
