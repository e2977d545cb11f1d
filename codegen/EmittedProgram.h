//===- EmittedProgram.h - files and options of programs ---------*- C++ -*-===//

#ifndef CODEGEN_EMITTEDPROGRAM_H
#define CODEGEN_EMITTEDPROGRAM_H

#include <string>
#include <utility>
#include <vector>

namespace mlir::fsdp {

/// The device of a program.
enum class TargetKind {
  Cpu,  ///< threads and vector loops; train.cpp, kernels.h, kernels.cpp
  Cuda, ///< one GPU per rank; train.cpp, kernels.h, kernels.cu
};

struct EmitOptions {
  TargetKind target = TargetKind::Cpu;
  /// The name of the program in its messages.
  std::string name = "program";
  /// The compiler's memory report, a table that the program prints for `--report`.
  std::string report;
  /// The default communicator of its ranks: auto, shm, tcp or mpi on
  /// CPUs; auto, nccl or loopback with CUDA.
  std::string communicator = "auto";
  /// Options of the compiler, which the program prints: "--precision=bf16 --prefetch=2".
  std::string options;
  /// The compiler and flags of the program, for the records of its runs: a JSON object, or nothing.
  std::string compilation;
  /// Program::modelFlops and Program::peakSeconds of a training step; 0 if unknown.
  double modelFlops = 0, peakSeconds = 0;
  /// One file, with the kernels in it; otherwise they are in separate files. Without effect where
  /// ranks run different programs, which are files each.
  bool singleFile = false;
};

/// The files of a program: name and text. train.cpp is the host program with `main`.
struct EmittedProgram {
  std::vector<std::pair<std::string, std::string>> files;
};

} // namespace mlir::fsdp

#endif // CODEGEN_EMITTEDPROGRAM_H
