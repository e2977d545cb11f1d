//===- OutputFile.h - atomic output files -----------------------*- C++ -*-===//
//
// The rules of docs/files.md, as base/OutputPath.h and base/AtomicFile.h have them for all
// programs. Errors are those of base.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_OUTPUT_OUTPUTFILE_H
#define TOOLS_OUTPUT_OUTPUTFILE_H

#include "base/OutputPath.h"

#include "llvm/ADT/StringRef.h"
#include <string>

namespace fsdpc {

/// The destination at `path`; "-" is standard output.
base::OutputPath openOutput(const std::string &path);

/// Writes all of the file. One that is replaced keeps its mode and, where permitted, its owner.
/// If this fails, or SIGHUP, SIGINT or SIGTERM ends the process, an existing file is unchanged
/// and no temporary file remains. `executable`: users who may read it may execute it.
void writeOutput(const base::OutputPath &path, llvm::StringRef content, bool executable = false);

} // namespace fsdpc

#endif // TOOLS_OUTPUT_OUTPUTFILE_H
