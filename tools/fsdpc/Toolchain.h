//===- Toolchain.h - compilers and libraries of programs --------*- C++ -*-===//
// Next to the folder of this compiler's library is share/fsdpc, with the sources of the runtime. In
// a build tree a toolchain.json there names the library built from them. An installed compiler uses
// a library of its package (PackagedRuntime.h), or builds one for the local processor when the
// first program needs it, in $XDG_CACHE_HOME/fsdpc (~/.cache/fsdpc), and uses that from then on.
// FSDP_RUNTIME selects one: `native`, or the name of one in the package.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_TOOLCHAIN_H
#define TOOLS_FSDPC_TOOLCHAIN_H

#include "codegen/Project.h"
#include <string>
#include <vector>

namespace fsdpc {

/// The folder that contains runtime/ and base/, found relative to this library. Throws Failure if
/// it is missing.
const std::string &findRuntimeSources();

/// "0.1.0", with the commit in parentheses if it was built from a clone. Throws Failure as above.
std::string readVersion();

/// The entry of `toolchain.json` for one target.
struct Toolchain {
  mlir::fsdp::ProgramToolchain program;
  std::string launcher;                   ///< a compiler cache, or empty
  std::vector<std::string> architectures; ///< targets of the runtime's kernels
};

/// For programs of `target` with `communicator` ("shm", "auto", ...). Throws Failure if a
/// dependency is missing, or the runtime does not build.
Toolchain findToolchain(mlir::fsdp::TargetKind target, const std::string &communicator);

/// As `findToolchain`, for a program that only records its actions: it links nothing.
Toolchain findRecordingToolchain();

} // namespace fsdpc

#endif // TOOLS_FSDPC_TOOLCHAIN_H
