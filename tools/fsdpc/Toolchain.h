//===- Toolchain.h - what programs are compiled and linked with -*- C++ -*-===//
//
// In its build tree, this compiler takes the runtime that was built with it. Installed, it has the
// runtime's sources, and builds a library of them for the processor at hand when the first program
// needs it, into $XDG_CACHE_HOME/fsdpc (~/.cache/fsdpc): a package serves processors that differ.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_TOOLCHAIN_H
#define TOOLS_FSDPC_TOOLCHAIN_H

#include "codegen/Project.h"
#include <string>
#include <vector>

namespace fsdpc {

/// Where the parts of this compiler lie, found from the place of its own library.
struct Installation {
  std::string sources;   ///< the folder that holds runtime/ and cli/
  std::string toolchain; ///< toolchain.json of the build tree; empty where installed

  static const Installation &find();
};

/// What `toolchain.json` says for one target.
struct Toolchain {
  mlir::fsdp::ProgramToolchain program;
  std::vector<std::string> architectures; ///< what the runtime's kernels are compiled for
};

/// For programs of `target` that talk by `communicator` ("shm", "auto", ...). Throws Failure where
/// something that they need is missing, or the runtime does not build.
Toolchain findToolchain(mlir::fsdp::TargetKind target, const std::string &communicator);

/// As `findToolchain`, for a program that only records its actions: it links nothing.
Toolchain findRecordingToolchain();

} // namespace fsdpc

#endif // TOOLS_FSDPC_TOOLCHAIN_H
