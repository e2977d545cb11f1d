//===- PackagedRuntime.h - runtime libraries of a package -------*- C++ -*-===//
//
// A package may hold the runtime library, compiled for levels of x86-64, in lib/fsdpc next to the
// compiler's library: the first program then need not wait for a build for its processor.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_PACKAGEDRUNTIME_H
#define TOOLS_FSDPC_PACKAGEDRUNTIME_H

#include <optional>
#include <string>
#include <vector>

namespace fsdpc {

/// A folder of lib/fsdpc with a toolchain.json. In its paths "@" denotes the folder.
struct PackagedRuntime {
  std::string name; ///< "x86-64-v3"
  std::string folder;
};

/// Those below `folder`, the most demanding processor first.
std::vector<PackagedRuntime> listPackagedRuntimes(const std::string &folder);

/// The most demanding one of `runtimes` whose instructions this processor has.
std::optional<PackagedRuntime> chooseForHost(const std::vector<PackagedRuntime> &runtimes);

} // namespace fsdpc

#endif // TOOLS_FSDPC_PACKAGEDRUNTIME_H
