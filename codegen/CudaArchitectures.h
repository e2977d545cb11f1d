//===- CudaArchitectures.h - GPUs that kernels are compiled for -*- C++ -*-===//

#ifndef CODEGEN_CUDAARCHITECTURES_H
#define CODEGEN_CUDAARCHITECTURES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace mlir::fsdp {

/// Compute capabilities in nvcc's form after "sm_": "80", "90a", "100f".
using CudaArchitectures = std::vector<std::string>;

/// The default compute capabilities, from runtime/program/CudaArchitectures.def, as in builds of
/// the runtime.
CudaArchitectures defaultCudaArchitectures();

/// Parses `80,90a,100`; on an error sets `message`, which lists the accepted values, and returns
/// nothing.
CudaArchitectures parseCudaArchitectures(llvm::StringRef text, std::string &message);

/// nvcc's options: machine code for each, and PTX for the newest, which a driver compiles for newer
/// devices. Equal to those of runtime/Cuda.cmake.
std::vector<std::string> codeOptions(llvm::ArrayRef<std::string> architectures);

} // namespace mlir::fsdp

#endif // CODEGEN_CUDAARCHITECTURES_H
