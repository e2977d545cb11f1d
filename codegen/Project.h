//===- Project.h - the build of an emitted program --------------*- C++ -*-===//

#ifndef CODEGEN_PROJECT_H
#define CODEGEN_PROJECT_H

#include "codegen/CudaArchitectures.h"
#include "codegen/EmitProgram.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::fsdp {

/// The CMakeLists.txt of a folder that holds the files of `program` and a copy of runtime/: it
/// builds on its own, `train` and (on request) `record`. Kernels of CUDA are compiled for
/// `architectures`.
std::string projectFile(const EmittedProgram &program, llvm::StringRef name, TargetKind target,
                        llvm::ArrayRef<std::string> architectures);

/// The tools and flags of programs of one target.
struct ProgramToolchain {
  std::string compiler;               ///< of C++
  std::vector<std::string> flags;     ///< of generated CPU code
  std::vector<std::string> hardening; ///< of host code for any target
  std::vector<std::string>
      libraries; ///< the runtime's and those it needs: files, and switches of the linker
  std::string nvcc;
  std::vector<std::string> includes; ///< folders of CUDA's and NCCL's headers
};

/// The paths of a program that is compiled in place.
struct BuildPlaces {
  std::string sources;     ///< the folder of the program's files
  std::string runtimeRoot; ///< the folder that holds runtime/, as the commands name it
  std::string output;      ///< the binary
  bool record = false;     ///< the recording program, which links no library
  TargetKind target = TargetKind::Cpu;
  ProgramToolchain toolchain;
  CudaArchitectures architectures; ///< targets of the kernels
  /// Kernels of the runtime, as paths, if its library lacks them for `architectures`.
  std::vector<std::string> runtimeKernels;
};

/// A command: program and arguments.
using BuildCommand = std::vector<std::string>;

/// The commands that make `places.output`: one per source file (they may run at once), then the
/// link, which is the last. Compiler, flags and libraries are those that the runtime was built
/// with; kernels of CUDA are compiled by nvcc.
std::vector<BuildCommand> buildCommands(const EmittedProgram &program, const BuildPlaces &places);

} // namespace mlir::fsdp

#endif // CODEGEN_PROJECT_H
