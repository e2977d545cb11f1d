//===- EmittedProgram.h - what a program is emitted for ------*- C++ -*-===//

#ifndef CODEGEN_EMITTEDPROGRAM_H
#define CODEGEN_EMITTEDPROGRAM_H

#include <string>
#include <utility>
#include <vector>

namespace mlir::fsdp {

/// What a program runs on.
enum class TargetKind {
  Cpu,  ///< threads and vector loops; train.cpp, kernels.h, kernels.cpp
  Cuda, ///< one GPU a rank; train.cpp, kernels.h, kernels.cu
};

struct EmitOptions {
  TargetKind target = TargetKind::Cpu;
  /// What the program calls itself in its messages.
  std::string name = "program";
  /// The compiler's memory report, a table that the program prints for `--report`.
  std::string report;
  /// How its ranks talk unless its command line says otherwise: auto, shm, tcp or mpi on
  /// CPUs; auto, nccl or loopback with CUDA.
  std::string communicator = "auto";
  /// Options of the compiler, for the program to show: "--precision=bf16 --prefetch=2".
  std::string options;
  /// By what and how the program is compiled, for the records of its runs: a JSON object, or
  /// nothing.
  std::string compilation;
  /// One file, with the kernels in it; otherwise they stand in files of their own.
  bool singleFile = false;
};

/// The files of a program: name and text. train.cpp is the host program with `main`.
struct EmittedProgram {
  std::vector<std::pair<std::string, std::string>> files;
};

} // namespace mlir::fsdp

#endif // CODEGEN_EMITTEDPROGRAM_H
